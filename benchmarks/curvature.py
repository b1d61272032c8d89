"""How fast curvature is: Hessian-vector products, and both ends of the spectrum.

    python benchmarks/curvature.py            # all bars, about ten minutes on a quiet machine
    python benchmarks/curvature.py --quick    # without the 60,000 images

The peer of the products is the bare double backward pass, written out for each batch or with its
first-order graph kept; one thread, minimum of interleaved repeats. That of the ends is the number
of products that scipy's ``eigsh`` needs for 'SA' and 'LA' at tolerance 1e-3 on the same operator.
MNIST where it is there, else Gaussian images of the same size.
"""

import argparse
import time
from collections.abc import Callable

import bars
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor, nn
from torch.nn import functional

from inscape.data import mnist
from inscape.errors import DataError
from inscape.functional.hessian_products import joined
from inscape.landscape import hessian_extremes
from inscape.landscape._loss_function import loss_function_of
from inscape.models import mlp
from inscape.training import fit

REPEATS = 20


def images(n: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return images with labels."""
    try:
        data = mnist(n=n, dtype=dtype)
        return data.x, data.y
    except (DataError, FileNotFoundError, OSError):
        draw = torch.Generator().manual_seed(0)
        return torch.randn(n, 784, generator=draw).to(dtype), torch.arange(n) % 10


def bare_product(net: nn.Module, x: Tensor, y: Tensor, v: list[Tensor], rows: int) -> Tensor:
    """Return the product with a vector by double backward passes, batch by batch."""
    parameters = list(net.parameters())
    totals = [torch.zeros_like(p) for p in parameters]
    for a, b in zip(torch.split(x, rows), torch.split(y, rows), strict=True):
        loss = functional.cross_entropy(net(a), b) * (len(a) / len(x))
        first = torch.autograd.grad(loss, parameters, create_graph=True)
        for total, part in zip(totals, torch.autograd.grad(first, parameters, v), strict=True):
            total += part
    return joined(totals)


def fastest(**works: Callable[[], object]) -> dict[str, float]:
    """Return the least processor time of each work, all run in turn."""
    least = dict.fromkeys(works, float("inf"))
    for turn in range(REPEATS):
        for name in works if turn % 2 == 0 else reversed(works):
            begin = time.process_time()
            works[name]()
            least[name] = min(least[name], time.process_time() - begin)
    return least


def products() -> None:
    """Compare products over many batches, and over one whose graph is kept."""
    x, y = images(4000, torch.float32)
    net = mlp(784, 256, 256, 10).eval()
    compare_products("mini-batches", net, x, y, 3 * 2**24)
    compare_products("graph kept", net, x[:1000], y[:1000], 2**31)


def compare_products(name: str, net: nn.Module, x: Tensor, y: Tensor, memory: int) -> None:
    """Report the time of a product over that of the bare one."""
    problem = loss_function_of(net, x, y, memory=memory)
    assert problem is not None
    ours, rows = problem.products(), problem.spans()[0].stop
    vector = torch.randn(ours.size, generator=torch.Generator().manual_seed(1))
    v, parameters = ours.split(vector), list(net.parameters())
    first: tuple[Tensor, ...] = ()
    if ours.kept:
        loss = functional.cross_entropy(net(x), y)
        first = torch.autograd.grad(loss, parameters, create_graph=True)

    def peer() -> Tensor:
        if first:
            return joined(torch.autograd.grad(first, parameters, v, retain_graph=True))
        return bare_product(net, x, y, v, rows)

    torch.testing.assert_close(ours(vector), peer(), rtol=1e-3, atol=1e-5)
    taken = fastest(ours=lambda: ours(vector), peer=peer)
    ratio = taken["ours"] / taken["peer"]
    bars.bar(f"time of a product, {name}, {rows} rows, over bare", ratio, at_most=1.05)


def counted_peer(net: nn.Module, x: Tensor, y: Tensor) -> tuple[int, float, float]:
    """Return the products of scipy's eigsh for both ends, and the ends."""
    problem = loss_function_of(net, x, y)
    assert problem is not None
    product = problem.products()
    operator = LinearOperator(
        (product.size, product.size),
        matvec=lambda v: product(torch.from_numpy(v.reshape(-1).copy())).numpy(),
        dtype="float64",
    )
    ends = [
        float(eigsh(operator, k=1, which=end, tol=1e-3, return_eigenvectors=False)[0])
        for end in ("SA", "LA")
    ]
    return product.products, ends[0], ends[1]


def both_ends() -> None:
    """Compare the products that both ends need, at initialisation and after training."""
    x, y = images(2000, torch.float64)
    for name, seeds in (("initialisation", range(5)), ("trained", range(1))):
        ratios, errors = [], []
        for seed in seeds:
            net = mlp(784, 256, 256, 10, seed=seed, dtype=torch.float64).eval()
            if name == "trained":
                fit(net, x, y, loss="cross_entropy", lr=0.1, momentum=0.9, batch=100, epochs=5)
            result = hessian_extremes(net, x, y, tolerance=1e-4, seed=seed)
            theirs, low, high = counted_peer(net, x, y)
            width = result.largest - result.smallest
            ratios.append(result.products / theirs)
            errors.append(max(result.smallest - low, high - result.largest) / width)
            print(
                f"{name} {seed}: {result.products} products, scipy {theirs}; {result}", flush=True
            )
        bars.bar(f"products for both ends, {name}, over eigsh", max(ratios), at_most=1.0)
        bars.bar(f"ends inside of eigsh's, {name}, of the width", max(errors), at_most=1e-4)


def large() -> None:
    """Compare both ends on 60,000 images with bare products over the same data."""
    x, y = images(60_000, torch.float32)
    net = mlp(784, 512, 512, 10).eval()
    v = [torch.randn(p.shape) for p in net.parameters()]
    begin = time.process_time()
    for _ in range(2):
        bare_product(net, x, y, v, 1600)
    bare = (time.process_time() - begin) / 2
    begin = time.process_time()
    result = hessian_extremes(net, x, y)
    taken = time.process_time() - begin
    print(result, result.residuals.tolist(), f"bare product {bare:.2f} s", flush=True)
    bars.bar(
        "both ends of 784-512-512-10 on 60,000 images, in bare products", taken / bare, at_most=55
    )


def main() -> None:
    """Run all bars."""
    parser = argparse.ArgumentParser(description="How fast curvature is.")
    parser.add_argument("--quick", action="store_true", help="without the 60,000 images")
    quick = parser.parse_args().quick
    with bars.threads(1):
        products()
        both_ends()
        if not quick:
            large()


if __name__ == "__main__":
    main()
