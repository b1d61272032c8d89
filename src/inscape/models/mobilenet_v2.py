"""MobileNetV2: for photos, with the names of the weights that are common, and for CIFAR-10."""

from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape.models.initialisation import pytorch_default

#: How much each stage widens, its channels, its blocks and its first stride.
STAGES = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # fmt: skip


class InvertedResidual(nn.Module):
    """Widen by 1 x 1, filter each channel, narrow by 1 x 1; with a skip where the size stays.

    Attributes:
        conv: The three convolutions with batch norm.
        shortcut: A convolution of 1 x 1 with batch norm; None for the identity or no skip.
        skips: Whether something is added at all.
    """

    def __init__(self, before: int, after: int, stride: int, widen: int, *, cifar: bool) -> None:
        super().__init__()
        inner = before * widen
        self.conv = nn.Sequential(
            *([_convolved(before, inner, 1, cifar=cifar)] if widen > 1 or cifar else []),
            _convolved(inner, inner, 3, stride, groups=inner, cifar=cifar),
            nn.Conv2d(inner, after, 1, bias=False, device="meta"),
            nn.BatchNorm2d(after, device="meta"),
        )
        self.skips = stride == 1 and (cifar or before == after)
        self.shortcut: nn.Sequential | None = None
        if self.skips and before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, bias=False, device="meta"),
                nn.BatchNorm2d(after, device="meta"),
            )

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n o h2 w2"]:
        """Return the narrowed channels, with what is skipped."""
        out: Tensor = self.conv(x)
        if not self.skips:
            return out
        return out + (x if self.shortcut is None else self.shortcut(x))


class MobileNetV2(nn.Module):
    """See :func:`mobilenet_v2`.

    Attributes:
        features: All convolutions.
        classifier: Dropout (for photos) and the linear layer.
    """

    def __init__(self, channels: int, classes: int, width: float, *, cifar: bool) -> None:
        super().__init__()
        before = _scaled(32, width)
        layers: list[nn.Module] = [_convolved(channels, before, 3, 1 if cifar else 2, cifar=cifar)]
        for stage, (widen, full, blocks, first) in enumerate(STAGES):
            after = _scaled(full, width)
            for k in range(blocks):
                stride = first if k == 0 and not (cifar and stage == 1) else 1
                layers.append(InvertedResidual(before, after, stride, widen, cifar=cifar))
                before = after
        last = _scaled(1280, max(width, 1.0))
        layers.append(_convolved(before, last, 1, cifar=cifar))
        self.features = nn.Sequential(*layers)
        dropout = 0.0 if cifar else 0.2
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(last, classes, device="meta")
        )

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n c"]:
        """Return the scores of all classes."""
        scores: Tensor = self.classifier(self.features(x).mean((2, 3)))
        return scores


def mobilenet_v2(
    form: str = "imagenet",
    *,
    channels: int = 3,
    classes: int | None = None,
    width: float = 1.0,
    seed: int = 0,
) -> MobileNetV2:
    """Return MobileNetV2 (Sandler et al., 2018).

    The form ``"imagenet"`` has the key names of the usual weights (``mobilenet_v2-b0353104.pth``):
    ``net.load_state_dict(torch.load(path))``, for images of 224 pixels, normalised. The form
    ``"cifar"`` is the one of Goldblum's code for 32 pixels: strides of the first convolution and of
    the second stage are 1, ReLU instead of ReLU6, the first block has its 1 x 1 convolution too,
    and blocks of stride 1 that change the channels have a shortcut of 1 x 1.

    >>> sum(p.numel() for p in mobilenet_v2().parameters())
    3504872
    >>> sum(p.numel() for p in mobilenet_v2("cifar").parameters())
    2296922

    Args:
        form: ``"imagenet"`` or ``"cifar"``.
        channels: Channels of the images.
        classes: Number of outputs; 1000 or 10 by default.
        width: Factor of all channels but the last 1280 (of them, too, above 1), which are rounded
            to multiples of 8 and stay above 0.9 of it, as in the paper.
        seed: Seed of the initial weights, PyTorch's own; the global random state is not used.
    """
    checks.one_of(("imagenet", "cifar"), form=form)
    cifar = form == "cifar"
    outputs = (10 if cifar else 1000) if classes is None else classes
    checks.whole(1, channels=channels, classes=outputs)
    checks.at_least(0.01, width=width)
    model = MobileNetV2(channels, outputs, width, cifar=cifar)
    model.to_empty(device="cpu")
    pytorch_default(model, seed=seed)
    return model.eval()


def _scaled(channels: int, width: float) -> int:
    """Return channels times the width, as the nearest multiple of 8 that keeps nine tenths."""
    wanted = channels * width
    nearest = max(8, int(wanted + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * wanted else nearest + 8


def _convolved(
    before: int, after: int, size: int, stride: int = 1, *, groups: int = 1, cifar: bool
) -> nn.Sequential:
    layer = nn.Conv2d(
        before, after, size, stride, size // 2, groups=groups, bias=False, device="meta"
    )
    activation = nn.ReLU() if cifar else nn.ReLU6()
    return nn.Sequential(layer, nn.BatchNorm2d(after, device="meta"), activation)
