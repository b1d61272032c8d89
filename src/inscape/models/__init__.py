"""Networks as the papers describe them, as plain modules that any PyTorch user can read."""

from inscape.models.conv_net import conv_net, image_mlp
from inscape.models.densenet import densenet40
from inscape.models.fixup import resnet20_fixup
from inscape.models.image_nets import image_net
from inscape.models.initialisation import (
    glorot_uniform,
    he_normal,
    he_uniform,
    pytorch_default,
)
from inscape.models.mlp import mlp, two_layer
from inscape.models.mobilenet_v2 import mobilenet_v2
from inscape.models.resnet9 import resnet9
from inscape.models.resnet18 import resnet18
from inscape.models.unet import unet
from inscape.models.wide_resnet import wide_resnet16

__all__ = [
    "conv_net",
    "densenet40",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "image_mlp",
    "image_net",
    "mlp",
    "mobilenet_v2",
    "pytorch_default",
    "resnet9",
    "resnet18",
    "resnet20_fixup",
    "two_layer",
    "unet",
    "wide_resnet16",
]
