"""Figures of the robustness family."""

import math

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, SIGNED, quiet_grid
from inscape.robustness import Robustness
from inscape.robustness.windows import grid_of

#: The widest range of budgets on a linear axis.
EVEN = 20.0
#: Rows of examples, the fraction of the axes that one picture takes, and where the lowest may lie.
ROWS, PICTURE = 3, (0.13, 0.185)
LOWER, UPPER = (0.02, 0.02), (0.6, 0.42)
NORMS = {"l2": "length of the step (L2)", "linf": "largest change of an input (L∞)"}
NOISE = "standard deviation of the noise"


@painter.register(Robustness)
def robustness(result: Robustness, ax: Axes) -> None:
    """Draw the accuracy against the length of the step, and the most easily fooled examples."""
    budgets, percents = result.budgets.tolist(), (100 * result.accuracy).tolist()
    low, high = (100 * result.intervals).T.tolist()
    if budgets[-1] > EVEN * budgets[1]:
        ax.set_xscale("symlog", linthresh=budgets[1], linscale=0.5)
        ax.set_xticks([0.0, *_decades(budgets[1], budgets[-1])])
    ax.fill_between(budgets, low, high, color=BLUE, alpha=0.18, linewidth=0)
    ax.plot(budgets, percents, "o-", color=BLUE, markersize=3.5)
    ax.set(xlabel=NORMS.get(result.norm, NOISE), ylabel="accuracy (%)")
    ax.set(ylim=(-3, 103), title=f"{result.attack}, {len(result.lengths)} points")
    if result.warnings:
        ax.set_title(f"{result.attack}, {len(result.lengths)} points; read the warning")
    quiet_grid(ax)
    corner = _free_corner(ax, budgets, percents)
    if corner == LOWER or not has_pictures(result):
        _halfway(result, ax)
    if has_pictures(result):
        _examples(result, ax, corner)


def _decades(low: float, high: float) -> list[float]:
    """Return the powers of ten between two budgets; smaller ones would stand upon the zero."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    return [10.0**k for k in range(first, last + 1)]


def _free_corner(ax: Axes, budgets: list[float], percents: list[float]) -> tuple[float, float]:
    """Return the corner that the curve leaves free for pictures."""
    places = ax.transData.transform(list(zip(budgets, percents, strict=True)))
    across = ax.transAxes.inverted().transform(places)
    ends = LOWER[0] + 3 * PICTURE[0], LOWER[1] + ROWS * PICTURE[1]
    return UPPER if any(x < ends[0] and y < ends[1] for x, y in across.tolist()) else LOWER


def _halfway(result: Robustness, ax: Axes) -> None:
    """Mark half of the usual distance to a point of another class."""
    half = result.rival / 2
    if result.norm == "std" or not 0 < half <= 1.01 * float(result.budgets[-1]):
        return
    ax.axvline(half, color=FAINT, linewidth=0.9, linestyle=(0, (5, 2)))
    low = float(result.accuracy[-1]) > 0.5  # where the curve is not
    ax.annotate(
        "halfway to\nanother class",
        (half, 0 if low else 1),
        (-4, 4 if low else -2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right",
        va="bottom" if low else "top",
        fontsize=7,
        color=FAINT,
    )


def has_pictures(result: Robustness) -> bool:
    """Tell whether there are examples that can be seen as images."""
    grid = grid_of(tuple(result.before.shape[1:]))
    return len(result.examples) > 0 and grid[1] > 1 and grid[0] in (1, 3)


def _examples(result: Robustness, ax: Axes, corner: tuple[float, float]) -> None:
    """Draw the images with the smallest adversarial steps: before, the step, and after."""
    grid = grid_of(tuple(result.before.shape[1:]))
    width, height = PICTURE
    for k in range(min(ROWS, len(result.examples))):
        before, after = (image(part[k], grid) for part in (result.before, result.after))
        for column, (picture, word) in enumerate(_row(result, k, before, after)):
            left, low = corner[0] + column * width, corner[1] + (ROWS - 1 - k) * height
            inset = ax.inset_axes((left, low, 0.95 * width, 0.75 * height))
            inset.set(xticks=[], yticks=[])
            inset.spines[:].set_visible(False)
            if column == 1:
                most = float(picture.abs().max()) or 1.0
                inset.imshow(_shown(picture, most).numpy(), cmap=SIGNED, vmin=-most, vmax=most)
            else:
                inset.imshow(_within(picture, _limits(result)).numpy(), cmap="gray", vmin=0, vmax=1)
            inset.set_title(word, fontsize=6.5, pad=1.5)


def _row(
    result: Robustness, k: int, before: Tensor, after: Tensor
) -> list[tuple[Float[Tensor, "h w c"], str]]:
    step = after - before
    low, high = _limits(result)
    times = (high - low) / 2 / (float(step.abs().max()) or 1.0)
    words = (
        f"class {int(result.label[k])}",
        f"step x {times:.2g}" if times >= 1 else "step",
        f"now {int(result.answer[k])}" if result.answer[k] >= 0 else "no number",
    )
    return list(zip((before, step, after), words, strict=True))


def image(point: Float[Tensor, "*d"], grid: tuple[int, int, int]) -> Float[Tensor, "h w c"]:
    """Return a point as a picture with its channels last."""
    return point.reshape(grid).permute(1, 2, 0)


def _limits(result: Robustness) -> tuple[float, float]:
    if result.bounds is not None:
        return result.bounds
    return float(result.before.min()), float(result.before.max())


def _within(picture: Tensor, limits: tuple[float, float]) -> Tensor:
    low, high = limits
    return ((picture - low) / ((high - low) or 1.0)).clamp(0, 1)


def _shown(step: Float[Tensor, "h w c"], most: float) -> Tensor:
    """Return a step in one channel by its sign, in three as a colour around grey."""
    return step[..., 0] if step.shape[-1] == 1 else torch.clamp(0.5 + step / (2 * most), 0, 1)
