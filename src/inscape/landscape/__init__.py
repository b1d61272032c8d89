"""What minimum is it? The loss around and between parameter vectors."""

from inscape.landscape.alignment import Alignment, aligned
from inscape.landscape.hessian_extremes import HessianExtremes, hessian_extremes
from inscape.landscape.interpolation import Interpolation, interpolation

__all__ = [
    "Alignment",
    "HessianExtremes",
    "Interpolation",
    "aligned",
    "hessian_extremes",
    "interpolation",
]
