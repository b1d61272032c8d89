"""Kernels that are compiled before the time of a look begins to run.

On a machine that is new to them numba takes about half a minute to compile the kernels that the
region instruments call. They are kept on disk, and later looks load them in a few seconds.
"""

from collections.abc import Iterable

import numpy as np
import torch
from torch import nn

from inscape._core import instruments
from inscape.piecewise.planes.raster import raster
from inscape.runtime.progress import silence

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
    """Measure a network with a convolution and a maximum, and one of matrices alone.

    Both have a hidden layer behind another: lines and planes are cut by other kernels there.
    """
    instrument = instruments()[name]
    draws = torch.Generator().manual_seed(0)
    x, y = torch.randn(6, 1, 4, 4, generator=draws), torch.arange(6) % 3
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        maxima = nn.Sequential(
            nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3),
        )  # fmt: skip
        matrices = nn.Sequential(
            nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3)
        )
    for model, rows in ((maxima, x), (matrices, x.flatten(1))):
        model.eval()
        for _ in instrument.refine(model, rows, y, **instrument.example(model, rows, y)):
            pass
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])  # as a figure draws cells
    raster(square, np.arange(4), np.array([0, 4]), square[0], square[2], (2, 2))
