"""The four small networks for images of Sattelberg's section 6.1.

All take images of three channels and 32 x 32 pixels and give ten outputs. The dissertation leaves
the padding of the convolutions and the size of the pools open: here convolutions pad by one pixel,
so that they keep the size of the image, and pools take 2 x 2 pixels.
"""

from collections.abc import Callable

from torch import nn

from inscape._core import checks
from inscape.models.initialisation import pytorch_default

FILTERS = 32
HIDDEN = 128


def image_net(
    name: str, *, channels: int = 3, side: int = 32, classes: int = 10, seed: int = 0
) -> nn.Sequential:
    """Build one of the networks, with PyTorch's own initial weights.

    >>> image_net("dense")
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=3072, out_features=128, bias=True)
      (2): ReLU()
      (3): Linear(in_features=128, out_features=10, bias=True)
    )

    Args:
        name: ``"linear"``; ``"dense"``, 128 hidden ReLU units; ``"simple"``, two convolutions of 32
            filters of 3 x 3, each followed by a max pool and then a ReLU; ``"complex"``, three of
            them, each followed by a ReLU and then a max pool.
        channels: Channels of the images.
        side: Height and width of the images; a multiple of 4 for ``"simple"``, 8 for ``"complex"``.
        classes: Number of outputs.
        seed: Seed of the initial weights; the global random state is not used.
    """
    checks.one_of(tuple(IMAGE_NETS), name=name)
    checks.at_least(1, channels=channels, side=side, classes=classes)
    halvings = {"simple": 2, "complex": 3}.get(name, 0)
    if side % 2**halvings:
        raise ValueError(
            f"side must be a multiple of {2**halvings} for {name!r}, whose {halvings} pools halve "
            f"it, found {side}: scale the images."
        )
    model = nn.Sequential(*IMAGE_NETS[name](channels, side, classes))
    model.to_empty(device="cpu")
    pytorch_default(model, seed=seed)
    return model.eval()


def _linear(channels: int, side: int, classes: int) -> list[nn.Module]:
    return [nn.Flatten(), _dense(channels * side * side, classes)]


def _hidden(channels: int, side: int, classes: int) -> list[nn.Module]:
    inputs = channels * side * side
    return [nn.Flatten(), _dense(inputs, HIDDEN), nn.ReLU(), _dense(HIDDEN, classes)]


def _simple(channels: int, side: int, classes: int) -> list[nn.Module]:
    body = [
        *(_convolution(channels), nn.MaxPool2d(2), nn.ReLU()),
        *(_convolution(FILTERS), nn.MaxPool2d(2), nn.ReLU()),
    ]
    return [*body, nn.Flatten(), _dense(FILTERS * (side // 4) ** 2, classes)]


def _complex(channels: int, side: int, classes: int) -> list[nn.Module]:
    body = [
        *(_convolution(channels), nn.ReLU(), nn.MaxPool2d(2)),
        *(_convolution(FILTERS), nn.ReLU(), nn.MaxPool2d(2)),
        *(_convolution(FILTERS), nn.ReLU(), nn.MaxPool2d(2)),
    ]
    return [*body, nn.Flatten(), _dense(FILTERS * (side // 8) ** 2, classes)]


def _dense(inputs: int, outputs: int) -> nn.Linear:
    # On the meta device a layer draws no first weights from the global random state.
    return nn.Linear(inputs, outputs, device="meta")


def _convolution(channels: int) -> nn.Conv2d:
    return nn.Conv2d(channels, FILTERS, 3, padding=1, device="meta")


IMAGE_NETS: dict[str, Callable[[int, int, int], list[nn.Module]]] = {
    "linear": _linear,
    "dense": _hidden,
    "simple": _simple,
    "complex": _complex,
}
