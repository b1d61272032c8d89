"""How fast exact path kernels are, and how well they close.

    python benchmarks/path_kernel.py                # both
    python benchmarks/path_kernel.py --no-digits    # the small network alone

CPU time on one thread, both sides in one process.

Bars: 2-10-10-1 with GELU in float64, 1024 points, 64 queries, 2,000 steps of gradient descent on
all points: residual at most 1e-12, and at most 8 x the time of the same training alone, both from a
recorded training (which is replayed) and online.

A CNN of 11,274 parameters with ReLU and max-pools on digits, gradient descent on batches of 64, one
query: at most 10 x the training step (forward, backward and update of the same batch), relative
residual of the integral at most 1e-12.

784-256-10 with GELU and with ReLU, 2000 digits (MNIST if it is at hand), Adam on mini-batches of
50, 2 epochs, 20 queries, training in float32: minutes, relative residual at most 1e-6. What the
rounding of that training has added is in nobody's gradient and counts for the bar, since a wrong
split of the updates would be in it, too.
"""

import argparse
import copy
import time
from collections.abc import Callable

import bars
import torch
from torch import Tensor, nn

from inscape.data import ball_versus_sphere, mnist
from inscape.kernels import PathKernel, PathWatch, path_kernel
from inscape.training import fit


def timed(work: Callable[[], PathKernel | None]) -> tuple[float, PathKernel | None]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def split(
    model: nn.Module, x: Tensor, y: Tensor, queries: Tensor, **settings: object
) -> PathKernel:
    """Train with checkpoints, and go back."""
    run = fit(model, x, y, progress=False, **settings)
    found = path_kernel(model, x, y, trajectory=run.trajectory, queries=queries)
    assert isinstance(found, PathKernel)
    return found


def watched(
    model: nn.Module, x: Tensor, y: Tensor, queries: Tensor, **settings: object
) -> PathKernel:
    watch = PathWatch(queries)
    fit(model, x, y, progress=False, watch=watch, **settings)
    return watch.result()


def small(steps: int) -> None:
    data = ball_versus_sphere(n=1024, n_test=64, dtype=torch.float64)
    x, y, queries = data.x, data.y.reshape(-1, 1).double(), data.x_test
    layers = [nn.Linear(2, 10), nn.GELU(), nn.Linear(10, 10), nn.GELU(), nn.Linear(10, 1)]
    model = nn.Sequential(*layers).double()

    def alone(epochs: int = steps) -> None:
        fit(copy.deepcopy(model), x, y, lr=0.01, epochs=epochs, progress=False)

    alone(10)  # what happens once in a process is over
    training, _ = timed(alone)
    ways = {
        "recorded and gone back": lambda: split(
            copy.deepcopy(model), x, y, queries, lr=0.01, epochs=steps, record=100
        ),
        "online": lambda: watched(copy.deepcopy(model), x, y, queries, lr=0.01, epochs=steps),
    }
    print(f"2-10-10-1, 1024 points, 64 queries, {steps} steps: training {training:.1f} s")
    for name, way in ways.items():
        taken, found = timed(way)
        assert found is not None
        residual = float((found.rounding + found.residual).abs().max())
        print(f"  with its path kernel, {name}: {taken:.1f} s, {found.nodes} nodes")
        bars.bar(f"path_kernel over training, 2-10-10-1, {name}", taken / training, at_most=8)
        bars.bar(f"path_kernel, 2-10-10-1, {name}, residual", residual, at_most=1e-12, unit="")


def digits() -> tuple[str, Tensor, Tensor]:
    try:
        data = mnist(n=2000)
    except (ValueError, OSError):
        return "noise (no MNIST at hand)", torch.rand(2000, 784), torch.arange(2000) % 10
    return "MNIST", data.x.flatten(1), data.y.long()


def cnn(steps: int, lr: float) -> None:
    name, x, y = digits()
    x, y = x[: 64 * steps].float().reshape(-1, 1, 28, 28), y[: 64 * steps]
    parts = [nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    parts += [nn.Conv2d(8, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*parts, nn.Flatten(), nn.Linear(784, 10))
    settings = {"loss": "cross_entropy", "lr": lr, "batch": 64, "epochs": 1}

    def alone() -> None:
        fit(copy.deepcopy(model), x, y, progress=False, **settings)

    alone()  # what happens once in a process is over
    training, _ = timed(alone)
    body = copy.deepcopy(model)
    run = fit(body, x, y, progress=False, record=1, **settings)
    query = x[-1:]

    def explained() -> PathKernel:
        found = path_kernel(body.eval(), x, y, trajectory=run.trajectory, queries=query)
        assert isinstance(found, PathKernel)
        return found

    taken, found = timed(explained)
    assert found is not None
    print(
        f"CNN on {name}, lr {lr}, {steps} steps of 64, one query: a step of training takes "
        f"{1e3 * training / steps:.0f} ms, its path kernel {1e3 * taken / steps:.0f} ms"
    )
    bars.bar(f"path_kernel over training, CNN, lr {lr}", taken / training, at_most=10)
    missed = found.relative_residual
    bars.bar(f"path_kernel, CNN, lr {lr}, residual", missed, at_most=1e-12, unit="")


def of_digits(act: type[nn.Module]) -> None:
    name, x, y = digits()
    model = nn.Sequential(nn.Linear(784, 256), act(), nn.Linear(256, 10))
    settings = {"loss": "cross_entropy", "optimizer": "adam", "lr": 0.001, "batch": 50, "epochs": 2}
    training, _ = timed(
        lambda: fit(copy.deepcopy(model), x, y, progress=False, **settings) and None
    )
    taken, found = timed(lambda: split(model, x, y, x[:20], record=20, **settings))
    assert found is not None
    print(
        f"784-256-10 with {act.__name__}, 2000 of {name}, Adam, 80 steps, 20 queries: training "
        f"{training:.1f} s, with its path kernel {taken:.0f} s, of its residual the integral "
        f"misses {found.relative_residual:.1e}, {found.bytes / 2**20:.0f} MB carried in "
        f"{found.passes} pass{'' if found.passes == 1 else 'es'}"
    )
    what = f"path_kernel, 784-256-10 with {act.__name__}, residual"
    bars.bar(what, found.unattributed, at_most=1e-6, unit="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000, help="of the small network")
    parser.add_argument("--no-digits", action="store_true", help="the small network alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    small(options.steps)
    for lr in (0.01, 0.05):  # a larger step crosses more kinks
        cnn(30, lr)
    if not options.no_digits:
        of_digits(nn.GELU)
        of_digits(nn.ReLU)
