"""Images as the experiments see them: three channels, any side, normalised by channel or not."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from inscape.errors import DataError
from inscape.lab.experiment import Settings

if TYPE_CHECKING:
    from inscape.data import Dataset

SIDE, CHANNELS = 32, 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Images:
    """Training and test images with their classes."""

    x: Float[Tensor, "n 3 s s"]
    y: Int[Tensor, " n"]
    x_test: Float[Tensor, "m 3 s s"]
    y_test: Int[Tensor, " m"]


@lru_cache(maxsize=1)
def raw(data: str) -> "Dataset":
    """Return a data set as it is, e.g. ``"cifar10:n=5000"``, or say that there is too little."""
    from inscape.data import load

    try:
        return load(data, flat=False)
    except DataError:
        raise
    except ValueError as error:  # more images are asked for than the files here hold
        raise DataError(f"{data} needs files that are not here: {error}") from error


@lru_cache(maxsize=100)
def data_hash(data: str) -> str:
    """Return the hash of the data, once for all cells."""
    return raw(data).hash


def hash_of(settings: Settings) -> str:
    """Return the hash of the data that a cell reads."""
    return data_hash(settings["data"])


@lru_cache(maxsize=1)
def images(data: str, *, side: int = SIDE, normalised: bool = True) -> Images:
    """Return images in [0, 1], or with mean 0 and standard deviation 1 in each channel.

    Args:
        data: Data set and number of its training images.
        side: Height and width: means over blocks of the 32 x 32 pixels.
        normalised: Whether the channels are, by the training images.
    """
    given = raw(data)
    if given.x_test is None or given.y_test is None:
        raise DataError(f"{data} must have test images, found none: add the test files.")
    x, x_test = resized(given.x, side), resized(given.x_test, side)
    if normalised:
        spread, mean = torch.std_mean(x, (0, 2, 3))
        x, x_test = ((part - mean[:, None, None]) / spread[:, None, None] for part in (x, x_test))
    return Images(x=x, y=given.y, x_test=x_test, y_test=given.y_test)


def resized(x: Float[Tensor, "n k h w"], side: int) -> Float[Tensor, "n 3 s s"]:
    """Return images of three channels; other sizes than 32 are interpolated to it first."""
    if x.shape[-1] != SIDE:
        x = nn.functional.interpolate(x, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
    return nn.functional.avg_pool2d(x.expand(-1, CHANNELS, -1, -1), SIDE // side)


def number_of(data: str) -> int:
    """Return how many training images a name asks for."""
    return int(data.partition("n=")[2].partition(",")[0])
