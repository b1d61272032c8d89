"""Networks as the papers describe them, as plain modules that any PyTorch user can read."""

from inscape.models.image_nets import image_net
from inscape.models.initialisation import (
    glorot_uniform,
    he_normal,
    he_uniform,
    pytorch_default,
)
from inscape.models.mlp import mlp, two_layer
from inscape.models.resnet9 import resnet9
from inscape.models.unet import unet

__all__ = [
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "image_net",
    "mlp",
    "pytorch_default",
    "resnet9",
    "two_layer",
    "unet",
]
