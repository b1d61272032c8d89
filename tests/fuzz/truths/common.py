"""What several oracles need: points in float64, the draws that a seed stands for."""

import torch
from torch import Tensor

from fuzz.calls import Call
from inscape._core import draw_pairs


def points(call: Call) -> Tensor:
    """Return the inputs of a call in float64, apart from any graph."""
    with torch.inference_mode(False):
        return call.x.detach().clone().to_dense().double()


def labels(call: Call) -> Tensor:
    """Return the labels of a call, apart from any graph."""
    with torch.inference_mode(False):
        y: Tensor = call.y.detach().clone()
    return y


def seeded(seed: int) -> torch.Generator:
    """Return the generator that a seed stands for."""
    return torch.Generator().manual_seed(int(seed))


def drawn(call: Call, default: int = 1000) -> Tensor:
    """Return the numbers of the points that an instrument draws without replacement."""
    n, count = len(call.x), int(call.settings.get("points", default))
    if count >= n:
        return torch.arange(n)
    return torch.randperm(n, generator=seeded(call.settings.get("seed", 0)))[:count]


def chords(call: Call, name: str = "pairs") -> tuple[Tensor, Tensor]:
    """Return both ends of the chords that an instrument draws with replacement: by its own draw."""
    seed = call.settings.get("seed", 0)
    return draw_pairs(points(call), int(call.settings[name]), seed=seed)
