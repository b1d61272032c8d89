"""How fast all linear regions of a network are found, beside one pass over their vertices.

    python benchmarks/regions.py             # everything
    python benchmarks/regions.py --only arrangement slices

Float64, box [-1, 1]^2, PyTorch's default initialisation after ``torch.manual_seed(0)``. The limit
for scale is a plain forward pass over the arrangement's own vertices in the best batch size, in the
same run, best of several. Ours returns every cell with its polygon, affine map, activation pattern
and neighbours. The network is read once from its export (its time is printed, and is not in the
ratio); then each call cuts anew.

Bars: at most 6 x the pass at 128x3 and 3 x at 256x3, one thread; two threads at least 1.6 x faster;
time per region of a 512x3 network grows by at most 1.5 x from 4 * 10^4 to 10^6 regions, in 8 GB; a
slice of a 784-128-10 network under 2 s; a window of a convolutional network with 20,000 regions
under 60 s. The last two are trained here on MNIST and CIFAR-10 where INSCAPE_DATA_DIR has them;
where it has not, other images stand in, and the line says so.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from bars import bar
from torch import Tensor, nn

from inscape.data import load
from inscape.models import image_net
from inscape.regions import plane_regions, through
from inscape.training import fit

KNOWN = {(32,): 152, (32, 32): 490, (64, 64, 64): 4066, (128, 128, 128): 23350}
BARS = {(128, 128, 128): 6.0, (256, 256, 256): 3.0}
#: Half sides of windows of a 512x3 network with about 4e4 and 1e6 cells.
SMALL, LARGE = 0.26, 4.0
SQUARE = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)


def initialised(*hidden: int, inputs: int = 2, outputs: int = 1) -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width, dtype=torch.float64), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, outputs, dtype=torch.float64)).eval()


def best(work: Callable[[], object], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def one_pass(model: nn.Module, x: Tensor) -> float:
    """Return the time of a forward pass in the batch size that suits it best."""
    sizes = [size for size in (128, 256, 512, 1024, 4096, 16384) if size < len(x)]

    @torch.no_grad()
    def forward(size: int) -> None:
        for part in torch.split(x, size):
            model(part)

    return min(best(lambda size=size: forward(size), 5) for size in [*sizes, len(x)])  # type: ignore[misc]


def arrangement() -> None:
    torch.set_num_threads(1)
    print(f"{'hidden':>16} {'cells':>8} {'ours':>10} {'one pass':>10} {'ratio':>7}")
    for hidden in [*KNOWN, (256, 256, 256)]:
        model = initialised(*hidden)
        start = time.perf_counter()
        found = plane_regions(model, SQUARE, domain=SQUARE, threads=1)
        first = time.perf_counter() - start
        assert found.cells == KNOWN.get(hidden, found.cells), (found.cells, hidden)
        ours = best(lambda m=model: plane_regions(m, SQUARE, domain=SQUARE, threads=1))  # type: ignore[misc]
        limit = one_pass(model, found.vertices)
        name = "x".join(map(str, hidden))
        print(
            f"{name:>16} {found.cells:>8} {ours * 1e3:>8.1f}ms {limit * 1e3:>8.1f}ms "
            f"{ours / limit:>7.2f}   (first call {first:.2f} s)"
        )
        if hidden in BARS:
            label = f"plane_regions, {name}, beside a forward pass over the vertices"
            bar(label, limit / ours, at_least=1 / BARS[hidden])


def threads() -> None:
    model = initialised(256, 256, 256)
    plane_regions(model, SQUARE, domain=SQUARE)
    times = {1: float("inf"), 2: float("inf")}
    for _ in range(9):  # in turn, so that a slow spell of the machine meets both
        for count in times:
            torch.set_num_threads(count)
            work = partial(plane_regions, model, SQUARE, domain=SQUARE, threads=count)
            times[count] = min(times[count], best(work, rounds=1))
    gain = times[1] / times[2]
    bar("plane_regions, two threads beside one, 256x3", gain, at_least=1.6)
    torch.set_num_threads(1)


def growth() -> None:
    """Cut a small and a large window of one 512x3 network as PyTorch initialises it.

    One thread, so that the processor's time is that of the work, whatever else the machine does.
    """
    torch.set_num_threads(1)
    model, few, many = initialised(512, 512, 512), [], []
    plane_regions(model, SQUARE, domain=0.01 * SQUARE)
    for half, each in [*[(SMALL, few)] * 3, (LARGE, many), *[(SMALL, few)] * 3]:
        start = time.process_time()
        found = plane_regions(model, SQUARE, domain=half * SQUARE, regions=5_000_000, threads=1)
        took = time.process_time() - start
        assert found.complete
        each.append(took / found.cells)
        print(f"window {half:>5}: {found.cells:>8} cells, {took / found.cells * 1e6:6.2f} us each")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ratio = many[0] / statistics.median(few)
    bar("plane_regions, time per cell from 4e4 to 1e6 cells, 512x3", ratio, at_most=1.5)
    bar("plane_regions, peak memory at 1e6 cells", peak, at_most=8, unit="GB")


def digits() -> tuple[nn.Module, Tensor, str]:
    """Return a 784-128-10 network trained on MNIST, or on the embedded digits made larger."""
    try:
        data = load("mnist", n=10_000)
        x, y, name = data.x, data.y, "MNIST"
    except ValueError:
        data = load("digits")
        x, y, name = data.x.reshape(-1, 1, 8, 8), data.y, "embedded digits made larger, no MNIST"
        x = nn.functional.interpolate(x.float(), size=28, mode="bilinear").flatten(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    run = fit(model, x.float(), y, loss="cross_entropy", epochs=3, lr=0.1, batch=64)
    return run.model.eval(), x.float(), f"{name}, {accuracy(run.model, x.float(), y):.0%} right"


def photographs() -> tuple[nn.Module, Tensor, str]:
    """Return a small convolutional network with MaxPool trained on CIFAR-10, and images."""
    model = image_net("simple")
    try:
        data = load("cifar10", n=5000)
    except ValueError:
        draw = torch.Generator().manual_seed(0)
        return (
            model,
            torch.rand(3, 3, 32, 32, generator=draw),
            "random images, no CIFAR-10: UNTRAINED",
        )
    run = fit(
        model, data.x, data.y, loss="cross_entropy", optimizer="adam", lr=0.001, epochs=5, batch=64
    )
    return run.model.eval(), data.x, f"CIFAR-10, {accuracy(run.model, data.x, data.y):.0%} right"


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    return float((model.eval()(x).argmax(1) == y).double().mean())


def slices() -> None:
    torch.set_num_threads(2)
    model, x, name = digits()
    start = time.perf_counter()
    found = plane_regions(model, x[:3])
    first = time.perf_counter() - start
    took = best(lambda: plane_regions(model, x[:3]), 3)
    print(f"slice of 784-128-10 between three digits ({name}): {found.cells} cells in {took:.2f} s "
          f"(first call {first:.2f} s)")  # fmt: skip
    bar("plane_regions, slice of 784-128-10", took, at_most=2, unit="s")


def convolutions() -> None:
    torch.set_num_threads(2)
    model, x, name = photographs()
    plane = through(x[:3])
    middle = plane.of(x[:3]).mean(0)
    for half in (0.04, 0.06, 0.09, 0.13, 0.2, 0.3, 0.45):
        start = time.perf_counter()
        found = plane_regions(model, x[:3], plane=plane, domain=middle + half * SQUARE)
        took = time.perf_counter() - start
        if found.cells >= 20_000:
            break
    print(f"window of +-{half:g} amid three images of a conv net with MaxPool ({name}): "
          f"{found.cells} cells in {took:.1f} s")  # fmt: skip
    seconds = took if found.cells >= 20_000 else float("inf")
    bar("plane_regions, 20,000 cells of a CNN with MaxPool", seconds, at_most=60, unit="s")


PARTS = {"arrangement": arrangement, "threads": threads, "growth": growth, "slices": slices,
         "convolutions": convolutions}  # fmt: skip

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    for name in parser.parse_args().only:
        PARTS[name]()
