"""Open a user's model and data: every format, with a note on every guess and clear errors."""

from inscape.loaders.adapter import Adapted, adapt
from inscape.loaders.data import OpenedData, open_data
from inscape.loaders.device import choose_device
from inscape.loaders.embeddings import arguments_of
from inscape.loaders.inputs import one_input
from inscape.loaders.matching import fit_together, one_output
from inscape.loaders.model import OpenedModel, open_model
from inscape.loaders.performance import Performance, performance

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
