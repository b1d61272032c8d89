"""Figure 6.9: the three zeros of MNIST that are closest together."""

from typing import Any

from inscape.lab.experiment import Axes, Experiment
from inscape.papers.sattelberg import _triple
from inscape.papers.sattelberg._images import hash_of

WHOLE: Axes = {"data": ["mnist:n=60000"], "only": [0]}


def cell(data: str, only: int | None) -> dict[str, Any]:
    """Find the three training images of one class nearest to each other."""
    return _triple.triple(data, only)


EXPERIMENT = Experiment(
    shows="Figure 6.9",
    title="Three zeros of MNIST that span a cross-section",
    smoke={"data": ["digits:n=200"], "only": [0]},
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("200 of scikit-learn's digits.",)},
    cell=cell,
    data=hash_of,
    seconds=_triple.seconds,
    conclude=_triple.conclude,
    draw=_triple.draw,
    notes=(
        "Closest is read as the smallest sum of the three Euclidean distances of raw pixels.",
        "Only zeros are searched, since the figure shows zeros; some ones are closer together.",
    ),
)
