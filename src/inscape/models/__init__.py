"""Networks as the papers describe them, as plain modules that any PyTorch user can read."""

from inscape.models.image_nets import image_net
from inscape.models.initialisation import (
    glorot_uniform,
    he_normal,
    he_uniform,
    pytorch_default,
)
from inscape.models.mlp import mlp, two_layer
from inscape.models.unet import unet

__all__ = [
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "image_net",
    "mlp",
    "pytorch_default",
    "two_layer",
    "unet",
]
