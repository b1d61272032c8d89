"""Figure 6.11: linear regions of dense networks in a plane through three zeros of MNIST."""

from typing import Any

from inscape.lab.experiment import Axes, Experiment
from inscape.papers.sattelberg import _sections
from inscape.papers.sattelberg._dense_claims import CLAIMS, NOTES
from inscape.papers.sattelberg._images import OPTIMIZERS, hash_of


def cell(data: str, only: int | None, optimizer: str, copy: int, epochs: int) -> dict[str, Any]:
    """Train a dense network and cut the cross-section by it."""
    return _sections.dense_cell(data, only, optimizer, copy, epochs)


def _axes(data: str, copies: int, epochs: int) -> Axes:
    return {
        "data": [data],
        "only": [0],
        "optimizer": list(OPTIMIZERS),
        "copy": list(range(1, copies + 1)),
        "epochs": [epochs],
    }


EXPERIMENT = Experiment(
    shows="Figure 6.11",
    title="Linear regions of dense networks in a cross-section of MNIST",
    smoke=_axes("digits:n=200", 1, 1),
    laptop=_axes("mnist:n=60000", 6, 10),
    paper=_axes("mnist:n=60000", 2, 15),
    departures={
        "smoke": ("200 of scikit-learn's digits, one epoch, one copy.",),
        "laptop": (
            "10 epochs instead of 15.",
            "Six copies of each network instead of two.",
            "Networks are trained in float32, not in 16 bits.",
        ),
        "paper": ("Networks are trained in float32, not in 16 bits.",),
    },
    cell=cell,
    data=hash_of,
    seconds=_sections.dense_seconds,
    analyse=_sections.dense_analyse,
    conclude=_sections.dense_conclude,
    draw=_sections.dense_draw,
    claims=CLAIMS,
    notes=NOTES,
)
