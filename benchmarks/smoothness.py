"""How fast the smoothness measures are, beside what they are measured against.

    python benchmarks/smoothness.py            # one thread, then all threads, then memory

Network 784-256-1 with ReLU, float32, 1000 points, 1000 pairs x 100 knots. Both sides run in turn
in one process, best of several rounds, so that a busy machine slows both; where others use the
machine, take the best of several runs.

Each measure runs twice. "any module": the way for every module, here a network that hides its
first layer. "linear front": the way for every module whose input goes in through one linear map,
whatever comes after, where a Gram matrix stands for the second product with that map.

Bars: gradient_path_length <= 1.3 x its two matrix products per knot, under 1 GB;
gradient_norm >= 15 x (one thread) and 35 x (two) faster than a loop of torch.autograd.grad.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from inscape.smoothness import gradient_norm, gradient_path_length

WAYS = ("any module  ", "linear front")
POINTS, PAIRS, KNOTS, INPUTS, HIDDEN = 1000, 1000, 100, 784, 256


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)).eval()


class Opaque(torch.autograd.Function):
    """A linear map written by hand, in which autograd sees none."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Add and multiply in one call."""
        ctx.save_for_backward(weight)
        return torch.addmm(bias, x, weight.T)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        """Multiply the other way round."""
        (weight,) = ctx.saved_tensors
        return gradient @ weight, None, None


class Hidden(nn.Module):
    """The same network, with a first layer in which no linear map can be seen."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.first, self.rest = inner[0], inner[1:]  # type: ignore[index]

    def forward(self, x: Tensor) -> Tensor:
        """Call the opaque map with the weights of the first layer."""
        rest: Tensor = self.rest(Opaque.apply(x, self.first.weight, self.first.bias))  # type: ignore[no-untyped-call]
        return rest


def loop_of_gradients(f: nn.Module, x: Tensor) -> Tensor:
    """Return the gradient norms as most people write them: one point at a time."""
    norms = []
    for point in x:
        point = point[None].requires_grad_()
        (g,) = torch.autograd.grad(f(point).sum(), point)
        norms.append(g.norm())
    return torch.stack(norms)


def matrix_products(f: nn.Module, x: Tensor) -> None:
    """Do the two products per knot that autograd does: forward and back through W1."""
    weight = f[0].weight.detach()  # type: ignore[index]
    back = torch.rand(PAIRS, HIDDEN)
    for _ in range(KNOTS):
        x @ weight.T
        back @ weight


def best(*calls: Callable[[], object], rounds: int) -> list[float]:
    """Time the calls in turn, three times in a row each, and return the best of all rounds."""
    times = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            for _ in range(3):
                start = time.perf_counter()
                call()
                times[k] = min(times[k], time.perf_counter() - start)
    return times


def speed(threads: int, rounds: int) -> None:
    torch.set_num_threads(threads)
    f, x = network(), torch.rand(POINTS, INPUTS)
    hidden = Hidden(f).eval()
    print(f"{threads} thread(s)")
    bar = 15 if threads == 1 else 35
    *ours, loop = best(
        lambda: gradient_norm(hidden, x),
        lambda: gradient_norm(f, x),
        lambda: loop_of_gradients(f, x),
        rounds=2 * rounds,
    )
    for way, took in zip(WAYS, ours, strict=True):
        print(
            f"  gradient_norm         {way}  {took * 1e3:7.2f} ms   loop {loop * 1e3:9.1f} ms   "
            f"{loop / took:6.1f} x faster      bar {bar}: {verdict(loop / took >= bar)}"
        )
    *ours, products = best(
        lambda: gradient_path_length(hidden, x, pairs=PAIRS, knots=KNOTS),
        lambda: gradient_path_length(f, x, pairs=PAIRS, knots=KNOTS),
        lambda: matrix_products(f, x),
        rounds=rounds,
    )
    for way, took in zip(WAYS, ours, strict=True):
        print(
            f"  gradient_path_length  {way}  {took * 1e3:7.1f} ms   products {products * 1e3:5.1f} "
            f"ms   {took / products:6.2f} x their time  bar 1.30: {verdict(took / products <= 1.3)}"
        )


def verdict(met: bool) -> str:
    return "met" if met else "missed"


def memory(*, hide: bool) -> None:
    """Print the peak of this process above what it holds after its imports (Linux)."""
    f, x = network(), torch.rand(POINTS, INPUTS)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports
    before = _kilobytes("VmRSS")
    gradient_path_length(Hidden(f).eval() if hide else f, x, pairs=PAIRS, knots=KNOTS)
    peak = (_kilobytes("VmHWM") - before) / 1024
    print(
        f"  gradient_path_length  {WAYS[not hide]}  peak {peak:.0f} MB above its imports  "
        f"bar 1024: {verdict(peak < 1024)}"
    )


def _kilobytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", choices=("any", "front"), help="measure only the memory, here")
    options = parser.parse_args()
    if options.memory:
        memory(hide=options.memory == "any")
    else:
        all_threads = torch.get_num_threads()
        for count in sorted({1, all_threads}):
            speed(count, options.rounds)
        for way in ("any", "front"):
            subprocess.run([sys.executable, __file__, "--memory", way], check=True)
