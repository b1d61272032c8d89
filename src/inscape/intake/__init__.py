"""Opening of a user's model and data: every way in, every guess said, bad input named."""

from inscape.intake.adapting import Adapted, adapt
from inscape.intake.data import OpenedData, open_data
from inscape.intake.device import choose_device
from inscape.intake.embeddings import arguments_of
from inscape.intake.inputs import one_input
from inscape.intake.model import OpenedModel, open_model
from inscape.intake.performance import Performance, performance
from inscape.intake.together import fit_together, one_output

__all__ = [
    "Adapted",
    "OpenedData",
    "OpenedModel",
    "Performance",
    "adapt",
    "arguments_of",
    "choose_device",
    "fit_together",
    "one_input",
    "one_output",
    "open_data",
    "open_model",
    "performance",
]
