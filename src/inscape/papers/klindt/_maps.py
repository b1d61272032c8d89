"""Pictures of errors over the plane, and a few words about numbers that span many decades."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Figure, Panel
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.image import AxesImage

#: Decades of squared error between the darkest and the brightest colour of a map at most.
DECADES = 8


def error_map(
    ax: Panel, values: npt.NDArray[Any], limit: float, *, low: float, high: float
) -> "AxesImage":
    """Draw log10 of the squared error; brighter is better, as in the paper (K8)."""
    image = ax.imshow(
        np.asarray(values, float),
        extent=(-limit, limit, -limit, limit),
        origin="lower",
        cmap="cividis_r",
        vmin=low,
        vmax=high,
        interpolation="nearest",
        rasterized=True,
    )
    ax.set_xticks([-1, 0, 1])
    ax.set_yticks([-1, 0, 1])
    return image


def dots(ax: Panel, x: npt.NDArray[Any]) -> None:
    """Draw the training points over a map."""
    from inscape.figures.style import VERMILION

    ax.plot(x[:, 0], x[:, 1], ".", color=VERMILION, markersize=1.6, markeredgewidth=0)


def rows_of_maps(
    rows: Sequence[Mapping[str, Record | None]], limit: float, *, with_dots: bool = True
) -> Figure:
    """Draw maps in rows, each under its title and with a scale of colours of its own."""
    from matplotlib.figure import Figure

    rows = [held for row in rows if (held := {t: r for t, r in row.items() if r is not None})]
    columns = max(map(len, rows))
    figure = Figure(figsize=(2.35 * columns, 2.05 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False, sharex=True, sharey=True)
    for line, row in zip(axes, rows, strict=True):
        for ax in line[len(row) :]:
            ax.set_visible(False)
        for ax, (title, record) in zip(line, row.items(), strict=False):
            assert record is not None  # those without a map were left out
            values = np.asarray(record.values["map"], float)
            low, high = np.quantile(values, [0.02, 0.995])
            image = error_map(ax, values, limit, low=max(low, high - DECADES), high=high)
            if with_dots and "x" in record.values:
                dots(ax, record.values["x"])
            ax.set_title(title)
            bar = figure.colorbar(image, ax=ax, shrink=0.9, pad=0.02, aspect=25)
            bar.ax.tick_params(labelsize=6.5)
        bar.set_label("log10 squared error", fontsize=7.5)
    for ax in axes[-1]:
        ax.set_xlabel("x1")
    for ax in axes[:, 0]:
        ax.set_ylabel("x2")
    return figure
