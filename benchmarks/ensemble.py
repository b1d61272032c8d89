"""How fast many small networks are trained at once, beside stacked parameters under torch.func.

    python benchmarks/ensemble.py            # on one thread
    python benchmarks/ensemble.py --threads 2
    python benchmarks/ensemble.py --table    # table 4.1 as a whole, minutes

The peer is what the PyTorch documentation teaches: parameters stacked by ``stack_module_state``,
``vmap(grad(loss))`` over ``functional_call``, and one optimiser step on the stacks. Both sides make
the same steps from the same weights, in turn in one process, medians of wall time for a step of all
networks, with the same threads. For scale, the one-by-one loop, scaled from a few networks.

Bars: at least 20 times as fast as the peer for the small networks that the compiled back ends are
made for: 256 networks 1-256-1 on 10 points by SGD (lanes: Volhejn's table 4.1), thousands of 4-3-1
and 160 of 4-10-10-10-10-10-1 on a function of four bits by Adam (tiny). Larger networks have no
bar: lanes gain little there, and stacks of torch are what the peer does, at the price of results
that do not depend on the other members. On some processors MKL sums in an order that depends on the
slot; stacks avoid it by alignment, and keep 80% of the speed (as a ratio to the loop) that they
have unaligned with MKL_CBWR=AVX2, which makes MKL do it.
"""

import argparse
import copy
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
from bars import bar, threads, times
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from inscape.ensembles import fit_many, graphs
from inscape.ensembles.fit_tiny import fit_tiny, tiny_weights
from inscape.models import mlp, two_layer

FEW = 2  # networks that go through the one-by-one loop
MSE = nn.functional.mse_loss
BCE = nn.functional.binary_cross_entropy_with_logits
SGD = partial(torch.optim.SGD, lr=0.1)
MOMENTUM = partial(torch.optim.SGD, lr=0.1, momentum=0.9)
ADAM = partial(torch.optim.Adam, lr=0.025, fused=True)
CORNERS = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=4)))
PARITY = (CORNERS.prod(1) > 0).float()

Loss = Callable[[Tensor, Tensor], Tensor]
Factory = Callable[..., torch.optim.Optimizer]


def one_by_one(
    models: Sequence[nn.Module], x: Tensor, y: Tensor, steps: int, loss: Loss, factory: Factory
) -> None:
    for model in models:
        optimizer = factory(model.parameters())
        for _ in range(steps):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()


def stacked(
    models: Sequence[nn.Module], x: Tensor, y: Tensor, steps: int, loss: Loss, factory: Factory
) -> dict[str, Tensor]:
    """Train all models at once, as a competent user writes it, and return the stacks."""
    stacks, _ = stack_module_state(list(models))
    skeleton = copy.deepcopy(models[0]).to("meta")
    gradients = vmap(grad(lambda weights: loss(functional_call(skeleton, weights, (x,)), y)))
    optimizer = factory(stacks.values())
    for _ in range(steps):
        slopes = gradients({name: stack.detach() for name, stack in stacks.items()})
        for name, stack in stacks.items():
            stack.grad = slopes[name]
        optimizer.step()
    return stacks


def compare(
    name: str,
    models: Sequence[nn.Module],
    x: Tensor,
    y: Tensor,
    ours: Callable[[int], Sequence[Tensor]],
    *,
    loss: Loss,
    factory: Factory,
    steps: tuple[int, int],
    rounds: int,
    at_least: float | None = None,
) -> None:
    """Time ``ours(steps)``, which returns a tensor of each network, beside both peers."""
    few = copy.deepcopy(list(models[:FEW]))
    many, less = steps
    taken = times(
        rounds,
        ours=lambda: ours(many),
        peer=lambda: stacked(models, x, y, less, loss, factory),
        loop=lambda: one_by_one(few, x, y, less, loss, factory),
    )
    step = {"ours": taken["ours"] / many, "peer": taken["peer"] / less}
    loop = taken["loop"] / less / FEW * len(models)
    weights = [
        stack.detach().flatten(1) for stack in stacked(models, x, y, 20, loss, factory).values()
    ]
    largest = (torch.stack(list(ours(20))) - torch.cat(weights, 1)).abs().max().item()
    print(
        f"{name}: a step of all {1e6 * step['ours']:.0f} us, stacked {1e6 * step['peer']:.0f} us, "
        f"one by one {1e6 * loop:.0f} us; weights differ by {largest:.0e} at most after 20 steps"
    )
    bar(f"{name}, against stacked vmap(grad)", step["peer"] / step["ours"], at_least=at_least)
    bar(f"{name}, against one by one", loop / step["ours"])


def vectors(models: Sequence[nn.Module]) -> list[Tensor]:
    return [nn.utils.parameters_to_vector(model.parameters()).detach() for model in models]


def fitted(
    models: Sequence[nn.Module], x: Tensor, y: Tensor, steps: int, **options: object
) -> list[Tensor]:
    """Train copies of the models by ``fit_many`` and return their parameters."""
    copies = copy.deepcopy(list(models))
    for _ in fit_many(copies, x, y, lr=0.1, epochs=steps, progress=False, **options):  # type: ignore[arg-type]
        pass
    return vectors(copies)


def gaussian_draw(points: int = 10, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return a draw of the Gaussian process of the thesis: RBF with length scale 0.5."""
    x = torch.linspace(-1, 1, points, dtype=torch.float64)[:, None]
    kernel = torch.exp(-2 * (x - x.T) ** 2) + 1e-9 * torch.eye(points)
    draw = torch.Generator().manual_seed(seed)
    y = torch.linalg.cholesky(kernel) @ torch.randn(points, 1, generator=draw).double()
    return x.float(), y.float()


def shallow(count: int) -> list[nn.Sequential]:
    return [two_layer(1, 256, init="glorot", scale=0.01, seed=seed) for seed in range(count)]


def lanes(rounds: int) -> None:
    models, (x, y) = shallow(256), gaussian_draw()
    ours = partial(fitted, models, x, y, backend="lanes")
    chosen = {"loss": MSE, "factory": SGD, "steps": (2000, 200)}
    compare(
        "256 networks 1-256-1 in lanes", models, x, y, ours, rounds=rounds, at_least=20, **chosen
    )  # type: ignore[arg-type]


def stack_case() -> tuple[list[nn.Sequential], Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(50, 20, generator=draw), torch.randn(50, 1, generator=draw)
    return [mlp(20, 50, 50, 1, activation="tanh", seed=seed) for seed in range(64)], x, y


def larger(rounds: int) -> None:
    models, x, y = stack_case()
    for backend, steps in (("lanes", 1000), ("stacks", 400)):
        ours = partial(fitted, models, x, y, backend=backend, momentum=0.9)
        name = f"64 networks 20-50-50-1 in {backend}"
        chosen = {"loss": MSE, "factory": MOMENTUM, "steps": (steps, 100)}
        compare(name, models, x, y, ours, rounds=rounds, **chosen)  # type: ignore[arg-type]


def module(sizes: tuple[int, ...], weights: Tensor) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.LeakyReLU(0.1)]
    model = nn.Sequential(*layers[:-1])
    nn.utils.vector_to_parameters(weights.clone(), model.parameters())
    return model


def tiny(rounds: int) -> None:
    for sizes, count, steps in (((4, 3, 1), 1600, 1000), ((4, *[10] * 5, 1), 160, 300)):
        models = [module(sizes, weights) for weights in tiny_weights(sizes, range(count))]

        def ours(epochs: int, sizes: tuple[int, ...] = sizes, count: int = count) -> Tensor:
            return fit_tiny(
                sizes, CORNERS, PARITY, seeds=range(count), epochs=epochs, stop=None,
                threads=torch.get_num_threads(), progress=False,
            ).weights  # fmt: skip

        name = f"{count} networks {'-'.join(map(str, sizes))} as tiny ones"
        chosen = {"loss": BCE, "factory": ADAM, "steps": (steps, 100)}
        compare(
            name, models, CORNERS, PARITY[:, None], ours, rounds=rounds, at_least=20, **chosen,  # type: ignore[arg-type]
        )  # fmt: skip


def stacks_over_loop(aligned: bool) -> float:
    """Return how many times as fast stacks are as the one-by-one loop, in this process."""
    if not aligned:
        graphs.align_products = lambda graph: graph
    models, x, y = stack_case()
    few = models[:FEW]
    taken = times(
        rounds=3,
        ours=lambda: fitted(models, x, y, 200, backend="stacks", momentum=0.9),
        loop=lambda: fitted(few, x, y, 200, backend="loop", momentum=0.9),
    )
    return taken["loop"] / FEW * len(models) / taken["ours"]


def alignment(rounds: int) -> None:
    """Compare aligned stacks with stacks that leave it to MKL_CBWR=AVX2, in fresh processes."""
    ratios: dict[str, list[float]] = {"aligned": [], "set": []}
    for _, kind in itertools.product(range(rounds), ratios):
        chosen = os.environ | ({"MKL_CBWR": "AVX2"} if kind == "set" else {})
        words = [sys.executable, __file__, "--ratio", kind]
        told = subprocess.run(words, env=chosen, capture_output=True, text=True, check=True)
        ratios[kind].append(float(told.stdout))
    ours, theirs = (statistics.median(values) for values in ratios.values())
    print(f"stacks are {ours:.1f} times as fast as the loop, {theirs:.1f} with MKL_CBWR=AVX2")
    bar("aligned stacks, against unaligned ones with MKL_CBWR=AVX2", ours / theirs, at_least=0.8)


def table(data_sets: int) -> None:
    """Train what table 4.1 asks for: 20 data sets, sizes 2 to 10, 10 networks each."""
    pairs = [gaussian_draw(n, seed) for seed in range(data_sets) for n in range(2, 11)] * 10
    models = shallow(len(pairs))
    begin = time.process_time()
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    run = fit_many(models, xs, ys, lr=0.1, epochs=50_000, stop_loss=1e-3, backend="lanes")
    steps = sum(member.steps for member in run)
    taken = time.process_time() - begin
    print(f"table 4.1: {len(models)} networks, {steps / 1e6:.0f} million steps, {taken:.0f} s")
    bar("Volhejn's table 4.1 on two cores", taken * 20 / data_sets / 2, at_most=300, unit="s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="all of table 4.1, not a twentieth")
    parser.add_argument("--ratio", choices=("aligned", "set"), help="print one of these alone")
    options = parser.parse_args()
    with threads(options.threads):
        if options.ratio:
            print(stacks_over_loop(options.ratio == "aligned"))
            return
        lanes(options.rounds)
        tiny(options.rounds)
        larger(options.rounds)
        alignment(3)
        table(20 if options.table else 1)


if __name__ == "__main__":
    main()
