"""Do two networks do the same? Their classes, outputs, layers, local maps and slices."""

from inscape.similarity.canonical_correlation import CanonicalCorrelation, canonical_correlation
from inscape.similarity.disagreement import Disagreement, disagreement
from inscape.similarity.layer_alignment import LayerAlignment, layer_alignment
from inscape.similarity.layer_matrix import LayerMatrix
from inscape.similarity.linear_alignment import (
    LinearAlignment,
    LinearMoments,
    kernel_alignment,
    linear_alignment,
)
from inscape.similarity.map_alignment import MapAlignment, map_alignment
from inscape.similarity.map_distance import MapDistance, map_distance
from inscape.similarity.map_transfer import MapTransfer, map_transfer
from inscape.similarity.mutual_neighbours import MutualNeighbours, mutual_neighbours
from inscape.similarity.output_cross_entropy import OutputCrossEntropy, output_cross_entropy
from inscape.similarity.procrustes_distance import ProcrustesDistance, procrustes_distance
from inscape.similarity.slice_difference import SliceDifference, slice_difference

__all__ = [
    "CanonicalCorrelation",
    "Disagreement",
    "LayerAlignment",
    "LayerMatrix",
    "LinearAlignment",
    "LinearMoments",
    "MapAlignment",
    "MapDistance",
    "MapTransfer",
    "MutualNeighbours",
    "OutputCrossEntropy",
    "ProcrustesDistance",
    "SliceDifference",
    "canonical_correlation",
    "disagreement",
    "kernel_alignment",
    "layer_alignment",
    "linear_alignment",
    "map_alignment",
    "map_distance",
    "map_transfer",
    "mutual_neighbours",
    "output_cross_entropy",
    "procrustes_distance",
    "slice_difference",
]
