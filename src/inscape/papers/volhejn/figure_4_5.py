"""Figure 4.5: a penalty on the weights product hardly lowers it."""

from inscape.lab.experiment import Experiment
from inscape.papers.volhejn._penalty_figure import conclude, draw

EXPERIMENT = Experiment(
    shows="Figure 4.5",
    title="Weights product and its ratio to the unpenalised run, by coefficient",
    same_as="volhejn/table-4.4",
    draw=draw("WP"),
    conclude=conclude("WP"),
    errata=("V5", "V7"),
    notes=("The runs, their claims and their verdicts are those of table 4.4.",),
)
