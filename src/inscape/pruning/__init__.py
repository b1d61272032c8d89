"""How small can it get? Units, channels and weights that a network can do without."""

from inscape.pruning.channel_pruning import ChannelPruning, channel_pruning
from inscape.pruning.curve import PruningCurve, UnitCurve
from inscape.pruning.exhaustive_pruning import ExhaustivePruning, exhaustive_pruning
from inscape.pruning.fine_tuning import Tune
from inscape.pruning.groups import Group, Structure, structure
from inscape.pruning.magnitude_pruning import MagnitudePruning, magnitude_pruning, masked
from inscape.pruning.node_pruning import NodePruning, node_pruning
from inscape.pruning.unit_removal import cut

__all__ = [
    "ChannelPruning",
    "ExhaustivePruning",
    "Group",
    "MagnitudePruning",
    "NodePruning",
    "PruningCurve",
    "Structure",
    "Tune",
    "UnitCurve",
    "channel_pruning",
    "cut",
    "exhaustive_pruning",
    "magnitude_pruning",
    "masked",
    "node_pruning",
    "structure",
]
