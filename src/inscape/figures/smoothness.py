"""Figures of the smoothness family."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from inscape.figures.distribution import distribution
from inscape.figures.drawing import painter
from inscape.figures.style import (
    BLUE,
    CATEGORIES,
    FAINT,
    INK,
    MAGNITUDE,
    VERMILION,
    outputs,
    quiet_grid,
)
from inscape.smoothness import (
    EffectiveLengthScale,
    GradientDeflection,
    GradientNorm,
    GradientPathLength,
    PathLength,
    Rugosity,
    SlopeVariation,
    TotalVariation,
    WeightsProduct,
)

#: More dots than this are drawn as hexagons: neither the eye nor a file takes more.
DOTS = 3000
#: More knots than this are not marked one by one.
KNOTS = 150


@painter.register(EffectiveLengthScale)
def effective_length_scale(result: EffectiveLengthScale, ax: Axes) -> None:
    """Draw the standard deviation along lines against that of a process of this length scale.

    The process has the same slope along that line, which is as long; on the dashed line both
    are equal.
    """
    expected, varies = result.expected().numpy(), result.variances.sum(1).sqrt().numpy()
    positive = (expected > 0) & (varies > 0)
    ax.plot(expected[positive], varies[positive], "o", color=BLUE, alpha=0.4, markersize=4, mew=0)
    ax.set(xscale="log", yscale="log")
    ends = np.array([expected[positive].min(), expected[positive].max()])
    meaning = "as good as straight: over " if result.straight else "length scale: "
    label = f"{meaning}{result.value:.3g}"
    ax.plot(ends, ends, color=VERMILION, linestyle=(0, (5, 2)), label=label)
    if not result.straight:
        usual = float(result.expected().norm())
        low, high = (float(result.expected(end).norm()) / usual for end in result.interval.tolist())
        ax.fill_between(ends, low * ends, high * ends, color=VERMILION, alpha=0.2, linewidth=0)
    ax.set(
        xlabel="standard deviation of a process of this length scale",
        ylabel="standard deviation of the output\nalong a line",
    )
    quiet_grid(ax)
    ax.legend()


@painter.register(GradientNorm)
def gradient_norm(result: GradientNorm, ax: Axes) -> None:
    """Draw how the norm of the gradient is distributed over the points."""
    distribution(ax, result.norms, result.summary())
    ax.set(xlabel="norm of the gradient at a point", ylabel="points")


@painter.register(GradientPathLength)
def gradient_path_length(result: GradientPathLength, ax: Axes) -> None:
    """Draw how the change of the gradient is distributed over the lines between two points."""
    distribution(ax, result.lengths, result.summary())
    ax.set(xlabel="change of the gradient along a line between two points", ylabel="lines")


@painter.register(GradientDeflection)
def gradient_deflection(result: GradientDeflection, ax: Axes) -> None:
    """Draw how the standard deviation of the slope is distributed over the lines."""
    distribution(ax, result.deflections, result.summary())
    ax.set(xlabel="standard deviation of the slope along a line", ylabel="lines")


@painter.register(Rugosity)
def rugosity(result: Rugosity, ax: Axes) -> None:
    """Draw how the change of the slope around a point is distributed over the points."""
    distribution(ax, result.changes, result.summary())
    ax.set(xlabel="change of the slope per unit, around a point", ylabel="points")


@painter.register(PathLength)
def path_length(result: PathLength, ax: Axes) -> None:
    """Draw the path of the output against the distance of its ends; the line is a straight path."""
    straight, paths = result.distances.cpu().numpy(), result.lengths.cpu().numpy()
    if len(paths) > DOTS:
        ax.hexbin(straight, paths, gridsize=45, mincnt=1, cmap=MAGNITUDE, bins="log")
    else:
        ax.scatter(straight, paths, s=9, color=BLUE, alpha=0.35, linewidths=0)
    high = 1.05 * float(straight.max()) or 1.0
    ax.set(xlim=(0, high), ylim=(0, 1.05 * max(high, float(paths.max()))))
    ax.plot([0, high], [0, high], color=INK, linewidth=1, linestyle=(0, (5, 2)))
    _along(ax, "straight path", (0.98 * high, 0.98 * high), 1.0, ha="right")
    ax.set(xlabel="distance between the outputs at both ends", ylabel="length of the output's path")
    quiet_grid(ax)


@painter.register(WeightsProduct)
def weights_product(result: WeightsProduct, ax: Axes) -> None:
    """Draw what fraction of the sum the largest hidden units make up."""
    terms = result.terms.double().cpu().sort(descending=True).values
    total = float(terms.sum())
    fractions = [0.0, *(terms.cumsum(0) / (total or 1.0)).tolist()]
    units = range(len(fractions))
    ax.plot([0, len(terms)], [0, 1], color=FAINT, linewidth=1, linestyle=(0, (5, 2)))
    ax.plot(units, fractions, color=BLUE, marker="o" if len(terms) <= 40 else "", markersize=3)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set(xlim=(0, len(terms)), ylim=(0, 1.03))
    _along(ax, "if all units were equal", (0.6 * len(terms), 0.6), 1 / len(terms), ha="center")
    ax.set(xlabel="hidden units, largest first", ylabel="fraction of the weights product")
    quiet_grid(ax)


@painter.register(TotalVariation)
def total_variation(result: TotalVariation, ax: Axes) -> None:
    """Draw the function, with a dot at each knot where it is known to be straight between them."""
    at, values = result.at.cpu().numpy(), result.values.cpu().numpy()
    dot = "o" if result.exact and len(at) <= KNOTS else ""
    for k, look in enumerate(outputs(values.shape[1])):
        ax.plot(at, values[:, k], marker=dot, markersize=3, **look)
    ax.set(xlabel="input", ylabel="output")
    _legend(ax, values.shape[1])


@painter.register(SlopeVariation)
def slope_variation(result: SlopeVariation, ax: Axes) -> None:
    """Draw the slope, in steps where the function is piecewise linear."""
    at, slopes = result.at.cpu().numpy(), result.slopes.cpu().numpy()
    ax.axhline(0, color=FAINT, linewidth=0.7)
    for k, look in enumerate(outputs(slopes.shape[1])):
        if result.exact:
            ax.stairs(slopes[:, k], at, baseline=None, **look)
        else:
            ax.plot(at, slopes[:, k], **look)
    ax.set(xlabel="input", ylabel="slope of the output")
    _legend(ax, slopes.shape[1])


def _legend(ax: Axes, count: int) -> None:
    quiet_grid(ax)
    if 1 < count <= len(CATEGORIES):
        ax.legend(loc="best", fontsize=8)


def _along(ax: Axes, text: str, at: tuple[float, float], slope: float, *, ha: str) -> None:
    """Write below a straight line and along it, whatever the shape of the axes."""
    ax.text(
        *at,
        f"\n{text}",  # the empty line keeps the words off the line that they speak of
        rotation=math.degrees(math.atan(slope)),
        rotation_mode="anchor",
        transform_rotates_text=True,
        linespacing=0.55,
        ha=ha,
        va="top",
        color=FAINT,
    )
