"""How to shape it in training, and how steep can it be at most?"""

from inscape.controls.activations import ActivationScale, activation_scale
from inscape.controls.adversarial import adversarial_training
from inscape.controls.layers import release
from inscape.controls.length_scale import LengthScale, length_scale
from inscape.controls.lipschitz import Lipschitz, lipschitz
from inscape.controls.norms import row_scale, spectral_scale
from inscape.controls.penalties import jacobian_penalty, weight_decay
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
    "Symmetric",
    "activation_scale",
    "adversarial_training",
    "gradient_norm_penalty",
    "gradient_path_length_penalty",
    "jacobian_penalty",
    "l2_norm",
    "length_scale",
    "lipschitz",
    "path_length_penalty",
    "release",
    "row_scale",
    "spectral_scale",
    "symmetric",
    "weight_decay",
    "weights_product_penalty",
]
