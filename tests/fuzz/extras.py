"""Arguments that some instruments need beside the data: trajectories, second networks, starts."""

import copy
from functools import lru_cache
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from fuzz import data
from fuzz.networks import Network
from inscape.training import Trajectory, fit

#: Instruments of two functions.
PAIRS = frozenset({
    "disagreement", "output_cross_entropy", "map_distance", "map_alignment", "map_transfer",
    "slice_difference", "layer_alignment", "procrustes_distance", "canonical_correlation",
    "mutual_neighbours",
})  # fmt: skip


class Wrapped:
    """A function around a module, which tells the module."""

    def __init__(self, network: Network, module: nn.Module) -> None:
        self.module, self._f = module, network.wrap(module)

    def __call__(self, x: Tensor) -> Tensor:
        return self._f(x)


def _second(network: Network, module: nn.Module) -> Any:
    """Return a second network, called as the first is."""
    return module if network.wrap(module) is module else Wrapped(network, module)


def extra(instrument: str, draw: Random, network: Network) -> dict[str, Any] | None:
    """Return further arguments of a call; None if they cannot be made."""
    if instrument in ("kernel_drift", "region_evolution", "path_kernel"):
        training = _training(network)
        if training is None:
            return None
        x, y, trajectory = training
        return {"trajectory": trajectory, "data": (x, y)}
    if instrument == "interpolation":
        return {"other": _moved(network.module, draw)}
    if instrument in PAIRS:
        return {"other": _second(network, _moved(network.module, draw))}
    if instrument == "distance_from_init":
        return {"start": _moved(network.module, draw)}
    return {}


def _moved(module: nn.Module, draw: Random) -> nn.Module:
    """Return a copy with noise on its parameters."""
    moved = copy.deepcopy(module)
    generator = torch.Generator().manual_seed(draw.getrandbits(40))
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator).to(parameter))
    return moved


@lru_cache(maxsize=1024)
def _training(network: Network) -> tuple[Tensor, Tensor, Trajectory] | None:
    """Return a short training of a copy of a network; None where ``fit`` refuses it."""
    draw = Random(str(network.shape))
    x = data.gaussian(draw, network.shape, network.dtype)
    try:
        with torch.no_grad():
            outputs = network.f(x.clone())
        y = torch.sin(outputs.flatten(1) + 1)
        body = copy.deepcopy(network.module)
        run = fit(
            body, x, y, lr=0.01, epochs=2, record=1, batch=draw.choice([None, 2]), progress=False
        )
    except Exception:
        return None
    return x, y, run.trajectory
