"""Kernels that are compiled before the time of a look begins to run.

On a machine that is new to them numba takes some ten seconds to compile the kernels of the region
instruments. They are kept on disk, and later looks load them in less than a second.
"""

from collections.abc import Iterable

import numpy as np
import torch
from torch import nn

from inscape._core import instruments
from inscape._core.progress import silence
from inscape.piecewise.planes.raster import raster

#: Instruments that between them call all kernels of the family.
CALLING = ("plane_regions", "line_regions")

#: Those whose kernels are ready in this process.
_READY: set[str] = set()


def compile_ahead(names: Iterable[str]) -> None:
    """Compile or load the kernels that some instruments call, by calling them on a tiny network."""
    known = instruments()
    if not any(known[name].family == "regions" for name in names):
        return
    for name in CALLING:
        if name not in _READY:
            _READY.add(name)
            with silence(True):
                _run(name)


def _run(name: str) -> None:
    """Measure a network that has a convolution, a maximum and a hidden layer."""
    instrument = instruments()[name]
    draws = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3),
        ).eval()  # fmt: skip
    x, y = torch.randn(6, 1, 4, 4, generator=draws), torch.arange(6) % 3
    for _ in instrument.refine(model, x, y, **instrument.example(model, x, y)):
        pass
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])  # as a figure draws cells
    raster(square, np.arange(4), np.array([0, 4]), square[0], square[2], (2, 2))
