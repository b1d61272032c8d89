"""A U-Net: down through several scales and up again, each scale joined to its mirror image."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape.models.initialisation import he_normal


class UNet(nn.Module):
    """See :func:`unet`.

    Attributes:
        down: What is done at each scale on the way down, the last at the smallest scale.
        lift: What doubles the size before each step up.
        up: What is done at each scale on the way up, from the smallest but one.
        last: The convolution of one pixel that makes the outputs.
    """

    def __init__(self, inputs: int, outputs: int, channels: Sequence[int], convolutions: int):
        super().__init__()
        self.channels = tuple(channels)
        self.shrink = nn.MaxPool2d(2)
        self.down = nn.ModuleList(
            _block(before, after, convolutions) for before, after in pairwise([inputs, *channels])
        )
        upwards = list(pairwise(reversed(self.channels)))
        self.lift = nn.ModuleList(
            nn.ConvTranspose2d(before, after, 2, stride=2, device="meta")
            for before, after in upwards
        )
        self.up = nn.ModuleList(_block(2 * after, after, convolutions) for _, after in upwards)
        self.last = nn.Conv2d(self.channels[0], outputs, 1, device="meta")

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n o h w"]:
        """Return one value for each pixel and output."""
        least = 2 ** (len(self.channels) - 1)
        if any(size % least for size in x.shape[-2:]):
            raise ValueError(
                f"a U-Net of {len(self.channels)} scales needs images whose sides are multiples "
                f"of {least}, found {x.shape[-2]} x {x.shape[-1]}: pad or scale them."
            )
        skips = []
        for depth, block in enumerate(self.down):
            x = block(self.shrink(x) if depth else x)
            skips.append(x)
        skips.pop()
        for lift, block in zip(self.lift, self.up, strict=True):
            x = block(torch.cat([skips.pop(), lift(x)], 1))
        out: Tensor = self.last(x)
        return out


def unet(
    inputs: int = 1,
    outputs: int = 1,
    *,
    channels: Sequence[int] = (16, 32, 64, 128, 256, 512),
    convolutions: int = 2,
    seed: int = 0,
) -> UNet:
    """Build a U-Net (Ronneberger et al., 2015) that keeps the size of an image.

    Each scale has convolutions of 3 x 3 pixels, padded by one, each followed by batch
    normalisation and a ReLU; max pools of 2 x 2 lead down, transposed convolutions of 2 x 2 up.

    >>> unet(channels=(4, 8, 8))(torch.zeros(2, 1, 16, 16)).shape
    torch.Size([2, 1, 16, 16])

    Args:
        inputs: Channels of the images.
        outputs: Channels of what comes out.
        channels: Channels at each scale, from the full size on; their number is that of scales.
        convolutions: How many there are at each scale, down and again up.
        seed: Seed of the initial weights, which follow He's normal law.
    """
    checks.at_least(1, inputs=inputs, outputs=outputs, convolutions=convolutions)
    checks.at_least(1, channels=min(channels, default=0))
    model = UNet(inputs, outputs, channels, convolutions)
    model.to_empty(device="cpu")
    he_normal(model, seed=seed)
    return model.eval()


def _block(before: int, after: int, convolutions: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels, next_channels in pairwise([before, *[after] * convolutions]):
        # On the meta device a layer draws no first weights from the global random state; batch
        # normalisation follows, so that a bias would do nothing.
        layers += [
            nn.Conv2d(channels, next_channels, 3, padding=1, bias=False, device="meta"),
            nn.BatchNorm2d(next_channels, device="meta"),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers)
