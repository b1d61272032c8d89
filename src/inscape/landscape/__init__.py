"""What minimum is it? The loss around and between parameter vectors."""

from inscape.landscape.affine_embedding import (
    AffineEmbedding,
    affine_embedding,
    dead_network,
    deepened,
)
from inscape.landscape.affine_fit import reduced_rank_regression, softmax_regression
from inscape.landscape.alignment import Alignment, aligned
from inscape.landscape.hessian_density import HessianDensity, hessian_density
from inscape.landscape.hessian_extremes import HessianExtremes, hessian_extremes
from inscape.landscape.hessian_trace import HessianTrace, hessian_trace
from inscape.landscape.interpolation import Interpolation, interpolation
from inscape.landscape.local_minimum import LocalMinimum, local_minimum
from inscape.landscape.loss_surface import LossSurface, loss_surface
from inscape.landscape.sharpness import Sharpness, sharpness
from inscape.landscape.stationarity import Stationarity, stationarity

__all__ = [
    "AffineEmbedding",
    "Alignment",
    "HessianDensity",
    "HessianExtremes",
    "HessianTrace",
    "Interpolation",
    "LocalMinimum",
    "LossSurface",
    "Sharpness",
    "Stationarity",
    "affine_embedding",
    "aligned",
    "dead_network",
    "deepened",
    "hessian_density",
    "hessian_extremes",
    "hessian_trace",
    "interpolation",
    "local_minimum",
    "loss_surface",
    "reduced_rank_regression",
    "sharpness",
    "softmax_regression",
    "stationarity",
]
