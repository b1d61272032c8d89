"""ResNet-20 with Fixup: a residual network without normalisation that trains all the same."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from inscape._core import checks, generator

#: Blocks in each of the three stages.
BLOCKS = 3


class FixupBlock(nn.Module):
    """Two convolutions with a scalar bias before and behind each, and a scalar gain at the end.

    Attributes:
        first: First convolution; Fixup makes its initial weights smaller.
        second: Second convolution, zero at first.
        biases: The four scalar biases, in their order.
        gain: The scalar gain, 1 at first.
    """

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False, device="meta")
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False, device="meta")
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(4)])
        self.gain = nn.Parameter(torch.ones(1))
        self.stride, self.added = stride, after - before

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n o h2 w2"]:
        """Return the ReLU of the sum; the shortcut drops pixels and adds channels of zeros."""
        shifted = x + self.biases[0]
        inner = torch.relu(self.first(shifted) + self.biases[1])
        out = self.second(inner + self.biases[2]) * self.gain + self.biases[3]
        skipped = x
        if self.added:
            pixels = shifted[..., :: self.stride, :: self.stride]
            skipped = functional.pad(pixels, (0, 0, 0, 0, 0, self.added))
        return torch.relu(out + skipped)


class FixupNet(nn.Module):
    """See :func:`resnet20_fixup`.

    Attributes:
        first: The first convolution.
        biases: Scalar biases behind it, and before the linear layer.
        blocks: The nine blocks.
        head: The linear layer, zero at first.
    """

    def __init__(self, channels: int, classes: int, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, 1, 1, bias=False, device="meta")
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(2)])
        blocks, before = [], width
        for stage in range(3):
            for k in range(BLOCKS):
                after = width * 2**stage
                blocks.append(FixupBlock(before, after, 2 if stage and not k else 1))
                before = after
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(before, classes, device="meta")

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n c"]:
        """Return the scores of all classes."""
        x = self.blocks(torch.relu(self.first(x) + self.biases[0]))
        scores: Tensor = self.head(x.mean((2, 3)) + self.biases[1])
        return scores


def resnet20_fixup(
    channels: int = 3, classes: int = 10, *, width: int = 16, seed: int = 0
) -> FixupNet:
    r"""Return ResNet-20 with Fixup initialisation (Zhang et al., 2019), for CIFAR-10.

    .. math:: w \sim N\bigl(0, \; 2 / (k^2 c_{out})\bigr) \cdot L^{-1/2}, \qquad L = 9

    for the first convolution of each block; the second, and the linear layer, are zero.

    >>> sum(p.numel() for p in resnet20_fixup().parameters())
    268393

    Args:
        channels: Channels of the images.
        classes: Number of outputs.
        width: Filters of the first stage.
        seed: Seed of the initial weights; the global random state is not used.
    """
    checks.whole(1, channels=channels, classes=classes, width=width)
    model = FixupNet(channels, classes, width)
    model.to_empty(device="cpu")
    rng = generator(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.zero_()
            if name.endswith("gain"):
                parameter.fill_(1.0)
            elif name.endswith("first.weight"):
                scale = len(model.blocks) ** -0.5 if name.startswith("blocks") else 1.0
                deviation = (2 / (9 * parameter.shape[0])) ** 0.5
                parameter.normal_(0.0, scale * deviation, generator=rng)
    return model.eval()
