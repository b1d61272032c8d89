"""Pictures of Boolean functions as networks meet them: the cube, the line, and how often."""

from collections.abc import Sequence
from math import cos, pi, sin
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from inscape.boolean.constructions import projected, wide_network
from inscape.boolean.truth_table import TruthTable
from inscape.figures.style import BLUE, FAINT, INK, ORANGE, PAPER, RULE, SKY, VERMILION

Array = npt.NDArray[Any]

#: Functions of more inputs than this have no picture as a cube.
MOST_INPUTS = 4
#: True and false: a full and an empty disc, so that colour is not needed.
TRUE, FALSE = BLUE, PAPER

_CUBE = ((1.0, 0.12), (0.45, 0.5), (-0.08, 1.0))
#: Where the labels of the two corners inside the outline of a cube stand clear of its edges.
_INSIDE = {0b010: (-0.18, 0.06), 0b101: (0.18, -0.06)}
_FLAT = ((1.0, 0.0), (0.0, 1.0))
_TESSERACT = tuple((cos(pi / 8 + k * pi / 4), sin(pi / 8 + k * pi / 4)) for k in range(4))


def corners(n: int) -> Array:
    """Return where the inputs of a function are drawn: a square, a cube, or a tesseract."""
    if not 1 <= n <= MOST_INPUTS:
        raise ValueError(
            f"a cube is drawn for 1 to {MOST_INPUTS} inputs, found {n}: draw it along a line."
        )
    directions = {1: _FLAT[:1], 2: _FLAT, 3: _CUBE, 4: _TESSERACT}[n]
    return np.asarray(TruthTable(n, 0).points @ np.array(directions) / 2)


def draw_cube(table: TruthTable, ax: Axes, *, labels: bool = True) -> Axes:
    """Draw a function as a cube: full corners are true, and thick edges are where it changes.

    Args:
        table: The function, of at most four inputs.
        ax: Where to draw.
        labels: Whether to write each input beside its corner.
    """
    places, bits = corners(table.n), np.asarray(table.bits)
    for a in range(len(bits)):
        for k in range(table.n):
            b = a ^ (1 << k)
            if a < b:
                color, width = (VERMILION, 1.5) if bits[a] != bits[b] else (RULE, 1.0)
                x, y = places[[a, b]].T
                ax.plot(x, y, zorder=1, color=color, lw=width, solid_capstyle="round")
    size = 150 if table.n < 4 else 105
    colours = [TRUE if bit else FALSE for bit in bits]
    x, y = places.T
    ax.scatter(x, y, s=size, c=colours, edgecolors=BLUE, linewidths=1.5, zorder=2)
    if labels:
        _label(places, table.n, ax)
    ax.set_aspect("equal")
    ax.margins(0.16 if labels else 0.1)
    ax.set_axis_off()
    return ax


def _label(places: Array, n: int, ax: Axes) -> None:
    """Write inputs next to their corners, away from the middle."""
    across, up = (0.29, 0.2) if n == 4 else (0.2, 0.16)
    for index, (x, y) in enumerate(places):
        length = max((x * x + y * y) ** 0.5, 1e-9)
        at = (x + across * x / length, y + up * y / length)
        if n == 3 and index in _INSIDE:
            at = (x + _INSIDE[index][0], y + _INSIDE[index][1])
        ax.text(*at, f"{index:0{n}b}", ha="center", va="center", fontsize=6.5, color=FAINT)


def draw_line(
    table: TruthTable, weights: Sequence[float], ax: Axes, *, network: bool = True
) -> Axes:
    """Draw a function along a weighted sum of its inputs, and the network that follows it.

    Args:
        table: The function.
        weights: One for each input.
        ax: Where to draw.
        network: Whether to draw the network of theorem 3.3.2.
    """
    line = projected(table, weights)
    places = table.points @ np.array(line.weights)
    bits = np.asarray(table.bits).astype(bool)
    edges = [line.start, *line.zeros, line.end]
    pad = 0.03 * (line.end - line.start)
    edges[0], edges[-1] = edges[0] - pad, edges[-1] + pad
    for k in range(len(edges) - 1):
        positive = (line.first > 0) == (k % 2 == 0)
        ax.axvspan(edges[k], edges[k + 1], color=SKY if positive else ORANGE, alpha=0.22, lw=0)
    ax.axhline(0, color=RULE, lw=0.8, zorder=1)
    if network and line.changes:
        _zigzag(table, line.weights, edges, ax)
    ax.scatter(
        places, np.zeros(len(places)), s=34, c=[TRUE if b else FALSE for b in bits],
        edgecolors=BLUE, linewidths=1.2, zorder=3,
    )  # fmt: skip
    ax.set(xlim=(edges[0], edges[-1]), yticks=[])
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=0)
    return ax


def _zigzag(table: TruthTable, weights: Sequence[float], edges: Sequence[float], ax: Axes) -> None:
    """Draw the output of the network over the line, scaled to a height of one."""
    import torch

    first, *rest = wide_network(table, weights)
    assert isinstance(first, torch.nn.Linear)
    x = torch.linspace(edges[0], edges[-1], 2001, dtype=torch.float64)
    with torch.no_grad():
        y = torch.nn.Sequential(*rest)(x[:, None] + first.bias)[:, 0]
    ax.plot(x, y / y.abs().max(), color=INK, lw=1.2, zorder=2)
    ax.set_ylim(-1.25, 1.25)


def draw_success(rows: Sequence[dict[str, Any]], ax: Axes) -> Axes:
    """Draw how often training finds the function, with 95% intervals, size by size.

    Args:
        rows: By size and activation: ``size``, ``activation``, ``fraction``, ``low``, ``high``.
        ax: Where to draw.
    """
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    kinds = list(dict.fromkeys(row["activation"] for row in rows))
    looks = dict(zip(kinds, ((BLUE, "o", -0.12), (ORANGE, "s", 0.12)), strict=False))
    for kind, (colour, mark, shift) in looks.items():
        of_kind = [row for row in rows if row["activation"] == kind]
        y = [sizes.index(row["size"]) + shift for row in of_kind]
        ax.hlines(y, [r["low"] for r in of_kind], [r["high"] for r in of_kind], color=colour, lw=2)
        ax.plot([r["fraction"] for r in of_kind], y, mark, color=colour, label=kind, ms=5)
    ax.set_yticks(range(len(sizes)), sizes)
    ax.set(
        xlim=(-0.02, 1.02),
        xlabel="fraction of networks that find it",
        ylim=(len(sizes) - 0.5, -0.5),
    )
    ax.xaxis.grid(True, color=RULE, lw=0.5)
    ax.tick_params(axis="y", length=0)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    return ax
