"""WideResNet-16-k, for images of 32 x 32 pixels."""

from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape.models.initialisation import pytorch_default


class WideBlock(nn.Module):
    """Batch norm, ReLU and 3 x 3, twice; and a shortcut, of 1 x 1 where the shape changes.

    Attributes:
        body: The two convolutions with what precedes them.
        shortcut: The identity or a convolution of 1 x 1.
    """

    def __init__(self, before: int, after: int, stride: int, *, released: bool) -> None:
        super().__init__()
        first, second = (1, stride) if released else (stride, 1)
        self.body = nn.Sequential(
            nn.BatchNorm2d(before, device="meta"),
            nn.ReLU(),
            nn.Conv2d(before, after, 3, first, 1, bias=released, device="meta"),
            nn.BatchNorm2d(after, device="meta"),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, second, 1, bias=released, device="meta"),
        )
        self.shortcut = nn.Sequential()
        if stride > 1 or before != after:
            layer = nn.Conv2d(before, after, 1, stride, bias=released, device="meta")
            self.shortcut = nn.Sequential(layer)

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n o h2 w2"]:
        """Return the sum."""
        out: Tensor = self.body(x) + self.shortcut(x)
        return out


def wide_resnet16(
    channels: int = 3, classes: int = 10, *, width: int = 1, released: bool = False, seed: int = 0
) -> nn.Sequential:
    """Return WideResNet-16-k (Zagoruyko and Komodakis, 2016).

    A convolution of 16 filters, then three stages of two blocks with 16, 32 and 64 times ``width``.

    >>> sum(p.numel() for p in wide_resnet16(width=8).parameters())
    10961370

    Args:
        channels: Channels of the images.
        classes: Number of outputs.
        width: The factor k.
        released: Whether convolutions have biases, and the second of a block has the stride, as in
            the code that Goldblum et al. released.
        seed: Seed of the initial weights, PyTorch's own; the global random state is not used.
    """
    checks.whole(1, channels=channels, classes=classes, width=width)
    layers: list[nn.Module] = [nn.Conv2d(channels, 16, 3, 1, 1, bias=released, device="meta")]
    before = 16
    for stage in range(3):
        after = 16 * 2**stage * width
        layers.append(WideBlock(before, after, 2 if stage else 1, released=released))
        layers.append(WideBlock(after, after, 1, released=released))
        before = after
    layers += [nn.BatchNorm2d(before, device="meta"), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    layers += [nn.Flatten(), nn.Linear(before, classes, device="meta")]
    model = nn.Sequential(*layers)
    model.to_empty(device="cpu")
    pytorch_default(model, seed=seed)
    return model.eval()
