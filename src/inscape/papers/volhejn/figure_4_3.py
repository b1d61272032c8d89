"""Figure 4.3: a penalty on the function path length brings it near its bound of 1."""

from inscape.lab.experiment import Experiment
from inscape.papers.volhejn._penalty_figure import conclude, draw

EXPERIMENT = Experiment(
    shows="Figure 4.3",
    title="Function path length, and what is left of it above 1, by coefficient",
    same_as="volhejn/table-4.4",
    draw=draw("PL0"),
    conclude=conclude("PL0"),
    errata=("V3", "V5"),
    notes=(
        "The runs, their claims and their verdicts are those of table 4.4.",
        "Panel (b) divides PL0 - 1, since no function that fits the labels goes below 1 (Eq. 4.8).",
    ),
)
