"""Figures of curvature: its distribution, its ends, its forms, and the gradient of each layer."""

import numpy as np
import torch
from matplotlib.axes import Axes

from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, INK, ORANGE, VERMILION, quiet_grid
from inscape.landscape import HessianDensity, HessianExtremes, Sharpness, Stationarity
from inscape.landscape.sharpness import FORMS

#: Width of a drawn eigenvalue, as a fraction of the axis, and the points of the curve.
BLUR, POINTS = 0.01, 400
#: Most parameter tensors that are named side by side.
TENSORS = 16
#: Fraction of the largest curvature below which the axis of signed curvatures is linear.
LINEAR = 1e-2


@painter.register(HessianDensity)
def hessian_density(result: HessianDensity, ax: Axes) -> None:
    """Draw the distribution of all curvatures, on a logarithmic axis of densities."""
    low, high = float(result.nodes.min()), float(result.nodes.max())
    width = max(high - low, 1e-12 * max(abs(low), abs(high)), 1e-300)
    at = torch.linspace(low - 5 * BLUR * width, high + 5 * BLUR * width, POINTS).double()
    distances = (at[:, None, None] - result.nodes) / (BLUR * width)
    peaks = torch.exp(-distances.square() / 2) * result.weights
    density = peaks.sum((1, 2)) / len(result.nodes) / (BLUR * width * np.sqrt(2 * np.pi))
    shown = density.clamp(min=1e-6 * float(density.max()))
    ax.fill_between(at.tolist(), shown.tolist(), float(shown.min()), color=BLUE, alpha=0.25)
    ax.plot(at.tolist(), shown.tolist(), color=BLUE)
    ax.axvline(0, color=FAINT, linewidth=0.8)
    ax.set(yscale="log", ylim=(float(shown.min()), None), xlabel="curvature", ylabel="density")
    quiet_grid(ax)


@painter.register(HessianExtremes)
def hessian_extremes(result: HessianExtremes, ax: Axes) -> None:
    """Draw the smallest and the largest curvature, with the bounds that none passes."""
    for value, bound, colour, label in (
        (result.smallest, result.below, VERMILION, "smallest"),
        (result.largest, result.above, BLUE, "largest"),
    ):
        if np.isfinite(bound):
            ax.plot([value, bound], [0, 0], color=colour, alpha=0.4, linewidth=3)
            ax.plot(bound, 0, "|", color=colour, markersize=16)
        ax.plot(value, 0, "o", color=colour, label=f"{label}: {value:.3g}")
    size = max(abs(result.smallest), abs(result.largest), 1e-300)
    ax.set_xscale("symlog", linthresh=max(LINEAR * size, 10 * result.rounding))
    ax.axvline(0, color=FAINT, linewidth=0.8)
    certain = "proved" if result.proof == "inertia" else f"probability {1 - result.failure:.1%}"
    ax.set(xlabel=f"curvature; none lies beyond the bars ({certain})", yticks=[], ylim=(-1, 1))
    ax.legend(loc="upper center")


@painter.register(Sharpness)
def sharpness(result: Sharpness, ax: Axes) -> None:
    """Draw three forms of sharpness, and those of the same function with one layer rescaled."""
    places = np.arange(len(FORMS))
    values = [max(number, 1e-300) for number in result.values.tolist()]
    ax.plot(places - 0.1, values, "o", color=BLUE, markersize=7, label="as it is")
    if result.rescaled is not None:
        other = [max(number, 1e-300) for number in result.rescaled.tolist()]
        ax.plot(places + 0.1, other, "D", color=ORANGE, label="the same function, rescaled")
        pairs = zip(places, values, other, strict=True)
        for at, before, after in pairs:
            ax.plot([at - 0.1, at + 0.1], [before, after], color=FAINT, linewidth=0.9)
    ax.set_xticks(places, FORMS)
    ax.set(yscale="log", ylabel="largest curvature", xlim=(-0.5, len(FORMS) - 0.5))
    ax.margins(y=0.2)
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=7.5)
    quiet_grid(ax)


@painter.register(Stationarity)
def stationarity(result: Stationarity, ax: Axes) -> None:
    """Draw the norm of the gradient of each parameter tensor, the longest first."""
    order = result.norms.argsort(descending=True, stable=True)[:TENSORS].sort().values.tolist()
    names = [result.names[k] for k in order]
    ax.barh(names, [float(result.norms[k]) for k in order], color=BLUE, alpha=0.6, height=0.6)
    ax.invert_yaxis()
    note = "" if len(order) == len(result.names) else f" (the {TENSORS} longest)"
    ax.axvline(result.total, color=INK, linewidth=1.0)
    ax.set(xlabel=f"norm of the gradient{note}; line: of all parameters", xlim=(0, None))
    quiet_grid(ax, "x")
