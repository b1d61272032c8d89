"""DenseNet-BC with 40 layers, for images of 32 x 32 pixels."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape.models.initialisation import pytorch_default

#: Bottlenecks in each of the three blocks: 3 x 6 x 2 convolutions and four other layers.
BOTTLENECKS = 6


class Bottleneck(nn.Module):
    """Adds ``growth`` channels to its input.

    Attributes:
        body: Batch norm, ReLU, 1 x 1 to four times the growth; the same with 3 x 3 to the growth.
    """

    def __init__(self, before: int, growth: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(before, device="meta"),
            nn.ReLU(),
            nn.Conv2d(before, 4 * growth, 1, bias=False, device="meta"),
            nn.BatchNorm2d(4 * growth, device="meta"),
            nn.ReLU(),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False, device="meta"),
        )

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n o h w"]:
        """Return the new channels and then the input."""
        return torch.cat([self.body(x), x], 1)


def densenet40(
    channels: int = 3,
    classes: int = 10,
    *,
    growth: int = 12,
    pool: str = "4x4",
    seed: int = 0,
) -> nn.Sequential:
    """Return DenseNet-BC with 40 layers (Huang et al., 2017).

    Three blocks of six bottlenecks; between them a 1 x 1 convolution halves the channels and a mean
    over 2 x 2 pixels the size.

    >>> sum(p.numel() for p in densenet40().parameters())
    180082
    >>> sum(p.numel() for p in densenet40(pool="global").parameters())
    176122

    Args:
        channels: Channels of the images, which must have 32 x 32 pixels for ``pool="4x4"``.
        classes: Number of outputs.
        growth: Channels that each bottleneck adds.
        pool: ``"4x4"`` leaves 2 x 2 places, 528 features for growth 12, as in Goldblum's code;
            ``"global"`` one, as Huang et al. have it.
        seed: Seed of the initial weights, PyTorch's own; the global random state is not used.
    """
    checks.whole(1, channels=channels, classes=classes, growth=growth)
    checks.one_of(("4x4", "global"), pool=pool)
    width = 2 * growth
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, 1, 1, bias=False, device="meta")]
    for block in range(3):
        layers += [Bottleneck(width + growth * k, growth) for k in range(BOTTLENECKS)]
        width += growth * BOTTLENECKS
        layers += [nn.BatchNorm2d(width, device="meta"), nn.ReLU()]
        if block < 2:
            half = nn.Conv2d(width, width // 2, 1, bias=False, device="meta")
            layers += [half, nn.AvgPool2d(2)]
            width //= 2
    places = 4 if pool == "4x4" else 1
    layers.append(nn.AvgPool2d(4) if pool == "4x4" else nn.AdaptiveAvgPool2d(1))
    layers += [nn.Flatten(), nn.Linear(places * width, classes, device="meta")]
    model = nn.Sequential(*layers)
    model.to_empty(device="cpu")
    pytorch_default(model, seed=seed)
    return model.eval()
