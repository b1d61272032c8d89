"""Do two networks do the same? Their classes, outputs, local maps and slices side by side."""

from inscape.similarity.disagreement import Disagreement, disagreement
from inscape.similarity.linear_alignment import (
    LinearAlignment,
    LinearMoments,
    kernel_alignment,
    linear_alignment,
)
from inscape.similarity.map_alignment import MapAlignment, map_alignment
from inscape.similarity.map_distance import MapDistance, map_distance
from inscape.similarity.map_transfer import MapTransfer, map_transfer
from inscape.similarity.output_cross_entropy import OutputCrossEntropy, output_cross_entropy
from inscape.similarity.slice_difference import SliceDifference, slice_difference

__all__ = [
    "Disagreement",
    "LinearAlignment",
    "LinearMoments",
    "MapAlignment",
    "MapDistance",
    "MapTransfer",
    "OutputCrossEntropy",
    "SliceDifference",
    "disagreement",
    "kernel_alignment",
    "linear_alignment",
    "map_alignment",
    "map_distance",
    "map_transfer",
    "output_cross_entropy",
    "slice_difference",
]
