"""Figure 1: maps of the error of ReLU networks by width, and of processes by length scale."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Estimate, Experiment, Trend, Value
from inscape.lab.statistics import bootstrap_estimate, kendall_tau, mean_estimate
from inscape.lab.store import Record
from inscape.papers.klindt import _maps
from inscape.papers.klindt.table_1 import NETS, PROCESSES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT = 1.5


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return regions and ridges by width, and what processes do."""
    found: dict[str, Estimate] = {}
    for name in ("regions", "crossings"):
        if (tau := _tau(records, name)) is not None:
            found[f"{name} with width"] = tau
    for model in (*NETS, *PROCESSES):
        pair = (_maps.by_seed(records, f"mse_{name}", model=model) for name in ("test", "train"))
        if (ratio := _maps.log_ratio(*pair)) is not None:
            found[f"contrast of {model}"] = ratio
        pair = (_maps.by_seed(records, name, model=model) for name in ("antidiagonal", "mse_ood"))
        if (ratio := _maps.log_ratio(*pair)) is not None:
            found[f"antidiagonal of {model}"] = ratio
    if scales := _maps.by_seed(records, "length_scale", model="gp-fitted"):
        found["best length scale"] = mean_estimate(np.log10(list(scales.values())).tolist())
    return found


def _tau(records: Sequence[Record], name: str) -> Estimate | None:
    columns = [_maps.by_seed(records, name, model=model) for model in NETS]
    seeds = sorted(set.intersection(*(set(column) for column in columns)))
    if not seeds:
        return None
    lines = [[column[seed] for column in columns] for seed in seeds]

    def tau(drawn: Sequence[Any]) -> float:
        return kendall_tau(range(len(NETS)), np.mean(np.array(drawn), axis=0))

    return bootstrap_estimate(lines, tau, draws=1000)


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how many regions there are, and how often the error changes its sign."""
    said = []
    for name, words in (
        ("regions", "linear regions in the square"),
        ("crossings", "changes of the error's sign on a way of length 1"),
    ):
        means = [
            (model, np.mean(list(values.values())))
            for model in (*NETS, *(PROCESSES if name == "crossings" else ()))
            if (values := _maps.by_seed(records, name, model=model))
        ]
        if means:
            listed = ", ".join(f"{model} {mean:.3g}" for model, mean in means)
            said.append(f"Mean number of {words}: {listed}.")
    said.append("The exact solution of Eq. (1) has 4 regions.")
    return said


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the maps of the first repeat, networks above and processes below."""
    rows = []
    for models, sign in ((NETS, "ReLU, N"), (PROCESSES, "GP, λ")):
        found = [(m.partition("-")[2], _maps.first_map(records, model=m)) for m in models]
        row = [(f"{sign} = {size}", record) for size, record in found if record is not None]
        rows += [row] if row else []
    return _maps.rows_of_maps(rows, LIMIT)


EXPERIMENT = Experiment(
    shows="Figure 1",
    title="Maps of the error: ReLU networks of four widths, processes of four length scales",
    same_as="table-1",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="more-regions",
            says="Extra width is spent on more regions.",
            of="regions with width",
            side="above",
            bound=0.9,
            test="Kendall's tau of width and mean number of regions, bootstrap over seeds",
            source="section 3.1",
        ),
        Trend(
            name="finer-cut",
            says="With width the map is cut more finely, not more simply.",
            of="crossings with width",
            side="above",
            bound=0.6,
            test="Kendall's tau of width and mean changes of the error's sign, bootstrap over "
            "seeds",
            source="section 3.1, figure 1",
        ),
        Trend(
            name="ridges",
            says="Training points lie on ridges of good performance: the widest network is more "
            "than ten times as good there as elsewhere on the disc.",
            of="contrast of relu-1024",
            side="above",
            bound=1.0,
            test="log10 of test error over training error, bootstrap over seeds",
            source="section 3.1",
        ),
        Trend(
            name="process-ridges",
            says="A process with too short a length scale emulates the ridges.",
            of="contrast of gp-0.2",
            side="above",
            bound=1.0,
            test="log10 of test error over training error, bootstrap over seeds",
            source="section 3.1",
        ),
        Trend(
            name="no-ridges",
            says="A process with a long length scale has no ridges.",
            of="contrast of gp-50",
            side="below",
            bound=1.0,
            test="log10 of test error over training error, bootstrap over seeds",
            source="figure 1, bottom right",
        ),
        Trend(
            name="antidiagonal",
            says="The process returns to zero far from data, so that the anti-diagonal is fitted.",
            of="antidiagonal of gp-0.2",
            side="below",
            bound=-1.0,
            test="log10 of the error there over that beside the disc, bootstrap over seeds",
            source="section 3.1, Eq. (4)",
        ),
        Value(
            name="best-length-scale",
            says="The length scale with the largest likelihood is near 150.",
            of="best length scale",
            published=float(np.log10(150)),
            tolerance=0.3,
            side="above",
            bound=1.0,
            at=("section 3.1", "log10 of the length scale"),
            source="section 3.1; within a factor of 2",
        ),
    ),
    errata=("K8",),
    notes=(
        "Colours are log10 of the squared error, bright where it is small (K8); each map has its "
        "own scale.",
        "The likelihood is searched with amplitudes from 1e-5 to 1e5, as scikit-learn does by "
        "default, and so for length scales.",
    ),
)
