"""ResNet9: eight convolutions and a linear layer, two pairs with a residual connection."""

from functools import partial

from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape.models.initialisation import pytorch_default
from inscape.models.mlp import ACTIVATIONS


class Residual(nn.Module):
    """A residual block: its input plus the output of its body.

    Attributes:
        body: Keeps the shape of its input.
    """

    def __init__(self, body: nn.Module):
        super().__init__()
        self.body = body

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return the sum."""
        out: Tensor = x + self.body(x)
        return out


def _block(
    inputs: int, outputs: int, *, activation: str, norm: str, pool: bool = False
) -> nn.Sequential:
    """Return a convolution with normalisation, activation and pooling.

    On the meta device layers draw no weights from the global random state. A bias before batch
    normalisation would have no effect.
    """
    bare = norm == "none"
    modules: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=bare, device="meta"),
        *([] if bare else [nn.BatchNorm2d(outputs, device="meta")]),
        ACTIVATIONS[activation](),
        *([nn.MaxPool2d(2)] if pool else []),
    ]
    return nn.Sequential(*modules)


def resnet9(
    channels: int = 3,
    classes: int = 10,
    *,
    width: int = 64,
    activation: str = "relu",
    norm: str = "batch",
    seed: int = 0,
) -> nn.Sequential:
    """Return a ResNet9, the small residual network (He et al., 2016) that is common for CIFAR-10.

    3 x 3 convolutions with padding 1, each followed by batch normalisation and the activation:
    ``width`` filters, then 2 ``width`` and a pool, a residual block of two more, 4 ``width`` and a
    pool, 8 ``width`` and a pool, a residual block of two more; then a global maximum pool and a
    linear layer. Pools are 2 x 2 maxima, so that images need at least 8 x 8 pixels.

    >>> sum(p.numel() for p in resnet9().parameters())
    6573130

    Args:
        channels: Channels of the images.
        classes: Number of outputs.
        width: Filters of the first convolution.
        activation: As in :func:`mlp`.
        norm: ``"batch"``, or ``"none"``: then the convolutions have biases.
        seed: Seed of the initial weights, PyTorch's own; the global random state is not used.
    """
    checks.at_least(1, channels=channels, classes=classes, width=width)
    checks.one_of(tuple(ACTIVATIONS), activation=activation)
    checks.one_of(("batch", "none"), norm=norm)
    block = partial(_block, activation=activation, norm=norm)

    def residual(filters: int) -> Residual:
        return Residual(nn.Sequential(block(filters, filters), block(filters, filters)))

    model = nn.Sequential(
        block(channels, width),
        block(width, 2 * width, pool=True),
        residual(2 * width),
        block(2 * width, 4 * width, pool=True),
        block(4 * width, 8 * width, pool=True),
        residual(8 * width),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(8 * width, classes, device="meta"),
    )
    model.to_empty(device="cpu")
    pytorch_default(model, seed=seed)
    return model.eval()
