"""Figure 4.4: a penalty on the gradient path length hardly lowers it."""

from inscape.lab.experiment import Experiment
from inscape.papers.volhejn._penalty_figure import conclude, draw

EXPERIMENT = Experiment(
    shows="Figure 4.4",
    title="Gradient path length and its ratio to the unpenalised run, by coefficient",
    same_as="volhejn/table-4.4",
    draw=draw("PL1"),
    conclude=conclude("PL1"),
    errata=("V3", "V5"),
    notes=("The runs, their claims and their verdicts are those of table 4.4.",),
)
