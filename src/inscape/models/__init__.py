"""Networks as the papers describe them, as plain modules that any PyTorch user can read."""

from inscape.models.conv_net import conv_net, image_mlp
from inscape.models.densenet import densenet40
from inscape.models.fixup import resnet20_fixup
from inscape.models.image_nets import image_net
from inscape.models.inception_v3 import inception_v3
from inscape.models.initialisation import (
    glorot_uniform,
    he_normal,
    he_uniform,
    pytorch_default,
)
from inscape.models.mlp import mlp, two_layer
from inscape.models.mobilenet_v2 import mobilenet_v2
from inscape.models.pretrained import missing_weights, pretrained, weights_dir
from inscape.models.resnet import resnet
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
    "inception_v3",
    "missing_weights",
    "mlp",
    "mobilenet_v2",
    "pretrained",
    "pytorch_default",
    "resnet",
    "resnet9",
    "resnet18",
    "resnet20_fixup",
    "two_layer",
    "unet",
    "weights_dir",
    "wide_resnet16",
]
