"""Print in JSON how many bytes a process grows by calls on one model, and on models that differ."""

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from inscape.piecewise import export
from inscape.piecewise.graph import cache
from inscape.regions import plane_regions

CALLS, MODELS = 200, 60


class Net(nn.Module):
    """A module with a forward of its own, in float32: a copy in float64 is read."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(2, width), nn.Linear(width, 1)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output of two layers."""
        return self.last(torch.relu(self.first(x)))


def growth(work: Callable[[], object]) -> int:
    """Return by how many bytes the process is larger after the work."""
    sizes = []
    for task in (lambda: None, work):
        task()
        gc.collect()
        sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)
    return sizes[1] - sizes[0]


def main() -> None:
    """Measure both."""
    x, net = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), Net(6)
    for _ in range(10):
        plane_regions(net, x)
    calls = growth(lambda: [plane_regions(net, x) and None for _ in range(CALLS)])
    cache.KEPT = 2
    for width in range(40):  # until the garbage between two collections is as large as it gets
        export(Net(10 + width), x)
    models = growth(lambda: [export(Net(50 + k), x) and None for k in range(MODELS)])
    sys.stdout.write(json.dumps({"calls": calls, "models": models}))


if __name__ == "__main__":
    main()
