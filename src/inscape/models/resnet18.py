"""ResNet-18 for images of 32 x 32 pixels, of any width."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape.models.initialisation import pytorch_default


class BasicBlock(nn.Module):
    """Two convolutions with batch norm, and a shortcut: 1 x 1 where the shape changes.

    Attributes:
        body: The convolutions, with a ReLU between them.
        shortcut: The identity, or a convolution of 1 x 1 with batch norm.
    """

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False, device="meta"),
            nn.BatchNorm2d(after, device="meta"),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False, device="meta"),
            nn.BatchNorm2d(after, device="meta"),
        )
        self.shortcut = nn.Sequential()
        if stride > 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False, device="meta"),
                nn.BatchNorm2d(after, device="meta"),
            )

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n o h2 w2"]:
        """Return the ReLU of the sum."""
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet18(
    channels: int = 3, classes: int = 10, *, width: int = 64, seed: int = 0
) -> nn.Sequential:
    """Return ResNet-18 (He et al., 2016) in the form that is common for CIFAR-10.

    A 3 x 3 convolution of stride 1 without a pool, then four stages of two blocks with ``width``,
    2, 4 and 8 ``width`` filters, the last three of stride 2, a global mean and a linear layer.

    >>> sum(p.numel() for p in resnet18().parameters())
    11173962

    Args:
        channels: Channels of the images.
        classes: Number of outputs.
        width: Filters of the first stage.
        seed: Seed of the initial weights, PyTorch's own; the global random state is not used.
    """
    checks.whole(1, channels=channels, classes=classes, width=width)
    layers: list[nn.Module] = [
        nn.Conv2d(channels, width, 3, 1, 1, bias=False, device="meta"),
        nn.BatchNorm2d(width, device="meta"),
        nn.ReLU(),
    ]
    before = width
    for stage in range(4):
        after = width * 2**stage
        layers += [BasicBlock(before, after, 2 if stage else 1), BasicBlock(after, after, 1)]
        before = after
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes, device="meta")]
    model = nn.Sequential(*layers)
    model.to_empty(device="cpu")
    pytorch_default(model, seed=seed)
    return model.eval()
