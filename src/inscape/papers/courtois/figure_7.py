"""Figure 7: a complex shape on which the trained U-Net fails."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inscape.lab.experiment import Experiment, Trend, Value
from inscape.lab.store import Record
from inscape.papers.courtois._unet import analyse, conclude, gallery
from inscape.papers.courtois.section_6_2_3 import CHOICES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the worst, the middle and the best of the much harder shapes."""
    return gallery(records[0].values, "much harder", ("worst", "median", "best"))


EXPERIMENT = Experiment(
    shows="Figure 7",
    title="Much more complex shapes, on which the U-Net fails",
    same_as="section-6.2.3",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Value(
            name="example",
            says="For this example, the IOU is 51%.",
            of="worst/much harder",
            published=0.51,
            tolerance=0.1,
            side="below",
            bound=0.8,
            at=("example", "IOU"),
            source="figure 7",
        ),
        Trend(
            name="fails",
            says="Presented with shapes that differ too much from those of the training, the "
            "network fails (the mean IOU is below 90%).",
            of="overlap/much harder",
            side="below",
            bound=0.9,
            test="mean over much harder shapes, t interval over networks",
            source="section 6",
        ),
        Trend(
            name="worse",
            says="Further increasing the complexity causes the network to fail where it had "
            "succeeded (the IOU falls by more than five points).",
            of="fall/much harder",
            side="above",
            bound=0.05,
            test="paired t interval over networks",
            source="section 6.2.3",
        ),
    ),
    errata=("C8",),
    notes=(
        *CHOICES,
        "The paper prints one example of a failure; ours is the worst of the much harder shapes, "
        "averaged over networks.",
        "A flood from the border fills every one of these shapes exactly: the task has an optimal "
        "algorithm whatever the complexity.",
    ),
)
