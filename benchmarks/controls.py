"""What controls cost beside plain training, and table 1 of Klindt's paper.

    python benchmarks/controls.py

One thread, wall time, in turn in one process, medians. Bars: a training step of a held 2-10000-1
tanh network, batch 256, Adam, takes at most 1.15 times that of a plain one; table 1 at the paper's
scale (10 repeats of 8 models, and of two more) takes at most 5 minutes on 2 cores, judged by the
processor time of one repeat. The compiled loop for wide networks is shown beside the loop that one
writes in PyTorch, with its fused Adam. PGD and Gaussian processes have files of their own.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
from bars import bar, threads, times
from torch import Tensor, nn

from inscape.controls import length_scale, row_scale, spectral_scale
from inscape.data import disc
from inscape.models import two_layer
from inscape.papers.klindt.table_1 import MODELS, cell
from inscape.training import fit_wide

CONTROLS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "length_scale": lambda net: length_scale(net, 1.0),
    "length_scale, biases too": lambda net: length_scale(net, 1.0, bias="normalised"),
    "length_scale, rows": lambda net: length_scale(net, 1.0, scope="row"),
    "row_scale": lambda net: row_scale(net, 1.0),
    "spectral_scale": lambda net: spectral_scale(net, 1.0),
}


def stepper(net: nn.Module, x: Tensor, y: Tensor, **options: bool) -> Callable[[int], None]:
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, **options)

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()

    return steps


def held(rounds: int) -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(256, 2, generator=draw)
    y = x.sum(1, keepdim=True)
    nets = {"plain": two_layer(2, 10_000, activation="tanh")}
    nets |= {
        name: control(two_layer(2, 10_000, activation="tanh")) for name, control in CONTROLS.items()
    }
    works = {name: partial(stepper(net.train(), x, y), 5) for name, net in nets.items()}
    taken = times(rounds, **works)
    print(f"five steps of a plain 2-10000-1 tanh network, batch 256: {taken['plain'] * 1e3:.1f} ms")
    for name in CONTROLS:
        limit = 1.15 if name == "length_scale" else None
        bar(f"a step under {name} against a plain one", taken[name] / taken["plain"], at_most=limit)


def wide(rounds: int) -> None:
    data = disc(n=128)
    y = data.y if data.y.ndim > 1 else data.y[:, None]
    for activation in ("relu", "tanh"):
        net = two_layer(2, 1024, activation=activation)
        plain = stepper(two_layer(2, 1024, activation=activation).train(), data.x, y, fused=True)
        taken = times(
            rounds,
            ours=lambda net=net: fit_wide(net, data.x, data.y, steps=1000, progress=False),
            peer=lambda plain=plain: plain(200),
        )
        ratio = taken["peer"] / 200 / (taken["ours"] / 1000)
        bar(f"fit_wide, 2-1024-1 {activation}, 128 points, against a PyTorch loop", ratio)


def table(repeats: int) -> None:
    begin = time.process_time()
    for seed in range(repeats):
        for model in MODELS:
            cell(model=model, seed=seed, n=128, steps=50_000, grid=512)
    taken = time.process_time() - begin
    print(f"table 1: {taken:.0f} s of the processor for {repeats} of 10 repeats")
    bar("Klindt's table 1 on two cores", taken / repeats * 10 / 2, at_most=300, unit="s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=1, help="of table 1; 10 are the whole")
    options = parser.parse_args()
    with threads(1):
        held(options.rounds)
        wide(3)
        table(options.repeats)


if __name__ == "__main__":
    main()
