"""A network that was trained on another problem: MobileNetV2 with a last layer of our own.

It stands for the ResNets and the Inception network, whose weights are not to be had here. Images of
32 x 32 pixels are scaled up bilinearly, so that its local maps are those of the small image.
"""

import hashlib
from functools import lru_cache
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape.errors import DataError
from inscape.models import pretrained as published
from inscape.papers.sattelberg import _images

FILE = "mobilenet_v2-b0353104.pth"
#: What images of ImageNet are centred and scaled by.
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FEATURES = 1280


class Pretrained(nn.Module):
    """MobileNetV2 on upsampled images, which come as our networks take them.

    Args:
        body: The convolutions, with their weights.
        head: The last layer.
        mean: What the small images were centred by, for each channel.
        spread: What they were divided by.
        side: Height and width that they are scaled to.
    """

    scale: Tensor
    shift: Tensor

    def __init__(
        self, body: nn.Module, head: nn.Module, mean: Tensor, spread: Tensor, side: int
    ) -> None:
        super().__init__()
        self.body, self.head, self.side = body, head, side
        there = torch.tensor(MEAN), torch.tensor(SPREAD)
        self.register_buffer("scale", (spread / there[1])[:, None, None])
        self.register_buffer("shift", ((mean - there[0]) / there[1])[:, None, None])

    def features(self, x: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n features"]:
        """Return what the last layer sees."""
        x = nn.functional.interpolate(
            x, size=(self.side, self.side), mode="bilinear", align_corners=False
        )
        found: Tensor = self.body(x * self.scale + self.shift).mean((2, 3))
        return found

    def forward(self, x: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n classes"]:
        """Return the scores of the ten classes."""
        scores: Tensor = self.head(self.features(x))
        return scores


@lru_cache(maxsize=1)
def weights() -> tuple[Path, str]:
    """Return the file of weights and its hash, or say where to put it."""
    from inscape.data.places import roots

    path = next((root / FILE for root in roots() if (root / FILE).is_file()), None)
    if path is None:
        raise DataError(
            f"the pretrained network needs {FILE}, torchvision's MobileNetV2 for ImageNet, found "
            f"none: put it into {roots()[-1]}."
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if not found.startswith(FILE.partition("-")[2].partition(".")[0]):
        raise DataError(
            f"{path} must have a SHA-256 that begins with b0353104, found {found[:8]}: fetch it "
            "again."
        )
    return path, found


@lru_cache(maxsize=1)
def bare(data: str, side: int) -> Pretrained:
    """Return the network with its own weights, without a last layer of ours."""
    given = _images.prepared(data)
    body = published("mobilenet_v2", file=weights()[0]).get_submodule("features")
    return Pretrained(body, nn.Identity(), given.mean, given.spread, side).eval()


@lru_cache(maxsize=1)
@torch.no_grad()
def _features(data: str, side: int) -> Float[Tensor, "n 1280"]:
    """Return the features of all training images."""
    body = bare(data, side)
    return torch.cat([body.features(rows) for rows in torch.split(_images.prepared(data).x, 100)])


def pretrained(
    optimizer: str, data: str, side: int, *, epochs: int, seed: int, state: object = None
) -> Pretrained:
    """Return the network with a last layer that was trained on a data set.

    Args:
        optimizer: ``"sgd"`` or ``"adamw"``.
        data: The data set.
        side: Height and width that images are scaled to.
        epochs: Passes over the features of the training images.
        seed: Seed of the first weights and of the shuffles.
        state: Weights of the last layer; it is trained without.
    """
    from inscape.models.initialisation import pytorch_default
    from inscape.training import fit

    body, given = bare(data, side), _images.prepared(data)
    head = nn.Linear(FEATURES, 10, device="meta").to_empty(device="cpu")
    if state is None:
        pytorch_default(head, seed=seed)
        fit(
            head, _features(data, side), given.y, loss="cross_entropy", batch=_images.BATCH,
            epochs=epochs, seed=seed, progress=False, **_images.OPTIMIZERS[optimizer],
        )  # fmt: skip
    else:
        head.load_state_dict(state)  # type: ignore[arg-type]
    return Pretrained(body.body, head, given.mean, given.spread, side).eval()
