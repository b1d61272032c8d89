"""Which inputs and directions matter? Attributions of single points, directions of all the data."""

from inscape.sensitivity.active_subspace import ActiveSubspace, active_subspace
from inscape.sensitivity.saliency import Saliency, saliency

__all__ = [
    "ActiveSubspace",
    "Saliency",
    "active_subspace",
    "saliency",
]
