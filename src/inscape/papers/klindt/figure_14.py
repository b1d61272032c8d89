"""Figure 14: without normalised weights a tanh network is not smooth."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inscape.lab.experiment import Axes, Experiment, Trend
from inscape.lab.store import Record
from inscape.papers.klindt import _maps
from inscape.papers.klindt._arithmetic import LIMIT, TARGETS, analyse, cell, conclude, seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: 1 / sigma of Eq. (7); 0 for weights without it, which is what the figure shows.
INVERSES = (0.0, 0.2, 1.0, 5.0)
ONCE: Axes = {
    "activation": ["tanh"],
    "inverse_sigma": INVERSES,
    "width": [1024],
    "n": [128],
    "steps": [50_000],
    "grid": [512],
}
WHOLE: Axes = {"target": list(TARGETS), "seed": range(10), **ONCE}


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the maps of both tasks, a row each, without Eq. (7) and for growing 1 / sigma."""
    rows = []
    for target, title in TARGETS.items():
        row = []
        for inverse in INVERSES:
            record = _maps.first_map(records, target=target, inverse_sigma=inverse)
            words = f"$1/\\sigma$ = {inverse:g}" if inverse else "no Eq. (7)"
            row += [(f"{title}, {words}", record)] if record is not None else []
        rows.append(row)
    return _maps.rows_of_maps(rows, LIMIT)


EXPERIMENT = Experiment(
    shows="Figure 14",
    title="Error of a tanh network without weight normalisation, and with it",
    smoke={
        **WHOLE,
        "seed": [0],
        "inverse_sigma": [0.0, 1.0],
        "width": [16],
        "n": [24],
        "steps": [40],
        "grid": [32],
    },
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("16 units, 24 points, 40 steps, one seed.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        *(
            Trend(
                name=f"lost-{target}",
                says=f"Without Eq. (7) the smoothing is lost: the map of {target} has more ridges "
                "than with 1/sigma = 5.",
                of=f"ridges, {target}, plain over 1/sigma 5",
                side="above",
                test="log10 of the ratio of mean changes of the error's sign, bootstrap over seeds",
                source="section 3.4, A.2.8, figure 14",
            )
            for target in TARGETS
        ),
        *(
            Trend(
                name=f"controls-{target}",
                says=f"Weight normalisation controls smoothness: the larger 1/sigma, the fewer "
                f"ridges has the map of {target}.",
                of=f"ridges with 1/sigma, {target}",
                side="below",
                bound=-0.9,
                test="Kendall's tau of 1/sigma and mean changes of sign, bootstrap over seeds",
                source="section 3.4, A.2.8",
            )
            for target in TARGETS
        ),
    ),
    errata=("K1", "K2", "K3", "K10"),
    notes=(
        "Width and sigma are not printed: 1024, the largest of figure 1, and 1/sigma of 0.2, 1 and "
        "5 for comparison.",
        "A ridge is a place where the error changes its sign on a straight way through the disc.",
    ),
)
