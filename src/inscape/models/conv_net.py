"""The plain convolutional network and the MLPs of Goldblum et al. (2020), for small images."""

from itertools import pairwise

from torch import nn

from inscape._core import checks
from inscape.models.initialisation import pytorch_default


def conv_net(
    channels: int = 3, classes: int = 10, *, width: int = 16, side: int = 32, seed: int = 0
) -> nn.Sequential:
    """Return five convolutions with two maximum pools, and a linear layer (G4: six layers).

    3 x 3 with padding 1 and ReLU, of ``width``, 2, 2, 4 and 4 ``width`` filters; pools of 3 x 3
    behind the last two.

    >>> sum(p.numel() for p in conv_net(width=10).parameters())
    31010

    Args:
        channels: Channels of the images.
        classes: Number of outputs.
        width: Filters of the first convolution.
        side: Height and width of the images, at least 9.
        seed: Seed of the initial weights, PyTorch's own; the global random state is not used.
    """
    checks.whole(1, channels=channels, classes=classes, width=width)
    checks.whole(9, side=side)
    widths = [channels, *(width * factor for factor in (1, 2, 2, 4, 4))]
    layers: list[nn.Module] = []
    for at, (before, after) in enumerate(pairwise(widths)):
        layers += [nn.Conv2d(before, after, 3, padding=1, device="meta"), nn.ReLU()]
        layers += [nn.MaxPool2d(3)] * (at >= 3)
    features = widths[-1] * (side // 3 // 3) ** 2
    layers += [nn.Flatten(), nn.Linear(features, classes, device="meta")]
    model = nn.Sequential(*layers)
    model.to_empty(device="cpu")
    pytorch_default(model, seed=seed)
    return model.eval()


def image_mlp(
    *hidden: int, channels: int = 3, side: int = 32, classes: int = 10, seed: int = 0
) -> nn.Sequential:
    """Return a ReLU MLP for images: they are flattened first.

    The code of Goldblum et al. has ``image_mlp(2048, 2048, 1024)`` where the text says 2048 units.

    >>> sum(p.numel() for p in image_mlp(2048, 2048, 1024).parameters())
    12598282

    Args:
        hidden: Units of each hidden layer.
        channels: Channels of the images.
        side: Their height and width.
        classes: Number of outputs.
        seed: Seed of the initial weights, PyTorch's own; the global random state is not used.
    """
    widths = [channels * side * side, *hidden, classes]
    checks.whole(1, channels=channels, side=side, classes=classes, hidden=min(widths))
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after, device="meta"), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    model.to_empty(device="cpu")
    pytorch_default(model, seed=seed)
    return model.eval()
