"""Diagrams of the two structures, read from the modules themselves."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Figure, Panel

if TYPE_CHECKING:
    from torch import nn


def described(part: "nn.Module") -> str:
    """Return the layers of one level in words."""
    from inscape.papers.courtois._completion import Convolution

    words: list[str] = []
    for layer in part.children():
        if isinstance(layer, Convolution):
            before = f"{layer.in_features} taps" if not words else f"{layer.in_features}"
            words.append(f"{before} → {layer.out_features}")
        else:
            words.append(type(layer).__name__)
    return ", ".join(words)


def structure(p: int, r: int = 2) -> Figure:
    """Draw one row on its way through the levels of the exact network."""
    import torch

    from inscape.figures.panels import panels
    from inscape.figures.style import FAINT
    from inscape.papers.courtois._completion import Completion, levels_of, rows, set_by_hand

    model = set_by_hand(Completion(p, r))
    with torch.no_grad():
        signals = levels_of(model, rows(1, p, max(2, p // 8)))
    figure, (ax,) = panels(1, size=(7.0, 0.42 * len(signals) + 0.6))
    for depth, signal in enumerate(signals):
        _strip(ax, signal[0].numpy(), -depth, p)
        words = (
            "pixels of the row"
            if depth == 0
            else f"{described(model.levels[depth - 1])}, every 2nd"
        )
        ax.text(p * 1.03, -depth, words, va="center", fontsize=7.5)
        ax.text(-p * 0.02, -depth, f"{signal.shape[1]}", va="center", ha="right", fontsize=7.5)
    ax.text(p * 1.03, -len(signals) + 0.35, "parity of all pixels", fontsize=7.5, color=FAINT)
    ax.set(
        xlim=(-p * 0.08, p * 1.55), ylim=(-len(signals), 0.6), title="one window, level by level"
    )
    ax.axis("off")
    return figure


def _strip(ax: Panel, values: Any, height: float, p: int) -> None:
    """Draw a row of pixels across the whole width."""
    from inscape.figures.style import BLUE, RULE

    width = p / len(values)
    edges = RULE if width > 1 else "none"
    for k, value in enumerate(values):
        colour = BLUE if value > 0.5 else "white"
        box: Mapping[str, Any] = {"facecolor": colour, "edgecolor": edges, "lw": 0.4}
        ax.add_patch(_rectangle((k * width, height - 0.32), width, 0.64, box))
    frame: Mapping[str, Any] = {"fill": False, "edgecolor": RULE, "lw": 0.6}
    ax.add_patch(_rectangle((0, height - 0.32), p, 0.64, frame))


def _rectangle(
    place: tuple[float, float], width: float, height: float, look: Mapping[str, Any]
) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(place, width, height, **look)


def framed(ax: Panel, picture: Any) -> None:
    """Draw a picture of greys, or of colours, within a thin frame."""
    from inscape.figures.style import RULE

    ax.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(visible=True, color=RULE)


def scales(blocks: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the blocks of a U-Net: as tall as their images, one column for each, lower by scale."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, FAINT, GREEN, ORANGE

    sides = [block["side"] for block in blocks]
    depths = [int(np.log2(max(sides) / side)) for side in sides]
    colours = {"down": BLUE, "up": GREEN, "last": ORANGE}
    figure, (ax,) = panels(1, size=(7.0, 3.4))
    for k, (block, depth) in enumerate(zip(blocks, depths, strict=True)):
        tall = 0.9 - 0.11 * depth
        look = {"facecolor": colours[block["part"]], "alpha": 0.85, "edgecolor": "none"}
        ax.add_patch(_rectangle((k - 0.3, -depth - tall / 2), 0.6, tall, look))
        ax.text(
            k, -depth, f"{block['channels']}", ha="center", va="center", color="white", fontsize=8
        )
        ax.text(k, -depth - tall / 2 - 0.05, f"{block['side']}²", ha="center", va="top", fontsize=7)
        if k:
            arrow = {"arrowstyle": "-|>", "color": FAINT, "lw": 0.8}
            ends = (k - 0.32, -depth), (k - 0.68, -depths[k - 1])
            ax.annotate("", *ends, arrowprops=arrow)
    for depth in range(max(depths)):
        skip = {"arrowstyle": "-|>", "color": FAINT, "lw": 0.8, "ls": ":"}
        first, second = (k for k, d in enumerate(depths[:-1]) if d == depth)
        ax.annotate(
            "", (second - 0.32, -depth + 0.2), (first + 0.32, -depth + 0.2), arrowprops=skip
        )
    ax.set(xlim=(-0.6, len(blocks) - 0.4), ylim=(-max(depths) - 0.9, 0.7))
    ax.set_title(
        "channels of each block (blue down, green up, orange last); dotted: joined unchanged"
    )
    ax.axis("off")
    return figure
