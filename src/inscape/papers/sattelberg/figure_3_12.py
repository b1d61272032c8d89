"""Figure 3.12: a convolutional network on CIFAR-10 with fewer and fewer channels, or weights."""

from inscape.lab.experiment import Experiment, Trend
from inscape.papers.sattelberg._conv_pruning import (
    NOTES,
    analyse,
    axes,
    cell,
    conclude,
    draw,
    seconds,
    structural_drops_faster,
)
from inscape.papers.sattelberg._images import hash_of

#: Share of the weights with which the printed accuracy is still the first one.
KEPT = {"channels": 0.6, "magnitude": 0.4}

EXPERIMENT = Experiment(
    shows="Figure 3.12",
    title="Accuracy on CIFAR-10 against the weights that pruning leaves",
    smoke={"data": ["digits:n=200"], "epochs": [1], "seed": [0], "steps": [2]},
    laptop=axes("cifar10:n=20000", 3),
    paper=axes("cifar10:n=50000", 1),
    departures={
        "smoke": ("200 of the embedded digits, one epoch, two steps.",),
        "laptop": ("20,000 training images instead of 50,000; three networks instead of one.",),
    },
    cell=cell,
    data=hash_of,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        *(
            Trend(
                name=f"kept-{method}",
                says=f"The CIFAR network retains its original accuracy (to one point) with "
                f"{share:.0%} of the weights, pruned by {method}.",
                of=f"drop/{method}/{share}",
                side="below",
                bound=0.01,
                test="loss of accuracy, t interval over networks",
                source="section 3.4.5",
            )
            for method, share in KEPT.items()
        ),
        structural_drops_faster("figure 3.12"),
    ),
    notes=NOTES,
)
