"""How fast all linear regions of a network are found, beside one pass over their vertices.

    python benchmarks/regions.py             # everything
    python benchmarks/regions.py --only arrangement slices

Float64, box [-1, 1]^2, PyTorch's default initialisation after ``torch.manual_seed(0)``. The limit
for scale is a plain forward pass over the arrangement's own vertices in the best batch size, in the
same run, best of several. Ours returns every cell with its polygon, affine map, activation pattern
and neighbours. The network is read once from its export (its time is printed, and is not in the
ratio); then each call cuts anew.

Bars: at most 6 x the pass at 128x3 and 3 x at 256x3, one thread; two threads at least 1.6 x faster;
time per region from 10^4 to 10^6 regions grows by at most 2 x, 10^6 regions in 8 GB; a slice of a
784-128-10 network under 2 s; a window of a convolutional network with 20,000 regions under 60 s.
The last two are trained here on MNIST and CIFAR-10 where INSCAPE_DATA_DIR has them; where it has
not, other images stand in, and the line says so.
"""

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from inscape.data import load
from inscape.models import image_net
from inscape.regions import plane_regions, through
from inscape.training import fit

KNOWN = {(32,): 152, (32, 32): 490, (64, 64, 64): 4066, (128, 128, 128): 23350}
BARS = {(128, 128, 128): 6.0, (256, 256, 256): 3.0}
WINDOWS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.7, 1.0)
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
    print(f"{'hidden':>16} {'cells':>8} {'ours':>10} {'one pass':>10} {'ratio':>7}  bar")
    for hidden in [*KNOWN, (256, 256, 256)]:
        model = initialised(*hidden)
        start = time.perf_counter()
        found = plane_regions(model, SQUARE, domain=SQUARE, threads=1)
        first = time.perf_counter() - start
        assert found.cells == KNOWN.get(hidden, found.cells), (found.cells, hidden)
        ours = best(lambda m=model: plane_regions(m, SQUARE, domain=SQUARE, threads=1))  # type: ignore[misc]
        limit = one_pass(model, found.vertices)
        bar = BARS.get(hidden)
        met = "" if bar is None else f"  {bar:g} {'met' if ours <= bar * limit else 'MISSED'}"
        name = "x".join(map(str, hidden))
        print(
            f"{name:>16} {found.cells:>8} {ours * 1e3:>8.1f}ms {limit * 1e3:>8.1f}ms "
            f"{ours / limit:>7.2f}{met}   (first call {first:.2f} s)"
        )


def threads() -> None:
    model = initialised(256, 256, 256)
    plane_regions(model, SQUARE, domain=SQUARE)
    times = {1: float("inf"), 2: float("inf")}
    for _ in range(15):  # in turn, so that a slow spell of the machine meets both
        for count in times:
            torch.set_num_threads(count)
            work = partial(plane_regions, model, SQUARE, domain=SQUARE, threads=count)
            times[count] = min(times[count], best(work, rounds=1))
    gain = times[1] / times[2]
    met = "met" if gain >= 1.6 else "MISSED"
    print(f"two threads: {gain:.2f} x faster at 256x3, bar 1.6 {met}")
    torch.set_num_threads(1)


def folded() -> nn.Sequential:
    """Return a 256x3 network that has 10^6 regions, written by hand and from one seed.

    PyTorch's own weights give a 256x3 network some 3 * 10^5 regions at most, whatever the window.
    Here the first layer bends at 16 lines in each of 16 directions; the second adds its units with
    alternating signs, times a random number for each direction: so every unit of it is a sum of
    zigzag waves, and zero along many lines. The third layer and the outputs are left as they were.
    """
    model, draw = initialised(256, 256, 256), torch.Generator().manual_seed(0)
    direction, place = torch.arange(256) // 16, torch.arange(256) % 16
    angle = torch.pi * (direction.double() + 0.5) / 16
    shift = torch.rand(16, generator=draw, dtype=torch.float64)[direction]
    sign = torch.where(place % 2 == 0, 1.0, -1.0).double()
    zigzag = sign * torch.where(place == 0, 1.0, 2.0)
    share = torch.randn(256, 16, generator=draw, dtype=torch.float64)[:, direction]
    first, second = model[0], model[2]
    assert isinstance(first, nn.Linear)
    assert isinstance(second, nn.Linear)
    with torch.no_grad():
        first.weight.copy_(torch.stack([angle.cos(), angle.sin()], 1))
        first.bias.copy_(1 - (place + shift) / 8)
        second.weight.copy_(share * zigzag)
        second.bias.normal_(std=0.1, generator=draw)
    return model


def growth() -> None:
    """Cut a growing window of one 256x3 network."""
    torch.set_num_threads(1)
    model, each = folded(), []
    plane_regions(model, SQUARE, domain=0.01 * SQUARE)
    for half in WINDOWS:
        start = time.perf_counter()
        found = plane_regions(model, SQUARE, domain=half * SQUARE, regions=5_000_000, threads=1)
        took = time.perf_counter() - start
        assert found.complete
        each.append((found.cells, took / found.cells))
        print(f"window {half:>5}: {found.cells:>8} cells, {took / found.cells * 1e6:6.2f} us each")
        if found.cells >= 1_000_000:
            break
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    (few, early), (many, late) = next(one for one in each if one[0] >= 10_000), each[-1]
    is_met = late <= 2 * early and few <= 30_000 and many >= 1_000_000
    print(f"from {few} to {many} cells: {late / early:.2f} x per cell, bar 2 "
          f"{'met' if is_met else 'MISSED'}; peak {peak:.2f} GB, bar 8 "
          f"{'met' if peak <= 8 and many >= 1_000_000 else 'MISSED'}")  # fmt: skip


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
          f"(first call {first:.2f} s), bar 2 {'met' if took <= 2 else 'MISSED'}")  # fmt: skip


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
    is_met = took <= 60 and found.cells >= 20_000
    print(f"window of +-{half:g} amid three images of a conv net with MaxPool ({name}): "
          f"{found.cells} cells in {took:.1f} s, bar 20,000 in 60 s "
          f"{'met' if is_met else 'MISSED'}")  # fmt: skip


PARTS = {"arrangement": arrangement, "threads": threads, "growth": growth, "slices": slices,
         "convolutions": convolutions}  # fmt: skip

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    for name in parser.parse_args().only:
        PARTS[name]()
