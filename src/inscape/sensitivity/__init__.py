"""Which inputs and directions matter? Attributions of single points, directions of all the data."""

from inscape.sensitivity.saliency import Saliency, saliency

__all__ = [
    "Saliency",
    "saliency",
]
