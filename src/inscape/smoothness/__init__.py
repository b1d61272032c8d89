"""How rough is it? Measures of the smoothness of a learned function (Volhejn 2020)."""

from inscape.smoothness.effective_length_scale import (
    EffectiveLengthScale,
    effective_length_scale,
)
from inscape.smoothness.gradient_deflection import GradientDeflection, gradient_deflection
from inscape.smoothness.gradient_norm import GradientNorm, gradient_norm, gradient_norm_penalty
from inscape.smoothness.gradient_path_length import (
    GradientPathLength,
    gradient_path_length,
    gradient_path_length_penalty,
)
from inscape.smoothness.path_length import PathLength, path_length, path_length_penalty
from inscape.smoothness.rugosity import Rugosity, rugosity
from inscape.smoothness.slope_variation import SlopeVariation, slope_variation
from inscape.smoothness.total_variation import TotalVariation, total_variation
from inscape.smoothness.weights_product import (
    WeightsProduct,
    weights_product,
    weights_product_penalty,
)

__all__ = [
    "EffectiveLengthScale",
    "GradientDeflection",
    "GradientNorm",
    "GradientPathLength",
    "PathLength",
    "Rugosity",
    "SlopeVariation",
    "TotalVariation",
    "WeightsProduct",
    "effective_length_scale",
    "gradient_deflection",
    "gradient_norm",
    "gradient_norm_penalty",
    "gradient_path_length",
    "gradient_path_length_penalty",
    "path_length",
    "path_length_penalty",
    "rugosity",
    "slope_variation",
    "total_variation",
    "weights_product",
    "weights_product_penalty",
]
