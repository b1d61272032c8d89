"""What minimum is it? The loss around and between parameter vectors."""

from inscape.landscape.affine_embedding import (
    AffineEmbedding,
    affine_embedding,
    dead_network,
    deepened,
)
from inscape.landscape.affine_fit import reduced_rank_regression, softmax_regression
from inscape.landscape.alignment import Alignment, aligned
from inscape.landscape.hessian_extremes import HessianExtremes, hessian_extremes
from inscape.landscape.interpolation import Interpolation, interpolation
from inscape.landscape.local_minimum import LocalMinimum, local_minimum
from inscape.landscape.stationarity import Stationarity, stationarity

__all__ = [
    "AffineEmbedding",
    "Alignment",
    "HessianExtremes",
    "Interpolation",
    "LocalMinimum",
    "Stationarity",
    "affine_embedding",
    "aligned",
    "dead_network",
    "deepened",
    "hessian_extremes",
    "interpolation",
    "local_minimum",
    "reduced_rank_regression",
    "softmax_regression",
    "stationarity",
]
