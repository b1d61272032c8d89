"""Raster: the answers of a network at the pixels of a window, which are there at once."""

import math
from collections.abc import Generator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.explorer.planes import ExploredPlane
from inscape.explorer.subject import ExploredNetwork, ExploredSubject
from inscape.explorer.wire import Array

#: A window smaller than this fraction of the first is evaluated in float64.
SMALL = 1e-3
#: Pixels along a side, at least, unless even these take longer than so many seconds.
COARSEST, LONGEST = 12, 8.0
#: Inputs at a time, so that a raster that is overtaken ends soon.
ROWS = 4096

Facts = dict[str, Any]


def pixels_of(width: int, height: int, pace: float, seconds: float) -> tuple[int, int]:
    """Return the pixels along both sides that can be evaluated in a time, in proportion.

    >>> pixels_of(200, 100, 1e-4, 1.0), pixels_of(200, 100, 1e-9, 1.0), pixels_of(9, 9, 1.0, 1.0)
    ((141, 70), (200, 100), (2, 2))
    """
    fraction = math.sqrt(min(1.0, seconds / (pace * width * height)))
    least = min(1.0, COARSEST / min(width, height), math.sqrt(LONGEST / (pace * width * height)))
    fraction = max(fraction, least)
    return max(1, int(width * fraction)), max(1, int(height * fraction))


def raster(
    subject: ExploredSubject,
    network: ExploredNetwork,
    plane: ExploredPlane,
    *,
    centre: tuple[float, float],
    half: tuple[float, float],
    width: int,
    height: int,
    seconds: float,
) -> Generator[None, None, tuple[Facts, dict[str, Array]]]:
    """Return classes and confidence, or values, at pixels of a window; rows go up from the lowest.

    No more pixels are evaluated than there is time for.
    """
    width, height = pixels_of(width, height, network.pace, seconds)
    outputs = yield from at_pixels(
        network, plane, centre=centre, half=half, width=width, height=height
    )
    facts = {"width": width, "height": height, "centre": list(centre), "half": list(half)}
    return facts, painted(subject, outputs)


def at_pixels(
    network: ExploredNetwork,
    plane: ExploredPlane,
    *,
    centre: tuple[float, float],
    half: tuple[float, float],
    width: int,
    height: int,
) -> Generator[None, None, Float64[Tensor, "n c"]]:
    """Return the outputs of a network at the pixels of a window, in float64 where it is small."""
    frame = plane.rebased(*centre)
    u = (torch.arange(width, dtype=torch.float64) * 2 + 1 - width) / width * half[0]
    v = (torch.arange(height, dtype=torch.float64) * 2 + 1 - height) / height * half[1]
    places = torch.stack(torch.meshgrid(u, v, indexing="xy"), 2).reshape(-1, 2)
    is_small = max(half) < SMALL * max(plane.half)
    outputs = []
    for part in torch.split(places, min(ROWS, network.batch)):
        outputs.append(network.outputs(frame.at(part), double=is_small))
        yield
    return torch.cat(outputs)


def painted(subject: ExploredSubject, outputs: torch.Tensor) -> dict[str, Array]:
    """Return what colours places: their classes and confidence, or the values of one output."""
    if not subject.is_competing:
        return {"value": outputs[:, 0].numpy().astype(np.float32)}
    classes = subject.scores(outputs).argmax(1).numpy().astype(np.uint16)
    confidence = (subject.confidence(outputs).clamp(0, 1) * 255).round()
    return {"classes": classes, "confidence": confidence.numpy().astype(np.uint8)}
