"""Figures of what made a prediction: the samples that pushed it up and down, and how far."""

import math
from typing import Any

import numpy.typing as npt
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from torch import Tensor

from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, INK, ORANGE, RULE, VERMILION, new_axes, styled
from inscape.kernels import PathKernel


@painter.register(PathKernel)
def _path_kernel(result: PathKernel, ax: Axes) -> None:
    """Draw how the samples that pushed most led the first query from its start to its end."""
    waterfall(result, 0, _moved_most(result, 0), ax)


def _moved_most(result: PathKernel, query: int) -> int:
    return int((result.final - result.initial)[query].abs().argmax())


def waterfall(
    result: PathKernel, query: int, output: int, ax: Axes | None = None, *, count: int = 5
) -> Axes:
    """Draw one prediction as the sum of its parts, from where it began to where it ended.

    Args:
        result: The path kernel.
        query: Number of the query.
        output: Number of the output.
        ax: Axes to draw on; new ones by default.
        count: Samples that are named on either side; the others are added up.
    """
    with styled():
        ax = new_axes() if ax is None else ax
        at = float(result.initial[query, output])
        ax.axvline(at, color=RULE, linewidth=0.8, zorder=0)
        names, points = ["before training"], [at]
        ax.plot([at], [0], "o", color=INK, markersize=4)
        for name, amount, color in parts(result, query, output, count=count):
            ax.barh(len(names), amount, left=at, height=0.7, color=color, alpha=0.75)
            ax.plot([at + amount] * 2, [len(names) - 0.35, len(names) + 1], color=FAINT, lw=0.6)
            side: dict[str, Any] = {
                "ha": "left" if amount >= 0 else "right",
                "va": "center",
                "fontsize": 7,
            }
            where = (4 if amount >= 0 else -4, 0)
            ax.annotate(
                f"{amount:+.3g}", (at + amount, len(names)), where,
                textcoords="offset points", **side,
            )  # fmt: skip
            at += amount
            points.append(at)
            names.append(name)
        ax.plot([float(result.final[query, output])], [len(names)], "o", color=INK, markersize=4)
        ax.set_yticks(range(len(names) + 1), [*names, "after training"])
        ax.invert_yaxis()
        wide = 0.2 * (max(points) - min(points) or 1.0)
        ax.set_xlim(min(points) - wide, max(points) + wide)
        ax.set(xlabel=f"output {output} at query {query}")
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
    return ax


def parts(
    result: PathKernel, query: int, output: int, *, count: int = 5
) -> list[tuple[str, float, str]]:
    """Return name, amount and colour of all that adds up to the change of one prediction.

    The samples that are not named stand together: apart, their ups and downs are so much larger
    than the sum that nothing else could be seen.
    """
    added = result.samples[query, :, output]
    up, down = pushers(result, query, output, count=count)
    bars = [(f"sample {k}", float(added[k]), BLUE) for k in up]
    bars += [(f"sample {k}", float(added[k]), VERMILION) for k in down]
    others = len(added) - len(up) - len(down)
    if others:
        amount = float(added.sum() - added[[*up, *down]].sum())
        bars.append((f"{others:,} others together", amount, FAINT))
    rest = result.non_sample_contributions(query, output)
    return [*bars, *((name, amount, ORANGE) for name, amount in rest.items())]


def pushers(
    result: PathKernel, query: int, output: int, *, count: int = 5
) -> tuple[list[int], list[int]]:
    """Return the samples that pushed a prediction up most, and those that pushed it down most."""
    added = result.samples[query, :, output]
    order = added.argsort(stable=True).tolist()
    up = [k for k in reversed(order) if added[k] > 0][:count]
    return up, [k for k in order if added[k] < 0][:count]


def attribution(
    result: PathKernel,
    query: int = 0,
    output: int | None = None,
    x: Float[Tensor, "n *d"] | None = None,
    *,
    queries: Float[Tensor, "q *d"] | None = None,
    count: int = 5,
    figure: Figure | None = None,
) -> Figure:
    """Return a figure of what made one prediction: samples that pushed it up and down, and how far.

    Args:
        result: The path kernel.
        query: Number of the query.
        output: Number of the output; by default the one that training moved most.
        x: Training inputs; shown as pictures if they are images (n, channels, height, width) or
            squares of pixels.
        queries: Inputs of the queries, to show the one that is meant.
        count: Samples on either side.
        figure: An empty figure to draw on, with constrained layout; a new one by default.
    """
    if not 0 <= query < len(result.samples):
        last = len(result.samples) - 1
        raise ValueError(f"query must lie between 0 and {last}, found {query}: choose another.")
    output = _moved_most(result, query) if output is None else output
    if x is not None and len(x) != result.samples.shape[1]:
        raise ValueError(
            f"x must hold the {result.samples.shape[1]} training inputs, found {len(x)}: "
            "pass those that were given to path_kernel."
        )
    with styled():
        no_image = x is None or picture(x[0]) is None
        if figure is None:
            figure = Figure(figsize=(5.2 if no_image else 9.2, 3.6), layout="constrained")
        if x is None or no_image:
            waterfall(result, query, output, figure.add_subplot(), count=count)
            return figure
        halves: Any = figure.subfigures(1, 2, width_ratios=(1.0, 1.15))
        waterfall(result, query, output, halves[0].add_subplot(), count=count)
        _thumbnails(halves[1], result, (query, output), x, queries, count)
    return figure


def _thumbnails(
    figure: SubFigure,
    result: PathKernel,
    which: tuple[int, int],
    x: Tensor,
    queries: Tensor | None,
    count: int,
) -> None:
    """Show the query, and beside it the samples that pushed it up (above) and down (below)."""
    query, output = which
    grid = figure.add_gridspec(2, count + 1)
    start, end = (float(part[query, output]) for part in (result.initial, result.final))
    first = figure.add_subplot(grid[:, 0])
    if queries is None:
        first.set_axis_off()
    else:
        show(first, queries[query], f"query {query}\n{start:.3g} to {end:.3g}", INK)
    sides = zip(pushers(result, query, output, count=count), (BLUE, VERMILION), strict=True)
    for row, (samples, color) in enumerate(sides):
        for k in range(count):
            ax = figure.add_subplot(grid[row, k + 1])
            if k >= len(samples):
                ax.set_axis_off()
                continue
            amount = float(result.samples[query, samples[k], output])
            show(ax, x[samples[k]], f"{amount:+.3g}", color)
            ax.set_xlabel(f"sample {samples[k]}", fontsize=6.5)


def show(ax: Axes, x: Tensor, title: str, color: str) -> None:
    """Show an input as a picture in a frame."""
    pixels = picture(x)
    if pixels is None:
        raise ValueError(
            f"pictures have shape (channels, height, width) or are squares of pixels, found "
            f"{tuple(x.shape)}: leave them out."
        )
    ax.imshow(pixels, cmap="gray_r" if pixels.ndim == 2 else None)
    ax.set(xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set(visible=True, color=color)
    ax.set_title(title, color=color, fontsize=7.5)


def pixels_of(x: Tensor) -> Tensor | None:
    """Return an input as (channels, height, width), one channel or three; None if it is no picture.

    Channels may be first or last; a row of numbers may be a square of pixels.
    """
    values = x.detach().double().cpu()
    side = math.isqrt(values.numel())
    if values.ndim == 1 and side > 2 and side**2 == values.numel():
        values = values.reshape(1, side, side)
    if values.ndim == 3 and len(values) not in (1, 3):
        values = values.movedim(2, 0)
    return values if values.ndim == 3 and len(values) in (1, 3) else None


def picture(x: Tensor) -> npt.NDArray[Any] | None:
    """Return an input as a picture of grey or of three colours, from 0 to 1; None if it is none."""
    values = pixels_of(x)
    if values is None:
        return None
    values = (values - values.min()) / (values.max() - values.min()).clamp(min=1e-12)
    shown: npt.NDArray[Any] = (values[0] if len(values) == 1 else values.movedim(0, 2)).numpy()
    return shown
