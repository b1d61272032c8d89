"""How fast lines are cut, beside one plain forward pass over all the breakpoints that are found.

    python benchmarks/line_regions.py          # one thread, then all threads

1000 segments between random points through 784-256-256-256-1 with ReLU, float64. Ours is the whole
call: the graph is exported, every breakpoint found, with values and slopes of all pieces. The other
side evaluates the network at those breakpoints, which it is given, in its best batch size. Both
run in turn in one process, best of several rounds; where others use the machine, take the best of
several runs.

Bar: no more than the forward pass, with one thread and with all.
"""

import argparse
import time
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

from inscape.regions.line_regions import LineRegions, line_regions
from inscape.smoothness import path_length

SEGMENTS, INPUTS, HIDDEN = 1000, 784, 256
BATCHES = (256, 512, 1024, 2048, 4096)
#: Breakpoints that are timed; the rest takes its share of that time, and would only fill memory.
TIMED = 16384


def network() -> nn.Module:
    torch.manual_seed(0)
    widths = (INPUTS, HIDDEN, HIDDEN, HIDDEN, 1)
    layers: list[nn.Module] = []
    for d, c in pairwise(widths):
        layers += [nn.Linear(d, c), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double().eval()


@torch.no_grad()
def forward(f: nn.Module, x: Tensor, batch: int) -> None:
    for start in range(0, len(x), batch):
        f(x[start : start + batch])


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def speed(threads: int, rounds: int) -> None:
    torch.set_num_threads(threads)
    f, x = network(), torch.rand(SEGMENTS + 1, INPUTS, dtype=torch.float64)
    found = line_regions(f, x)
    assert isinstance(found, LineRegions)
    knots = len(found.t)
    some = torch.rand(TIMED, INPUTS, dtype=torch.float64)
    share = knots / TIMED
    ours = exact = passes = float("inf")
    for _ in range(rounds):
        ours = min(ours, seconds(lambda: line_regions(f, x)))
        exact = min(exact, seconds(lambda: path_length(f, x, pairs=SEGMENTS, exact=True)))
        for batch in BATCHES:
            passes = min(passes, share * seconds(lambda: forward(f, some, batch)))  # noqa: B023
    pieces = int(found.cells.sum())
    print(f"{threads} thread(s): {SEGMENTS} segments, {pieces} pieces")
    print(
        f"  line_regions {ours:6.3f} s   forward pass over {knots} breakpoints {passes:6.3f} s   "
        f"{ours / passes:5.2f} x its time   bar 1.00: {'met' if ours <= passes else 'missed'}"
    )
    print(f"  path_length(exact=True), {SEGMENTS} random pairs  {exact:6.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    all_threads = torch.get_num_threads()
    for count in sorted({1, all_threads}):
        speed(count, options.rounds)
