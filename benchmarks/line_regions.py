"""How fast lines are cut, beside a forward pass over all the breakpoints that are found.

    python benchmarks/line_regions.py

Ours is the whole call: every breakpoint is found, with values and slopes of all pieces. The other
side is given the breakpoints and only evaluates the network there, in its best batch size, in the
same precision and with the same threads, in turn in one process.

- 1000 segments between random points through 784-256-256-256-1 with ReLU, float64. What the first
  layer gives is affine along a segment: the limit evaluates it at the ends of the segments only,
  and interpolates. Bar: at least as fast.
- A segment between two images through networks with convolutions, within some seconds. Bar: at most
  three forward passes of an image for each breakpoint (of as many at a time as are quickest), both
  by the processor's time of one thread, whatever else the machine does.
"""

import argparse
import time
from collections.abc import Callable
from itertools import pairwise

import torch
from bars import bar, threads, times
from networks import SHARED, SUBJECTS
from torch import Tensor, nn

from inscape.data import load
from inscape.models import mobilenet_v2
from inscape.regions.line_regions import LineRegions, line_regions

SEGMENTS, INPUTS, HIDDEN = 1000, 784, 256
BATCHES = (256, 512, 1024, 2048, 4096)
#: Breakpoints that are timed; the rest takes its share of that time, and would only fill memory.
TIMED = 16384
#: Seconds for each of them.
SECONDS = 8.0
#: Seconds of a first call, after which the network is read and kernels are compiled.
WARM = 5.0


def network() -> nn.Sequential:
    torch.manual_seed(0)
    widths = (INPUTS, HIDDEN, HIDDEN, HIDDEN, 1)
    layers: list[nn.Module] = []
    for d, c in pairwise(widths):
        layers += [nn.Linear(d, c), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double().eval()


@torch.no_grad()
def limit(f: nn.Sequential, x: Tensor, found: LineRegions, batch: int) -> None:
    """Evaluate the network at the first breakpoints, its first layer at the vertices alone."""
    first, rest = f[0](x), f[1:]
    segment = torch.repeat_interleave(torch.arange(len(found.cells)), found.offsets.diff())[:TIMED]
    t = found.t[:TIMED, None]
    for start in range(0, len(segment), batch):
        some = slice(start, start + batch)
        rest(torch.lerp(first[segment[some]], first[segment[some] + 1], t[some]))


def dense(count: int, rounds: int) -> None:
    with threads(count):
        f, x = network(), torch.rand(SEGMENTS + 1, INPUTS, dtype=torch.float64)
        found = line_regions(f, x)
        assert isinstance(found, LineRegions)
        works: dict[str, Callable[[], object]] = {
            f"batch {batch}": lambda batch=batch: limit(f, x, found, batch)  # type: ignore[misc]
            for batch in BATCHES
        }
        taken = times(rounds, ours=lambda: line_regions(f, x), **works)
        ours = taken.pop("ours")
        passes = min(taken.values()) * len(found.t) / min(TIMED, len(found.t))
    print(f"{count} thread(s): {len(found.t)} breakpoints in {ours:.3f} s, limit {passes:.3f} s")
    name = f"line_regions, 784-256x3-1, {count} thread(s), beside a forward pass at the breakpoints"
    bar(name, passes / ours, at_least=1.0)


@torch.no_grad()
def one_pass(f: nn.Module, image: Tensor) -> float:
    """Return the seconds of a forward pass of one image, in the best of some batches."""
    best = float("inf")
    for size in (1, 8, 32):
        batch = image.expand(size, *image.shape[1:]).contiguous()
        f(batch)
        for _ in range(3):
            start = time.process_time()
            f(batch)
            best = min(best, (time.process_time() - start) / size)
    return best


def two_convolutions() -> tuple[nn.Module, Tensor]:
    model, x, _ = SUBJECTS["two convolutions"]()
    return model, x


def mobilenet() -> tuple[nn.Module, Tensor]:
    """Return MobileNetV2 with ImageNet's weights, and images of CIFAR-10."""
    model = mobilenet_v2()
    model.load_state_dict(torch.load(SHARED / "weights" / "mobilenet_v2-b0353104.pth"))
    return model, load("cifar10", n=8).x


def photographs() -> tuple[nn.Module, Tensor]:
    """Return MobileNetV2 with two photos, the second a thousandth of the way from the first."""
    model, x, _ = SUBJECTS["MobileNetV2"]()
    return model, torch.stack([x[0], torch.lerp(x[0], x[1], 1e-3)])


CONVOLUTIONS = {
    "two convolutions, 28 px": two_convolutions,
    "MobileNetV2, 32 px": mobilenet,
    "MobileNetV2, 224 px": photographs,
}


def convolutions(name: str) -> None:
    """Cut one segment for some seconds, and count forward passes for each breakpoint."""
    model, x = CONVOLUTIONS[name]()
    images = x[:2].double()
    with threads(1):
        model = model.double().eval()
        line_regions(model, images, to=images.flip(0), seconds=WARM)  # reads and compiles
        before = one_pass(model, images[:1])
        start = time.process_time()
        found = line_regions(model, images, to=images.flip(0), seconds=SECONDS)
        took = time.process_time() - start
        each = (before + one_pass(model, images[:1])) / 2
    assert isinstance(found, LineRegions)
    breakpoints = max(1, len(found.slopes) - len(found.cells))
    print(f"{name}: {breakpoints} breakpoints in {took:.2f} s, a pass takes {each * 1e3:.1f} ms")
    label = f"line_regions, {name}, forward passes for each breakpoint"
    bar(label, took / breakpoints / each, at_most=3.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for count in sorted({1, torch.get_num_threads()}):
        dense(count, options.rounds)
    for name in CONVOLUTIONS:
        try:
            convolutions(name)
        except (FileNotFoundError, ValueError) as error:
            print(f"{name}: not run, {error}")
