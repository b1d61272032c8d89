"""Figure 6.6: circle versus annulus with XOR, by three layers of eight units."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inscape.lab.experiment import Experiment
from inscape.lab.store import Record
from inscape.papers.sattelberg._toy import SETTINGS_NOTE
from inscape.papers.sattelberg.settling import HIDDEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how many regions there are."""
    best = max(records, key=lambda record: float(record.values["accuracy"]))
    counts = [record.values["regions"] for record in records]
    return [
        f"The network that is shown gets {best.values['accuracy']:.1%} of its points right with "
        f"{best.values['regions']} regions; all have {min(counts)} to {max(counts)}."
    ]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the network that gets most points right."""
    from inscape.papers.sattelberg._structure import structure

    best = max(records, key=lambda record: float(record.values["accuracy"]))
    return structure(best.values, len(HIDDEN))


EXPERIMENT = Experiment(
    shows="Figure 6.6",
    title="A solution of circle versus annulus with XOR by three hidden layers of eight units",
    same_as="settling",
    conclude=conclude,
    draw=draw,
    notes=(
        SETTINGS_NOTE,
        "Whether early layers settle first, as the text says of this problem, is judged in "
        "sattelberg/settling.",
    ),
)
