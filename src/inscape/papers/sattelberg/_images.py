"""Section 6.1's design: four small networks, two optimizers, MNIST and CIFAR-10.

``trained(net, optimizer, data, epochs, copy)`` gives a trained network, for every figure
that needs one.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from inscape.errors import DataError
from inscape.lab.experiment import Settings
from inscape.papers.sattelberg._seeds import own_seed

if TYPE_CHECKING:
    from inscape.data import Dataset

NETS = ("linear", "dense", "simple", "complex")
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"optimizer": "sgd", "lr": 0.01, "momentum": 0.5, "weight_decay": 0.01},
    "adamw": {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 0.01},
}
SIDE, CHANNELS, BATCH = 32, 3, 32
#: Images that are handled at once outside of training.
CHUNK = 1000
#: Milliseconds that one image takes in one epoch.
COST = {"linear": 0.024, "dense": 0.07, "simple": 0.26, "complex": 0.33}
#: The zero of figure 6.3 is the fourth of its row of zeros.
FOURTH = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Images:
    """Images as the networks see them: three channels, 32 x 32, centred and scaled by channel."""

    x: Float[Tensor, "n 3 32 32"]
    y: Int[Tensor, " n"]
    x_test: Float[Tensor, "m 3 32 32"]
    y_test: Int[Tensor, " m"]
    mean: Float[Tensor, " 3"]
    spread: Float[Tensor, " 3"]


@lru_cache(maxsize=2)
def raw(data: str) -> "Dataset":
    """Return a data set as it is, e.g. ``"mnist:n=60000"``, or say that there is too little."""
    from inscape.data import load

    try:
        return load(data, flat=False)
    except DataError:
        raise
    except ValueError as error:  # more images are asked for than the files here hold
        raise DataError(f"{data} needs files that are not here: {error}") from error


def hash_of(settings: Settings) -> str:
    """Return the hash of the data that a cell reads."""
    return data_hash(settings["data"])


@lru_cache(maxsize=100)
def data_hash(data: str) -> str:
    """Return the hash of the data, once for all cells."""
    return raw(data).hash


@lru_cache(maxsize=1)
def prepared(data: str) -> Images:
    """Return a data set in the form that all networks take."""
    given = raw(data)
    if given.x_test is None or given.y_test is None:
        raise DataError(f"{data} must have test images, found none: add the test files.")
    spread, mean = torch.std_mean(resized(given.x), (0, 2, 3))
    return Images(
        x=normalised(given.x, mean, spread),
        y=given.y,
        x_test=normalised(given.x_test, mean, spread),
        y_test=given.y_test,
        mean=mean,
        spread=spread,
    )


def resized(x: Float[Tensor, "n k h w"]) -> Float[Tensor, "n 3 32 32"]:
    """Return images scaled to 32 x 32 by bilinear interpolation; grey is repeated three times."""
    if x.shape[-1] != SIDE:
        x = nn.functional.interpolate(x, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
    return x.expand(-1, CHANNELS, -1, -1)


def normalised(
    x: Float[Tensor, "n k h w"], mean: Float[Tensor, " 3"], spread: Float[Tensor, " 3"]
) -> Float[Tensor, "n 3 32 32"]:
    """Return images resized, centred and scaled by channel, laid out for fast convolutions."""
    whole = torch.empty(len(x), CHANNELS, SIDE, SIDE).to(memory_format=torch.channels_last)
    for rows, part in zip(torch.split(whole, CHUNK), torch.split(x, CHUNK), strict=True):
        rows.copy_((resized(part) - mean[:, None, None]) / spread[:, None, None])
    return whole


def trained(net: str, optimizer: str, data: str, epochs: int, copy: int) -> nn.Sequential:
    """Return a network of section 6.1 trained as it says, in eval mode.

    Args:
        net: ``"linear"``, ``"dense"``, ``"simple"`` or ``"complex"``.
        optimizer: ``"sgd"`` or ``"adamw"``.
        data: Data set and number of its training images, e.g. ``"cifar10:n=20000"``.
        epochs: Passes over them.
        copy: 1 or 2: other initial weights, other shuffles.
    """
    from inscape.models.image_nets import image_net
    from inscape.training import fit

    given = prepared(data)
    seed = own_seed(NETS.index(net), copy)
    model = image_net(net, seed=seed)
    _lay_out(model, torch.channels_last)
    fit(
        model,
        given.x,
        given.y,
        loss="cross_entropy",
        batch=BATCH,
        epochs=epochs,
        seed=seed,
        progress=False,
        **OPTIMIZERS[optimizer],
    )
    _lay_out(model, torch.contiguous_format)
    return model


def _lay_out(model: nn.Sequential, order: torch.memory_format) -> None:
    """Change the order of filters in memory: with channels last, training takes half the time."""
    for parameter in model.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=order)


@torch.no_grad()
def accuracy(model: nn.Module, x: Float[Tensor, "m 3 32 32"], y: Int[Tensor, " m"]) -> float:
    """Return the share of images whose largest output is their class."""
    right = [
        int((model(rows).argmax(1) == classes).sum())
        for rows, classes in zip(torch.split(x, CHUNK), torch.split(y, CHUNK), strict=True)
    ]
    return sum(right) / len(x)


def fourth_zero(data: str) -> int:
    """Return which training image the coefficients are taken at: the fourth of class 0."""
    return int(torch.nonzero(raw(data).y == 0)[FOURTH, 0])


def kind(data: str) -> str:
    """Return the name of a data set without its settings."""
    return data.partition(":")[0]


def coefficients(model: nn.Module, x: Float[Tensor, "3 32 32"]) -> Float64[Tensor, "classes 32 32"]:
    """Return the coefficients of each output at one image, in float64.

    The three channels hold the same grey image, so the coefficient of a pixel is their sum.
    """
    from copy import deepcopy

    double = deepcopy(model).double()
    whole: Tensor = torch.func.jacrev(lambda image: double(image[None])[0])(x.double())
    return whole.detach().sum(1)


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: reading the data, and training."""
    images = int(settings["data"].rpartition("=")[2])
    return float(5 + images * settings["epochs"] * COST[settings["net"]] / 1000)
