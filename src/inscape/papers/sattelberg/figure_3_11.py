"""Figure 3.11: a convolutional network on MNIST with fewer and fewer channels, or weights."""

from inscape.lab.experiment import Experiment, Trend
from inscape.papers.sattelberg._conv_pruning import (
    METHODS,
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

EXPERIMENT = Experiment(
    shows="Figure 3.11",
    title="Accuracy on MNIST against the weights that pruning leaves",
    smoke={"data": ["digits:n=200"], "epochs": [1], "seed": [0], "steps": [2]},
    laptop=axes("mnist:n=10000", 3),
    paper=axes("mnist:n=60000", 1),
    departures={
        "smoke": ("200 of the embedded digits, one epoch, two steps.",),
        "laptop": ("10,000 training images instead of 60,000; three networks instead of one.",),
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
                says="The MNIST network loses significant accuracy (one point) only below 20% of "
                f"its weights: with 20% it has it, pruned by {method}.",
                of=f"drop/{method}/0.2",
                side="below",
                bound=0.01,
                test="loss of accuracy, t interval over networks",
                source="section 3.4.5",
            )
            for method in METHODS
        ),
        Trend(
            name="lost-channels",
            says="Below 20% it does lose accuracy: more than a point with 5% of the weights, "
            "pruned by channels.",
            of="drop/channels/0.05",
            side="above",
            bound=0.01,
            test="loss of accuracy, t interval over networks",
            source="section 3.4.5",
        ),
        structural_drops_faster("figure 3.11"),
    ),
    notes=NOTES,
)
