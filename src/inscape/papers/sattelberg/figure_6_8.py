"""Figure 6.8: the three photographs of CIFAR-10 that are closest together."""

from collections.abc import Sequence
from typing import Any

from inscape.lab.experiment import Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record
from inscape.papers.sattelberg import _triple
from inscape.papers.sattelberg._images import hash_of


def cell(data: str, only: int | None) -> dict[str, Any]:
    """Find the three training images nearest to each other."""
    return _triple.triple(data, only)


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how many of the three are airplanes, and how many deer."""
    classes = records[0].values["classes"]
    return {
        word: exact_estimate(n, 3, method="exact search")
        for word in ("airplane", "deer")
        for n in (float(classes.count(word)),)
    }


EXPERIMENT = Experiment(
    shows="Figure 6.8",
    title="Three images of CIFAR-10 that span a cross-section",
    smoke={"data": ["digits:n=60"], "only": [None]},
    laptop={"data": ["cifar10:n=20000"], "only": [None]},
    paper={"data": ["cifar10:n=50000"], "only": [None]},
    departures={
        "smoke": ("60 of scikit-learn's digits.",),
        "laptop": ("The first 20,000 of the 50,000 training images.",),
    },
    cell=cell,
    data=hash_of,
    seconds=_triple.seconds,
    analyse=analyse,
    conclude=_triple.conclude,
    draw=_triple.draw,
    claims=tuple(
        Value(
            name=word,
            says=f"{says} among the three closest images.",
            of=word,
            published=count,
            tolerance=0,
            at=("closest three images", word),
            source="figure 6.8",
            scales=("paper",),
        )
        for word, says, count in (
            ("airplane", "Two airplanes are", 2),
            ("deer", "One deer is", 1),
        )
    ),
    notes=(
        "Closest is read as the smallest sum of the three Euclidean distances of raw pixels.",
        "Images of all classes are searched, since the figure shows two classes.",
    ),
)
