"""How fast networks are compared and compressed, beside plain PyTorch and scikit-learn.

    python benchmarks/similarity.py                    # smaller examples of the maps, a minute
    python benchmarks/similarity.py --examples 10000   # the maps as the bar has them, ten minutes
    python benchmarks/similarity.py --only alignment   # functions whose name has that in it

Processor time on one thread, both sides in turn in one process, float64. The products are what
takes the time of the maps, so that the ratio hardly depends on the number of examples.
"""

import argparse
import gc
import resource
import statistics
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from bars import bar, threads
from torch import Tensor

from inscape.compression import k_means
from inscape.functional.jacobians import jacobians
from inscape.models import image_net
from inscape.sensitivity import active_subspace
from inscape.similarity import linear_alignment, map_alignment


def taken(rounds: int, **works: Callable[[], object]) -> dict[str, float]:
    """Return the median processor time of each work, all run in turn in every round."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds):
        for name in works if turn % 2 == 0 else reversed(works):
            begin = time.process_time()
            works[name]()
            seconds[name].append(time.process_time() - begin)
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak_of(work: Callable[[], object]) -> float:
    """Return by how many megabytes the memory of this process grows while it works."""
    gc.collect()
    before, most, done = resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            most[0] = max(most[0], resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return (most[0] - before) / 1e6


def resident() -> int:
    """Return the bytes that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def map_alignment_bar(examples: int) -> None:
    """Time ``map_alignment`` of two "simple" networks against Jacobians and thirty products."""
    x = torch.randn(examples, 3, 32, 32, dtype=torch.float64)
    nets = [image_net("simple", seed=seed).double() for seed in (0, 1)]

    def plain() -> None:
        for block in torch.split(x, 1000):
            sides = [
                torch.cat([jacobians(net, batch) for batch in torch.split(block, 100)])
                for net in nets
            ]
            for j in range(10):
                left, right = (side[:, j] for side in sides)
                for a, b in ((left, left), (right, right), (left, right)):
                    a.T @ b

    ours = peak_of(lambda: map_alignment(nets[0], x, other=nets[1]))
    times = taken(1, ours=lambda: map_alignment(nets[0], x, other=nets[1]), plain=plain)
    name = f"map_alignment, two simple networks, {examples} examples"
    bar(f"{name}, our time by that of plain torch", times["ours"] / times["plain"], at_most=1.2)
    bar(f"{name}, memory", ours, at_most=2000, unit="MB")


def linear_alignment_bar(_: int) -> None:
    """Time debiased linear CKA of two feature sets against X^T Y, and against n x n kernels."""
    x, y = (torch.randn(10_000, 2048, dtype=torch.float64) for _ in range(2))

    def plain() -> Tensor:
        a, b = x - x.mean(0), y - y.mean(0)
        return (a.T @ b).norm() ** 2 / ((a.T @ a).norm() * (b.T @ b).norm())

    def by_kernels() -> Tensor:
        kernels = [(side - side.mean(0)) @ (side - side.mean(0)).T for side in (x, y)]
        k, other = (kernel - torch.diag(kernel.diagonal()) for kernel in kernels)
        return (k * other).sum() / (k.norm() * other.norm())

    memory = {"ours": peak_of(lambda: linear_alignment(x, y)), "kernels": peak_of(by_kernels)}
    times = taken(3, ours=lambda: linear_alignment(x, y), plain=plain)
    name = "linear_alignment, debiased, 10000 x 2048"
    bar(f"{name}, time of plain torch by ours", times["plain"] / times["ours"], at_least=1.0)
    bar(f"{name}, memory of n x n kernels by ours", memory["kernels"] / memory["ours"], at_least=10)


def k_means_bar(_: int) -> None:
    """Time k-means at k = 100 on 60,000 x 785 against scikit-learn's mini-batches."""
    from sklearn.cluster import MiniBatchKMeans

    draw = torch.Generator().manual_seed(0)
    centres = 2 * torch.randn(200, 785, generator=draw)
    labels = torch.randint(200, (60_000,), generator=draw)
    x = centres[labels] + torch.randn(60_000, 785, generator=draw)
    found: dict[str, list[float]] = {"ours": [], "sklearn": []}

    def ours() -> None:
        found["ours"].append(k_means(x, 100, seed=len(found["ours"])).inertia)

    def sklearn() -> None:
        peer = MiniBatchKMeans(100, random_state=len(found["sklearn"]))
        found["sklearn"].append(float(peer.fit(x.numpy()).inertia_))

    times = taken(5, ours=ours, sklearn=sklearn)
    inertia = {side: statistics.median(values) for side, values in found.items()}
    name = "k_means, k = 100, 60000 x 785"
    bar(f"{name}, our time by MiniBatchKMeans", times["ours"] / times["sklearn"], at_most=1.1)
    bar(f"{name}, our inertia by its", inertia["ours"] / inertia["sklearn"], at_most=1.01)


def active_subspace_bar(examples: int) -> None:
    """Time ``active_subspace`` of a "simple" network against gradients and decompositions."""
    x = torch.randn(examples + examples // 2, 3, 32, 32, dtype=torch.float64)
    net, wide = image_net("simple").double(), x[0].numel()
    room = 8 * 10 * wide * max(examples, wide)

    def gradients() -> Tensor:
        return torch.cat([jacobians(net, batch) for batch in torch.split(x[:examples], 100)])

    def plain() -> None:
        found = gradients()
        for j in range(10):
            own = found[:, j]
            torch.linalg.eigh(own @ own.T if examples < wide else own.T @ own)

    def two_passes() -> None:
        basis = torch.randn(wide, 30, dtype=torch.float64)
        for _ in range(2):
            for batch in torch.split(x[:examples], 100):
                found = jacobians(net, batch)
                for j in range(10):
                    found[:, j].T @ (found[:, j] @ basis)

    def ours(method: str) -> object:
        return active_subspace(net, x, points=examples, method=method, resamples=0, room=room)

    works = {"exact": plain, "randomised": two_passes}
    for (method, peer), most in zip(works.items(), (1.2, 1.3), strict=True):
        times = taken(1, ours=partial(ours, method), plain=peer)
        name = f"active_subspace, {method}, {examples} examples"
        bar(f"{name}, our time by that of plain torch", times["ours"] / times["plain"],
            at_most=most)  # fmt: skip


#: By name: what is measured, given the number of examples of the maps.
BENCHMARKS: dict[str, Callable[[int], None]] = {
    "linear_alignment": linear_alignment_bar,
    "map_alignment": map_alignment_bar,
    "k_means": k_means_bar,
    "active_subspace": active_subspace_bar,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=1000, help="examples of the local maps")
    parser.add_argument("--only", default="", help="those whose name has this in it")
    options = parser.parse_args()
    torch.manual_seed(0)
    with threads(1):
        for name, measure in BENCHMARKS.items():
            if options.only in name:
                measure(options.examples)


if __name__ == "__main__":
    main()
