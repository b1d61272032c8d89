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
"""

import argparse
import resource
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from inscape.models import image_net
from inscape.regions import plane_regions, through

KNOWN = {(32,): 152, (32, 32): 490, (64, 64, 64): 4066, (128, 128, 128): 23350}
BARS = {(128, 128, 128): 6.0, (256, 256, 256): 3.0}
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
    times = []
    for count in (1, 2):
        torch.set_num_threads(count)
        times.append(best(lambda n=count: plane_regions(model, SQUARE, domain=SQUARE, threads=n)))  # type: ignore[misc]
    gain = times[0] / times[1]
    met = "met" if gain >= 1.6 else "MISSED"
    print(f"two threads: {gain:.2f} x faster at 256x3, bar 1.6 {met}")
    torch.set_num_threads(1)


def growth() -> None:
    """Cut a growing window of one 256x3 network whose units keep bending far out."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = initialised(256, 256, 256)
    with torch.no_grad():
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                layer.bias.normal_()
    plane_regions(model, SQUARE, domain=0.01 * SQUARE)
    each = []
    for half in (0.05, 0.2, 1.0, 4.0, 12.0):
        start = time.perf_counter()
        found = plane_regions(model, SQUARE, domain=half * SQUARE, regions=5_000_000, threads=1)
        took = time.perf_counter() - start
        each.append((found.cells, took / found.cells))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"window {half:>5}: {found.cells:>8} cells, {took / found.cells * 1e6:6.2f} us each, "
              f"peak {peak:.2f} GB")  # fmt: skip
        if found.cells >= 1_000_000:
            break
    low = min((one for one in each if one[0] >= 10_000), default=each[0])
    ratio = each[-1][1] / low[1]
    print(f"from {low[0]} to {each[-1][0]} cells: {ratio:.2f} x per cell, bar 2 "
          f"{'met' if ratio <= 2 else 'MISSED'}")  # fmt: skip


def digits() -> tuple[nn.Module, Tensor]:
    """Return a 784-128-10 network trained on MNIST, or on the embedded digits made larger."""
    from inscape.data import load
    from inscape.training import fit

    try:
        data = load("mnist")
        x, y = data.x.flatten(1)[:10_000], data.y[:10_000]
    except ValueError:
        data = load("digits")
        x, y = data.x.reshape(-1, 1, 8, 8), data.y
        x = nn.functional.interpolate(x.float(), size=28, mode="bilinear").flatten(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    model = fit(model, x.float(), y, loss="cross_entropy", epochs=3, lr=0.1, batch=64).model.eval()
    return model, x.float()


def slices() -> None:
    torch.set_num_threads(2)
    model, x = digits()
    start = time.perf_counter()
    found = plane_regions(model, x[:3])
    first = time.perf_counter() - start
    took = best(lambda: plane_regions(model, x[:3]), 3)
    print(f"slice of 784-128-10 between three digits: {found.cells} cells in {took:.2f} s "
          f"(first call {first:.2f} s), bar 2 {'met' if took <= 2 else 'MISSED'}")  # fmt: skip
    torch.manual_seed(0)
    model, images = image_net("simple").eval(), torch.rand(3, 3, 32, 32)
    window = 0.2 * SQUARE
    start = time.perf_counter()
    found = plane_regions(model, images, plane=through(images), domain=window, regions=100_000)
    took = time.perf_counter() - start
    met = "met" if took * 20_000 / found.cells <= 60 else "MISSED"
    print(
        f"CIFAR-10 conv net with MaxPool: {found.cells} cells in {took:.1f} s, "
        f"bar 60 s for 20,000 {met}"
    )


PARTS = {"arrangement": arrangement, "threads": threads, "growth": growth, "slices": slices}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    for name in parser.parse_args().only:
        PARTS[name]()
