"""Print the peak memory of instruments under a small and a large budget, each as one line of JSON.

A process of its own: what other tests have left on the heap would hide what a call takes.
"""

import ctypes
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import inscape
from inscape.extrapolation import error_map
from inscape.training import fit

#: Bytes that each of them is given.
BUDGET = 16 * 2**20


def dense(*widths: int) -> nn.Sequential:
    """Return a ReLU network in float32."""
    layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    return nn.Sequential(*[m for layer in layers for m in (layer, nn.ReLU())][:-1]).eval()


def broad() -> nn.Sequential:
    """Return a network with many activations, few weights and little work."""
    return nn.Sequential(
        nn.Linear(8, 2000), nn.Tanh(), nn.Tanh(), nn.Tanh(), nn.Tanh(), nn.Linear(2000, 2)
    ).eval()


def status(name: str) -> int:
    """Return a number of bytes that Linux keeps of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024


def peak(call: Callable[[], Any]) -> tuple[int, int]:
    """Return how far the memory of the process rises during a call, and what the call returns."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    result = call()
    return status("VmHWM") - before, held(result)


def held(result: Any) -> int:
    """Return the bytes of all tensors of a result."""
    values = [result] if isinstance(result, Tensor) else vars(result).values()
    return sum(v.numel() * v.element_size() for v in values if isinstance(v, Tensor))


def cases() -> dict[str, Callable[[int], Any]]:
    """Return for each instrument a call that takes a budget."""
    torch.manual_seed(0)
    wide, other, x, y = broad(), broad(), torch.randn(2000, 8), torch.randint(2, (2000,))
    deep, rows, plane = dense(10, 100, 100, 1), torch.randn(100, 10), torch.randn(50, 2)
    small, some, targets = dense(32, 128, 2), torch.randn(300, 32), torch.randn(300, 2)
    run = fit(small, some, targets, lr=0.01, epochs=1, batch=150, record=1, progress=False)
    map_net = nn.Sequential(
        nn.Linear(2, 4000), *[nn.Tanh() for _ in range(3)], nn.Linear(4000, 1)
    ).eval()
    smooth, maps, k = inscape.smoothness, inscape.regions, inscape.kernels
    calls: dict[str, Callable[[int], Any]] = {
        "gradient_norm": lambda m: smooth.gradient_norm(wide, x, memory=m),
        "path_length": lambda m: smooth.path_length(wide, x, pairs=20, memory=m),
        "gradient_path_length": lambda m: smooth.gradient_path_length(wide, x, pairs=20, memory=m),
        "gradient_deflection": lambda m: smooth.gradient_deflection(wide, x, pairs=20, memory=m),
        "rugosity": lambda m: smooth.rugosity(wide, x, points=500, memory=m),
        "effective_length_scale": lambda m: smooth.effective_length_scale(
            wide, x, lines=100, resamples=9, memory=m
        ),
        "extrapolation": lambda m: inscape.extrapolation.extrapolation(
            wide, x, y, queries=x, answers=y, peers=(), known=99, memory=m
        ),
        "error_map": lambda m: error_map(map_net, lambda x: x[:, :1], size=80, memory=m),
        "robustness": lambda m: inscape.robustness.robustness(
            wide, x, y, attack="fgsm", points=2000, budgets=[0.5], sanity=False, memory=m
        ),
        "lipschitz": lambda m: inscape.controls.lipschitz(wide, x, points=2000, memory=m),
        "fisher_rao_norm": lambda m: inscape.spectra.fisher_rao_norm(wide, x, y, memory=m),
        "interpolation": lambda m: inscape.landscape.interpolation(
            wide, x, y, other=other, at=torch.linspace(0, 1, 2), memory=m
        ),
        "local_maps": lambda m: maps.local_maps(wide, x, points=2000, patterns=False, memory=m),
        "grid_regions": lambda m: maps.grid_regions(wide, x, grid=40, memory=m),
        "line_regions": lambda m: maps.line_regions(deep, rows, pairs=40, memory=m),
        "path_length, exact": lambda m: smooth.path_length(
            deep, rows, pairs=40, exact=True, memory=m
        ),
        "plane_regions": lambda m: maps.plane_regions(dense(2, 300, 1), plane, memory=m),
        "boundary": lambda m: maps.boundary(dense(2, 300, 1), plane, memory=m),
        "tangent_kernel": lambda m: k.tangent_kernel(small, some, outputs="trace", memory=m),
        "neighbours": lambda m: k.neighbours(small, some, memory=m),
        "kernel_drift": lambda m: k.kernel_drift(small, some, trajectory=run.trajectory, memory=m),
        "path_kernel": lambda m: k.path_kernel(
            small, some, targets, trajectory=run.trajectory, queries=some, memory=m
        ),
    }
    return calls


def main() -> None:
    """Measure the instruments that are named, or all."""
    torch.set_num_threads(1)
    for name, call in cases().items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        call(BUDGET)  # whatever is loaded or compiled at the first call
        # A heap with holes rises by more than a call needs, now and then, and never by less.
        small, result = min(peak(lambda call=call: call(BUDGET)) for _ in range(3))
        large, _ = peak(lambda call=call: call(2**30))
        row = {"name": name, "small": small, "large": large, "result": result}
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
