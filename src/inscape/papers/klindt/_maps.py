"""Pictures of errors over the plane, and a few words about numbers that span many decades."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Estimate
from inscape.lab.intervals import log_ratio_of_means, studentised
from inscape.lab.statistics import STUDENTISED, bootstrap_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

#: Decades of squared error between the darkest and the brightest colour of a map at most.
DECADES = 8


def error_map(
    ax: "Axes", values: npt.NDArray[Any], limit: float, *, low: float, high: float
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


def dots(ax: "Axes", x: npt.NDArray[Any]) -> None:
    """Draw the training points over a map."""
    from inscape.figures.style import VERMILION

    ax.plot(x[:, 0], x[:, 1], ".", color=VERMILION, markersize=1.6, markeredgewidth=0)


def rows_of_maps(
    rows: Sequence[Sequence[tuple[str, Record]]], limit: float, *, with_dots: bool = True
) -> "Figure":
    """Draw maps in rows, each map with a scale of colours of its own."""
    from matplotlib.figure import Figure

    columns = max(map(len, rows))
    figure = Figure(figsize=(2.35 * columns, 2.05 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False, sharex=True, sharey=True)
    for line, row in zip(axes, rows, strict=True):
        for ax in line[len(row) :]:
            ax.set_visible(False)
        for ax, (title, record) in zip(line, row, strict=False):
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


def first_map(records: Sequence[Record], **settings: Any) -> Record | None:
    """Return the record with these settings that holds a map."""
    fits = (r for r in records if "map" in r.values and _has(r, settings))
    return next(fits, None)


def _has(record: Record, settings: dict[str, Any]) -> bool:
    return all(record.settings[name] == value for name, value in settings.items())


def by_seed(records: Sequence[Record], name: str, **settings: Any) -> dict[int, float]:
    """Return a number of the records with these settings, seed by seed."""
    return {r.settings["seed"]: float(r.values[name]) for r in records if _has(r, settings)}


def log_ratio(one: dict[int, float], two: dict[int, float]) -> Estimate | None:
    """Return log10 of the ratio of two means over seeds, over paired seeds."""
    seeds = sorted(one.keys() & two.keys())
    if not seeds or any(not (one[s] > 0 and two[s] > 0) for s in seeds):
        return None

    pairs = np.array([(one[seed], two[seed]) for seed in seeds])
    if len(seeds) >= STUDENTISED:
        low, high, se = (end / np.log(10) for end in studentised(pairs, log_ratio_of_means))
        value = float(np.log10(pairs[:, 0].mean() / pairs[:, 1].mean()))
        method = f"studentised bootstrap over {len(seeds)} seeds"
        return Estimate(
            value=value, low=low, high=high, se=se, n=len(seeds), method=method,
            interval="studentised",
        )  # fmt: skip

    def ratio(pairs: Sequence[npt.NDArray[Any]]) -> float:
        above, below = np.mean(np.array(pairs), axis=0)
        return float(np.log10(above / below))

    return bootstrap_estimate(list(pairs), ratio, draws=1000)
