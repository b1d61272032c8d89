"""ResNets for photos, with the names of the weights that are common (those of torchvision)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape.models.initialisation import pytorch_default

#: Blocks of the four stages by depth, and whether they are bottlenecks.
STAGES: dict[int, tuple[tuple[int, ...], bool]] = {
    18: ((2, 2, 2, 2), False),
    34: ((3, 4, 6, 3), False),
    50: ((3, 4, 6, 3), True),
    101: ((3, 4, 23, 3), True),
    152: ((3, 8, 36, 3), True),
}
#: How many times as many channels a bottleneck gives as its inner ones.
EXPANSION = 4


class ResidualBlock(nn.Module):
    """Two convolutions of 3 x 3, or a bottleneck (1 x 1, 3 x 3, 1 x 1), and a shortcut.

    The 3 x 3 convolution of a bottleneck has the stride.

    Attributes:
        conv1: The first convolution; so ``conv2``, ``conv3``, and their norms ``bn1`` and so on.
        downsample: A convolution of 1 x 1 with batch norm where the shape changes, else None.
    """

    def __init__(self, before: int, width: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        after = width * EXPANSION if bottleneck else width
        self.conv1 = _convolution(
            before, width, 1 if bottleneck else 3, 1 if bottleneck else stride
        )
        self.bn1 = nn.BatchNorm2d(width, device="meta")
        self.conv2 = _convolution(width, width, 3, stride if bottleneck else 1)
        self.bn2 = nn.BatchNorm2d(width, device="meta")
        if bottleneck:
            self.conv3 = _convolution(width, after, 1, 1)
            self.bn3 = nn.BatchNorm2d(after, device="meta")
        self.bottleneck = bottleneck
        self.downsample: nn.Sequential | None = None
        if stride > 1 or before != after:
            norm = nn.BatchNorm2d(after, device="meta")
            self.downsample = nn.Sequential(_convolution(before, after, 1, stride), norm)

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n o h2 w2"]:
        """Return the ReLU of the sum."""
        out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        if self.bottleneck:
            out = self.bn3(self.conv3(torch.relu(out)))
        return torch.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """See :func:`resnet`; its parameters have no values yet.

    Attributes:
        conv1: The first convolution, of 7 x 7 and stride 2, with its norm ``bn1``.
        layer1: The blocks of the first stage; so ``layer2``, ``layer3``, ``layer4``.
        fc: The linear layer.
    """

    def __init__(self, depth: int, channels: int, classes: int) -> None:
        super().__init__()
        blocks, bottleneck = STAGES[depth]
        self.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False, device="meta")
        self.bn1 = nn.BatchNorm2d(64, device="meta")
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        before = 64
        for stage, count in enumerate(blocks):
            width, layers = 64 * 2**stage, []
            for k in range(count):
                stride = 2 if stage and not k else 1
                layers.append(ResidualBlock(before, width, stride, bottleneck=bottleneck))
                before = width * EXPANSION if bottleneck else width
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(before, classes, device="meta")

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n c"]:
        """Return the scores of all classes."""
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        for stage in range(1, 5):
            x = self.get_submodule(f"layer{stage}")(x)
        scores: Tensor = self.fc(x.mean((2, 3)))
        return scores


def resnet(depth: int = 18, *, channels: int = 3, classes: int = 1000, seed: int = 0) -> ResNet:
    """Return a ResNet for photos (He et al., 2016), with the key names of the usual weights.

    ``net.load_state_dict(torch.load("resnet18-f37072fd.pth"))``, or :func:`pretrained`, for images
    of 224 pixels, normalised. Bottlenecks have their stride in the 3 x 3 convolution. The form for
    32 pixels is :func:`resnet18`.

    >>> sum(p.numel() for p in resnet(18).parameters())
    11689512

    Args:
        depth: 18, 34, 50, 101 or 152 layers with weights.
        channels: Channels of the images.
        classes: Number of outputs.
        seed: Seed of the initial weights, PyTorch's own; the global random state is not used.
    """
    if depth not in STAGES:
        raise ValueError(
            f"depth must be one of {', '.join(map(str, STAGES))}, found {depth!r}: choose one of "
            "them."
        )
    checks.whole(1, channels=channels, classes=classes)
    model = ResNet(depth, channels, classes)
    model.to_empty(device="cpu")
    pytorch_default(model, seed=seed)
    return model.eval()


def _convolution(before: int, after: int, size: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(before, after, size, stride, size // 2, bias=False, device="meta")
