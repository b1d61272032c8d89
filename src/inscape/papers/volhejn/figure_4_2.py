"""Figure 4.2: a penalty on the gradient norm brings it to a third."""

from inscape.lab.experiment import Experiment
from inscape.papers.volhejn._penalty_figure import conclude, draw

EXPERIMENT = Experiment(
    shows="Figure 4.2",
    title="Gradient norm and its ratio to the unpenalised run, by coefficient",
    same_as="volhejn/table-4.4",
    draw=draw("GN"),
    conclude=conclude("GN"),
    errata=("V5",),
    notes=("The runs, their claims and their verdicts are those of table 4.4.",),
)
