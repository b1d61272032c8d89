"""Figures of the kernels family: kernels, neighbours, drift, posteriors and samples."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Integer
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from inscape.figures.attribution import attribution as attribution
from inscape.figures.attribution import show
from inscape.figures.attribution import waterfall as waterfall
from inscape.figures.drawing import painter
from inscape.figures.style import (
    BLUE,
    CATEGORIES,
    FAINT,
    GREEN,
    INK,
    MAGNITUDE,
    RULE,
    SIGNED,
    VERMILION,
    new_axes,
    quiet_grid,
    styled,
)
from inscape.kernels import (
    DriftAcrossWidths,
    GaussianProcess,
    KernelDrift,
    Neighbours,
    TangentKernel,
)

#: Points at which the posterior of a process is drawn.
GRID = 400


@painter.register(TangentKernel)
def _tangent_kernel(result: TangentKernel, ax: Axes) -> None:
    """Draw the trace of the tangent kernel between all points."""
    matrix(result, ax)


def matrix(
    result: TangentKernel, ax: Axes | None = None, *, labels: Integer[Tensor, " n"] | None = None
) -> Axes:
    """Draw the trace of a tangent kernel as a picture, and return the axes.

    Args:
        result: The kernel.
        ax: Axes to draw on; new ones by default.
        labels: Classes of the points of one set, which bring points of a class together.
    """
    with styled():
        ax = new_axes() if ax is None else ax
        kernel = result.trace.detach().double().cpu()
        if labels is not None:
            kernel = _ordered(kernel, labels.cpu(), ax)
        low, high = float(kernel.min()), float(kernel.max())
        far = max(-low, high)
        look: dict[str, Any] = {"cmap": MAGNITUDE, "vmin": 0.0, "vmax": high}
        if low < -1e-9 * far:
            look = {"cmap": SIGNED, "vmin": -far, "vmax": far}
        picture = ax.imshow(kernel.numpy(), interpolation="nearest", zorder=1, **look)
        figure = ax.get_figure(root=True)
        if figure is not None:
            name = "cosine of gradients" if result.normalised else "inner product of gradients"
            bar = figure.colorbar(picture, ax=ax, label=name)
            bar.outline.set_visible(False)
        for side in ax.spines.values():
            side.set_visible(False)
        ax.tick_params(length=0)
        if labels is None:
            ax.set(xlabel="point", ylabel="point")
    return ax


def _ordered(kernel: Tensor, labels: Tensor, ax: Axes) -> Tensor:
    """Bring the points of a class together, draw lines between classes and name them."""
    if kernel.shape != (len(labels), len(labels)):
        raise ValueError(
            f"labels must belong to the points of one set, found {len(labels)} labels for a kernel "
            f"of shape {tuple(kernel.shape)}: leave labels or others out."
        )
    order = labels.argsort(stable=True)
    classes, counts = torch.unique(labels, return_counts=True)
    ends = counts.cumsum(0)
    for end in ends[:-1].tolist():
        ax.axhline(end - 0.5, color="white", linewidth=0.8, zorder=2)
        ax.axvline(end - 0.5, color="white", linewidth=0.8, zorder=2)
    middles = (ends - counts / 2 - 0.5).tolist()
    names = [str(label) for label in classes.tolist()]
    ax.set_xticks(middles, names)
    ax.set_yticks(middles, names)
    ax.set(xlabel="class", ylabel="class")
    return kernel[order][:, order]


@painter.register(Neighbours)
def _neighbours(result: Neighbours, ax: Axes) -> None:
    """Draw how many nearest neighbours by kernel are also nearest by distance."""
    count = result.by_kernel.shape[1]
    shared = (result.agreement.cpu() * count).round().long()
    heights = torch.bincount(shared, minlength=count + 1).tolist()
    ax.bar(range(count + 1), heights, color=BLUE, alpha=0.6, width=0.8)
    mean = float(result.agreement.mean()) * count
    ax.axvline(mean, color=VERMILION, linestyle=(0, (5, 2)), label=f"mean: {mean:.3g}")
    chance = result.chance * count
    ax.axvline(chance, color=FAINT, linestyle=(0, (1, 1.5)), label=f"by chance: {chance:.3g}")
    name = f"of the {count} nearest by tangent kernel,\nas many are nearest by distance"
    ax.set(xlabel=name, ylabel="queries")
    quiet_grid(ax)
    ax.legend()


def nearest(
    result: Neighbours,
    x: Float[Tensor, "n *d"],
    queries: Float[Tensor, "q *d"],
    *,
    query: int = 0,
) -> Figure:
    """Return a figure of a query and its neighbours by kernel (above) and distance (below)."""
    count = min(8, result.by_kernel.shape[1])
    lists = (result.by_kernel[query], result.by_distance[query])
    amounts = (result.cosines[query], result.distances[query])
    with styled():
        figure = Figure(figsize=(1.0 + 0.95 * count, 2.6), layout="constrained")
        grid = figure.add_gridspec(2, count + 1)
        show(figure.add_subplot(grid[:, 0]), queries[query], f"query {query}", INK)
        for row, color in enumerate((BLUE, VERMILION)):
            for k in range(count):
                other, amount = int(lists[row][k]), float(amounts[row][k])
                ax = figure.add_subplot(grid[row, k + 1])
                title = f"cos {amount:.3f}" if row == 0 else f"dist {amount:.2f}"
                both = other in lists[1 - row][:count].tolist()
                show(ax, x[other], title, color)
                ax.set_xlabel(f"{other} (both)" if both else str(other), fontsize=6.5)
    return figure


def cloud(
    places: Float64[Tensor, "n 2"], labels: Integer[Tensor, " n"], ax: Axes | None = None
) -> Axes:
    """Draw places in the plane, such as ``embedding`` gives, in the colours of their classes."""
    with styled():
        ax = new_axes() if ax is None else ax
        classes = torch.unique(labels).tolist()
        for k, label in enumerate(classes):
            members = places[labels == label].numpy()
            many = len(classes) > len(CATEGORIES)
            mark = f"${label}$" if many else "osD^vPX"[k % 7]
            look: dict[str, Any] = {"s": 22 if many else 12, "linewidths": 0}
            color = CATEGORIES[k % len(CATEGORIES)]
            ax.scatter(
                members[:, 0], members[:, 1], marker=mark, color=color, label=str(label), **look
            )
        ax.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
        ax.legend(title="class", fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


@painter.register(KernelDrift)
def _kernel_drift(result: KernelDrift, ax: Axes) -> None:
    """Draw how the tangent kernel leaves its start (strong lines) and comes to its end (faint)."""
    steps = result.steps.numpy()
    looks = (("correlation", GREEN, "s"), ("cosine", BLUE, "o"), ("change", VERMILION, "^"))
    for name, color, mark in looks:
        values = getattr(result, name).numpy()
        label = f"{name}: {values[-1, 0]:.3g}"
        ax.plot(steps, values[:, 0], color=color, marker=mark, markersize=3, label=label)
        ax.plot(steps, values[:, 1], color=color, linewidth=0.8, linestyle=(0, (5, 2)), alpha=0.6)
    ax.axhline(0, color=RULE, linewidth=0.6)
    ax.set(xlabel="step", ylabel="against the start\n(dashed: against the end)")
    ax.set_title(f"tangent kernel of {result.points} points")
    quiet_grid(ax)
    ax.legend()


@painter.register(DriftAcrossWidths)
def _drift_across_widths(result: DriftAcrossWidths, ax: Axes) -> None:
    """Draw how far the kernel of each network moved against its width, and the fitted power law."""
    widths, change = result.widths.double(), result.change
    ax.loglog(widths, change, "^", color=VERMILION, markersize=4)
    middle = change.log().mean() - result.power * widths.log().mean()
    ends = torch.stack([widths.min(), widths.max()])
    span = "" if result.low is None else f" [{result.low:.2f}, {result.high:.2f}]"
    ax.plot(ends, middle.exp() * ends**result.power, color=INK, linewidth=0.8)
    ax.set_title(f"power of the width {result.power:.2f}{span}")
    ax.set(xlabel="width", ylabel="change of the kernel in training")
    quiet_grid(ax)


@painter.register(GaussianProcess)
def _gaussian_process(result: GaussianProcess, ax: Axes) -> None:
    """Draw mean and two standard deviations for one input; else leave-one-out predictions."""
    if result.x[0].numel() == 1 and result.y[0].numel() == 1:
        posterior(result, ax)
        return
    mean, variance = result.leave_one_out()
    labels, means = (part.reshape(len(part), -1).numpy() for part in (result.y, mean))
    wide = 2 * variance.sqrt().numpy()
    for c in range(labels.shape[1]):
        color = CATEGORIES[c % len(CATEGORIES)]
        look: dict[str, Any] = {"fmt": "o", "markersize": 2.5, "elinewidth": 0.5, "alpha": 0.7}
        ax.errorbar(labels[:, c], means[:, c], yerr=wide, color=color, **look)
    ends = [float(labels.min()), float(labels.max())]
    ax.plot(ends, ends, color=FAINT, linewidth=0.8)
    ax.set(xlabel="label", ylabel="as all other points predict it\n(bars: two standard deviations)")


def posterior(
    result: GaussianProcess,
    ax: Axes | None = None,
    *,
    at: Float[Tensor, "m ..."] | None = None,
    color: str = BLUE,
    label: str | None = None,
) -> Axes:
    """Draw the posterior of a process of one input: mean, two standard deviations, and the data.

    Args:
        result: A process of one input and one output.
        ax: Axes to draw on; new ones by default.
        at: Places of the curve, in order; by default a range a quarter wider than the data.
        color: Colour of the mean and of the two standard deviations around it.
        label: Name of the mean in a legend.
    """
    if result.x[0].numel() != 1 or result.y[0].numel() != 1:
        raise ValueError(
            f"the posterior is drawn for one input and one output, found {result.x[0].numel()} and "
            f"{result.y[0].numel()}: use draw."
        )
    low, high = float(result.x.min()), float(result.x.max())
    wide = 0.125 * (high - low or 1.0)
    if at is None:
        at = torch.linspace(low - wide, high + wide, GRID, dtype=torch.float64)
    mean, variance = result.predict(at.reshape(-1, *result.x.shape[1:]))
    places, middle = at.flatten().numpy(), mean.flatten().numpy()
    standard_deviation = np.sqrt(variance.numpy())
    with styled():
        ax = new_axes() if ax is None else ax
        ends = middle - 2 * standard_deviation, middle + 2 * standard_deviation
        ax.fill_between(places, *ends, color=color, alpha=0.18, linewidth=0)
        ax.plot(places, middle, color=color, label=label)
        ax.plot(result.x.flatten().numpy(), result.y.flatten().numpy(), "o", color=INK, ms=3)
        ax.set(xlabel="input", ylabel="output; shaded: two standard deviations")
        quiet_grid(ax)
    return ax
