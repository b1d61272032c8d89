"""How fast many small networks are trained at once, beside one by one in a plain PyTorch loop.

    python benchmarks/ensemble.py            # one thread, then all threads, then table 4.1
    python benchmarks/ensemble.py --tiny     # tiny networks alone

256 networks x -> a . relu(w x + b) + a_0 with 256 hidden units on 10 points, full batch, lr 0.1,
float32: Volhejn's table 4.1. Both sides make the same steps from the same weights, in turn in one
process, best of several rounds. The plain loop is what a competent user writes; only a few of the
networks go through it, and its time is scaled to all of them. Where others use the machine, take
the best of several runs.

Bar: at least 100 x faster, on one thread and on all.

Then 64 networks 20-50-50-1 with tanh on 50 points, full batch, lr 0.1, momentum 0.9, float32, in
stacks (``--stacks`` runs these alone).

Then tiny networks, thousands at a time: 4-3-1 and 4-10-10-10-10-10-1 on a function of four bits (16
points), full batch, Adam, logit BCE, leaky ReLU 0.1, float32, both sides from the same weights
and with the same steps. Bars, on one thread: at least 1000 x and 200 x. What they make possible is
timed as well: 1024 points in ten dimensions, and mini-batches of 10 out of 1000 points.
"""

import argparse
import copy
import itertools
import time

import torch
from torch import Tensor, nn

from inscape.models import mlp, two_layer
from inscape.training.ensemble import fit_many
from inscape.training.ensemble.tiny import Tiny, fit_tiny, tiny_weights

NETWORKS, POINTS, HIDDEN, LR = 256, 10, 256, 0.1
SOME = 4  # networks that go through the plain loop
BAR = 100


def networks(count: int) -> list[nn.Sequential]:
    return [two_layer(1, HIDDEN, init="glorot", scale=0.01, seed=seed) for seed in range(count)]


def data(points: int = POINTS, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return a draw of the Gaussian process of the thesis: RBF with length scale 0.5."""
    x = torch.linspace(-1, 1, points, dtype=torch.float64)[:, None]
    kernel = torch.exp(-2 * (x - x.T) ** 2) + 1e-9 * torch.eye(points)
    dice = torch.Generator().manual_seed(seed)
    y = torch.linalg.cholesky(kernel) @ torch.randn(points, 1, generator=dice).double()
    return x.float(), y.float()


def plain_loop(model: nn.Module, x: Tensor, y: Tensor, steps: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


def together(models: list[nn.Sequential], x: Tensor, y: Tensor, steps: int) -> None:
    for _ in fit_many(models, x, y, lr=LR, epochs=steps, backend="lanes", progress=False):
        pass


def difference(ours: list[nn.Sequential], theirs: list[nn.Sequential]) -> float:
    """Return the largest difference of two weights."""
    pairs = zip(ours, theirs, strict=False)
    return max(
        (p - q).abs().max().item()
        for a, b in pairs
        for p, q in zip(a.parameters(), b.parameters(), strict=True)
    )


def compare(threads: int, rounds: int, steps: int) -> None:
    torch.set_num_threads(threads)
    x, y = data()
    start = networks(NETWORKS)
    together(copy.deepcopy(start), x, y, 1)  # compile, or read what was compiled
    ours = theirs = float("inf")
    largest = 0.0
    for _ in range(rounds):
        all_of_them, some = copy.deepcopy(start), copy.deepcopy(start[:SOME])
        begin = time.perf_counter()
        together(all_of_them, x, y, steps)
        middle = time.perf_counter()
        for model in some:
            plain_loop(model, x, y, steps)
        end = time.perf_counter()
        ours = min(ours, middle - begin)
        theirs = min(theirs, (end - middle) / SOME * NETWORKS)
        largest = difference(all_of_them, some)
    print(
        f"{threads} thread(s), {NETWORKS} networks, {steps} steps\n"
        f"  together {ours:8.3f} s   one by one {theirs:8.1f} s (scaled from {SOME} networks)   "
        f"{theirs / ours:6.0f} x faster (bar {BAR})\n"
        f"  largest difference of a weight from plain PyTorch {largest:.1e}"
    )


def in_stacks(threads: int, rounds: int, networks: int = 64, steps: int = 100) -> None:
    torch.set_num_threads(threads)
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(50, 20, generator=draw), torch.randn(50, 1, generator=draw)
    start = [mlp(20, 50, 50, 1, activation="tanh", seed=seed) for seed in range(networks)]
    options = {"lr": LR, "momentum": 0.9, "progress": False}
    ours = theirs = float("inf")
    for _ in range(rounds):
        models, few = copy.deepcopy(start), copy.deepcopy(start[:SOME])
        run = fit_many(models, x, y, epochs=steps, backend="stacks", **options)
        begin = time.perf_counter()
        list(run)
        middle = time.perf_counter()
        list(fit_many(few, x, y, epochs=steps, backend="loop", **options))
        ours = min(ours, middle - begin)
        theirs = min(theirs, (time.perf_counter() - middle) / SOME * networks)
    print(
        f"{threads} thread(s), {networks} networks 20-50-50-1, {steps} steps, in stacks\n"
        f"  together {ours:8.3f} s   one by one {theirs:8.1f} s (scaled from {SOME} networks)   "
        f"{theirs / ours:6.1f} x faster\n"
        f"  largest difference of a weight from the loop {difference(models, few):.1e}"
    )


def table(threads: int) -> None:
    """Train what table 4.1 asks for: 20 data sets, sizes 2 to 10, 10 networks each."""
    torch.set_num_threads(threads)
    pairs = [data(n, seed) for seed in range(20) for n in range(2, 11) for _ in range(10)]
    models = networks(len(pairs))
    begin = time.perf_counter()
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    run = fit_many(models, xs, ys, lr=LR, epochs=50_000, stop_loss=1e-3, backend="lanes")
    steps = [member.steps for member in run]
    taken = time.perf_counter() - begin
    print(
        f"table 4.1 at paper scale, {threads} thread(s)\n"
        f"  {len(models)} networks, {sum(steps) / 1e6:.0f} million steps in {taken:.0f} s "
        f"(bar 300 s on two cores)"
    )


CORNERS = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=4)))
PARITY = (CORNERS.prod(1) > 0).float()
#: Sizes, networks, steps of ours, networks and steps of the plain loop, bar.
TINY = [((4, 3, 1), 1600, 1000, 2, 300, 1000), ((4, *[10] * 5, 1), 160, 300, 2, 300, 200)]


def module(sizes: tuple[int, ...], weights: Tensor) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.LeakyReLU(0.1)]
    model = nn.Sequential(*layers[:-1])
    nn.utils.vector_to_parameters(weights.clone(), model.parameters())
    return model


def plain_adam(model: nn.Module, steps: int) -> None:
    torch.set_num_threads(1)  # more would only slow down work as small as this
    optimizer = torch.optim.Adam(model.parameters(), lr=0.025)
    target = PARITY[:, None]
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(CORNERS), target)
        loss.backward()
        optimizer.step()


def tiny(sizes: tuple[int, ...], networks: int, steps: int, threads: int) -> Tiny:
    return fit_tiny(
        sizes, CORNERS, PARITY, seeds=range(networks), epochs=steps, stop=None, threads=threads,
        progress=False,
    )  # fmt: skip


def compare_tiny(threads: int, rounds: int) -> None:
    for sizes, networks, steps, some, plain_steps, bar in TINY:
        tiny(sizes, 16, 1, threads)  # compile, or read what was compiled
        ours = theirs = float("inf")
        for _ in range(rounds):
            models = [module(sizes, weights) for weights in tiny_weights(sizes, range(some))]
            begin = time.perf_counter()
            tiny(sizes, networks, steps, threads)
            middle = time.perf_counter()
            for model in models:
                plain_adam(model, plain_steps)
            end = time.perf_counter()
            ours = min(ours, (middle - begin) / networks / steps)
            theirs = min(theirs, (end - middle) / some / plain_steps)
        check = tiny(sizes, some, 20, threads).weights
        short = [module(sizes, weights) for weights in tiny_weights(sizes, range(some))]
        for model in short:
            plain_adam(model, 20)
        plain = [nn.utils.parameters_to_vector(model.parameters()) for model in short]
        largest = (check - torch.stack(plain)).abs().max().item()
        print(
            f"{threads} thread(s), {'-'.join(map(str, sizes))}, per network and step\n"
            f"  together {1e6 * ours:8.4f} us   one by one {1e6 * theirs:8.1f} us   "
            f"{theirs / ours:6.0f} x faster (bar {bar})\n"
            f"  largest difference of a weight from plain PyTorch after 20 steps {largest:.1e}"
        )


def larger_tiny(threads: int, rounds: int) -> None:
    """Time what is tiny in weights but not in points."""
    dice = torch.Generator().manual_seed(0)
    cases = [((10, *[10] * 5, 1), 1024, None, 32, 10), ((2, 3, 1), 1000, 10, 64, 20)]
    for sizes, points, batch, networks, epochs in cases:
        x = torch.randn(points, sizes[0], generator=dice)
        y = (x[:, 0] > 0).float()
        taken = float("inf")
        for _ in range(rounds):
            begin = time.perf_counter()
            fit_tiny(
                sizes, x, y, seeds=range(networks), epochs=epochs, batch=batch, stop=None,
                threads=threads, progress=False,
            )  # fmt: skip
            taken = min(taken, time.perf_counter() - begin)
        steps = networks * epochs * -(-points // (batch or points))
        print(
            f"{threads} thread(s), {'-'.join(map(str, sizes))}, {points} points, batch "
            f"{batch or points}: {1e6 * taken / steps:.3f} us per network and step"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--no-table", action="store_true", help="leave out table 4.1 as a whole")
    parser.add_argument("--stacks", action="store_true", help="only the networks in stacks")
    parser.add_argument("--tiny", action="store_true", help="only the tiny networks")
    options = parser.parse_args()
    all_threads = torch.get_num_threads()
    for count in sorted({1, all_threads}):
        if not options.tiny:
            in_stacks(count, options.rounds)
        if options.stacks:
            continue
        if not options.tiny:
            compare(count, options.rounds, options.steps)
        compare_tiny(count, options.rounds)
        larger_tiny(count, options.rounds)
    if not (options.no_table or options.tiny or options.stacks):
        table(all_threads)
