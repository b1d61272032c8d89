"""The figures of tangent kernels: against the number of parameters, and over training."""

from collections.abc import Callable
from typing import Any

import numpy as np

from inscape.lab.experiment import Figure
from inscape.lab.records import Record, Records

TITLES = {
    "mlp-2": "2-layer MLP",
    "mlp-4": "4-layer MLP",
    "conv": "ConvNet",
    "wide-resnet": "WideResNet-16",
}


def at_end(name: str, choice: str = "random") -> Callable[[Record], float | None]:
    """Return the function that reads a column of a kernel at the end of training."""

    def read(record: Record) -> float | None:
        value = float(record.values[choice][name][-1])
        return value if np.isfinite(value) else None

    return read


def by_parameters(
    records: Records,
    panels_: tuple[tuple[str, Any, str], ...],
    *,
    logarithmic: tuple[str, ...] = (),
) -> Figure:
    """Draw numbers against the number of parameters, a line for each architecture."""
    from inscape.figures.panels import panels
    from inscape.figures.style import CATEGORIES, quiet_grid

    figure, axes = panels(len(panels_), columns=len(panels_), size=(3.2, 2.7))
    for ax, (title, of, label) in zip(axes, panels_, strict=True):
        for colour, (net, name) in zip(CATEGORIES, TITLES.items(), strict=False):
            own = records.where(net=net)
            groups = [own.where(width=width) for width in own.different("width")]
            groups = [group for group in groups if group.values(of)]
            x = [group[0].values["parameters"] for group in groups]
            for group, at in zip(groups, x, strict=True):
                numbers = group.values(of)
                ax.plot([at] * len(numbers), numbers, "o", ms=2.5, alpha=0.5, color=colour)
            ax.plot(x, [np.mean(g.values(of)) for g in groups], color=colour, label=name)
        ax.set_xscale("log")
        if title in logarithmic:
            ax.set_yscale("log")
        ax.set(title=title, xlabel="parameters", ylabel=label)
        quiet_grid(ax)
    axes[0].legend(fontsize=6.5)
    return figure


def draw_figure_1(records: Records) -> Figure:
    """Draw relative change and correlation against the number of parameters."""
    return by_parameters(
        records,
        (
            ("relative change", at_end("change"), "|K1 - K0| / |K0|"),
            ("correlation", at_end("correlation"), "correlation of K1 and K0"),
            ("images as in the code", at_end("correlation", "sorted"), "correlation of K1 and K0"),
        ),
        logarithmic=("relative change",),
    )


def draw_figure_3(records: Records) -> Figure:
    """Draw norm and correlation of the kernel, and norm of the parameters, over epochs."""
    from inscape.figures.panels import panels
    from inscape.figures.style import CATEGORIES, quiet_grid

    figure, axes = panels(3, columns=3, size=(3.0, 2.7))
    shown = ("norms", "correlation", "parameter_norms")
    for colour, (net, title) in zip(CATEGORIES, TITLES.items(), strict=False):
        own = records.where(net=net)
        own = own.where(width=max(own.different("width"))) if own else own
        for number, record in enumerate(own):
            x = np.array(record.values["epochs measured"])
            for ax, name in zip(axes, shown, strict=True):
                y = np.array(record.values["random"][name])
                y = y if name == "correlation" else y / y[0]
                ax.plot(x, y, "o-", ms=2.5, lw=0.9, color=colour, label=None if number else title)
    titles = ("norm of the kernel", "correlation with the start", "norm of the parameters")
    for ax, title in zip(axes, titles, strict=True):
        ax.set_xscale("symlog", linthresh=1)
        ax.set(title=title, xlabel="epoch")
        quiet_grid(ax)
    axes[0].set(yscale="log", ylabel="relative to the start")
    axes[0].legend(fontsize=6.5)
    return figure


def draw_figure_4(records: Records) -> Figure:
    """Draw cosine similarity and the difference of norms against the number of parameters."""
    return by_parameters(
        records,
        (
            ("cosine similarity", at_end("cosine"), "<K0, K1> / |K0| |K1|"),
            ("difference of norms", at_end("norm_change"), "||K0| - |K1|| / |K0|"),
        ),
        logarithmic=("difference of norms",),
    )


def draw_figure_5(records: Records) -> Figure:
    """Draw test accuracy and the change of the parameters against their number."""
    return by_parameters(
        records,
        (
            ("test accuracy", "accuracy", "%"),
            ("change per parameter", "moved", "root mean square"),
            ("relative change", "relative", "|θ1 - θ0| / |θ0|"),
        ),
        logarithmic=("change per parameter", "relative change"),
    )
