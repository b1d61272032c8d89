"""How to shape it in training, and how steep can it be at most?"""

from inscape.controls.activations import ActivationScale, activation_scale
from inscape.controls.adversarial import adversarial_training
from inscape.controls.layers import release
from inscape.controls.length_scale import LengthScale, length_scale
from inscape.controls.lipschitz import Lipschitz, lipschitz
from inscape.controls.norm_bias import norm_bias, norm_bias_penalty
from inscape.controls.norms import row_scale, spectral_scale
from inscape.controls.penalties import jacobian_penalty, weight_decay
from inscape.controls.rank_projection import RankProjection, after_epochs, rank_max, rank_min
from inscape.controls.symmetry import Symmetric, symmetric
from inscape.smoothness import (
    gradient_norm_penalty,
    gradient_path_length_penalty,
    path_length_penalty,
    weights_product_penalty,
)
from inscape.training import l2_norm

__all__ = [
    "ActivationScale",
    "LengthScale",
    "Lipschitz",
    "RankProjection",
    "Symmetric",
    "activation_scale",
    "adversarial_training",
    "after_epochs",
    "gradient_norm_penalty",
    "gradient_path_length_penalty",
    "jacobian_penalty",
    "l2_norm",
    "length_scale",
    "lipschitz",
    "norm_bias",
    "norm_bias_penalty",
    "path_length_penalty",
    "rank_max",
    "rank_min",
    "release",
    "row_scale",
    "spectral_scale",
    "symmetric",
    "weight_decay",
    "weights_product_penalty",
]
