"""Figure 10: tricky shapes, unlike those of the training, that the U-Net completes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inscape.lab.experiment import Experiment, Trend
from inscape.lab.store import Record
from inscape.papers.courtois._unet import analyse, conclude, gallery
from inscape.papers.courtois.section_6_2_3 import CHOICES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the best, the middle and the worst of the harder shapes."""
    return gallery(records[0].values, "harder", ("best", "median", "worst"))


EXPERIMENT = Experiment(
    shows="Figure 10",
    title="Harder shapes than those of the training, completed by the U-Net",
    same_as="section-6.2.3",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="solved",
            says="Presented with complex examples that were not in the training set, the network "
            "still manages to fulfil its task (the mean IOU is above 95%).",
            of="overlap/harder",
            side="above",
            bound=0.95,
            test="mean over harder shapes, t interval over networks",
            source="section 6.2.3",
        ),
        Trend(
            name="between",
            says="Such examples are completed better than those of figure 7.",
            of="fall/between",
            side="above",
            test="paired t interval over networks",
            source="section 6.2.3",
        ),
    ),
    notes=CHOICES,
)
