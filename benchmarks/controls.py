"""What controls cost, table 1 of Klindt's paper, attacks and Gaussian processes beside peers.

    python benchmarks/controls.py              # all four bars, in one run

CPU time on one thread, both sides in turn in one process, best of several rounds. Bars: a training
step of a held 2-10000-1 tanh network, batch 256, Adam, takes at most 1.15 times that of a plain
one; table 1 at the paper's scale (10 repeats of 8 models, and of two more) takes at most 5 minutes
on 2 cores. The compiled loop for wide networks is shown beside the plain one. PGD and Gaussian
processes have their bars, and their own lines, in robustness.py and gaussian_process.py.
"""

import argparse
import time
from collections.abc import Callable

import gaussian_process
import torch
from torch import nn

import robustness
from inscape.controls import length_scale, row_scale, spectral_scale
from inscape.data import disc
from inscape.models import two_layer
from inscape.papers.klindt.table_1 import MODELS, cell
from inscape.training import fit, fit_wide

CONTROLS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "length_scale": lambda net: length_scale(net, 1.0),
    "length_scale, biases too": lambda net: length_scale(net, 1.0, bias="normalised"),
    "length_scale, rows": lambda net: length_scale(net, 1.0, scope="row"),
    "row_scale": lambda net: row_scale(net, 1.0),
    "spectral_scale": lambda net: spectral_scale(net, 1.0),
}


def stepper(net: nn.Module) -> Callable[[], None]:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(256, 2, generator=draw)
    y = x.sum(1, keepdim=True)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()

    return step


def held(rounds: int) -> None:
    nets = {"plain": two_layer(2, 10_000, activation="tanh")}
    nets |= {
        name: control(two_layer(2, 10_000, activation="tanh")) for name, control in CONTROLS.items()
    }
    steps = {name: stepper(net.train()) for name, net in nets.items()}
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(rounds):
        for name, step in steps.items():
            begin = time.process_time()
            for _ in range(5):
                step()
            best[name] = min(best[name], (time.process_time() - begin) / 5)
    print(f"a step of a plain 2-10000-1 tanh network, batch 256: {best['plain'] * 1e3:.2f} ms")
    for name in CONTROLS:
        bar = " (bar 1.15)" if name == "length_scale" else ""
        print(f"  {name}: {best[name] / best['plain']:.3f} x{bar}")


def wide() -> None:
    data = disc(n=128)
    for activation in ("relu", "tanh"):
        net = two_layer(2, 1024, activation=activation)
        fit_wide(net, data.x, data.y, steps=2, progress=False)
        begin = time.process_time()
        fit_wide(net, data.x, data.y, steps=1000, progress=False)
        ours = (time.process_time() - begin) / 1000
        begin = time.process_time()
        fit(net, data.x, data.y, optimizer="adam", lr=1e-3, epochs=200, progress=False)
        theirs = (time.process_time() - begin) / 200
        print(
            f"2-1024-1 {activation}, 128 points: a step takes {ours * 1e6:.0f} us by fit_wide, "
            f"{theirs * 1e6:.0f} us by fit: {theirs / ours:.0f} x faster"
        )


def table(repeats: int) -> None:
    begin = time.process_time()
    for seed in range(repeats):
        for model in MODELS:
            cell(model=model, seed=seed, n=128, steps=50_000, grid=512)
    taken = time.process_time() - begin
    whole = taken / repeats * 10 / 2
    print(
        f"table 1: {taken:.0f} s of CPU for {repeats} of 10 repeats, so {whole:.0f} s for all on 2 "
        "cores (bar 300 s)"
    )


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--rounds", type=int, default=20)
    asked.add_argument("--repeats", type=int, default=1, help="of table 1; 10 are the whole")
    chosen = asked.parse_args()
    torch.set_num_threads(1)
    held(chosen.rounds)
    wide()
    table(chosen.repeats)
    robustness.pgd(3)
    gaussian_process.fixed(3)
    gaussian_process.fitted(1000, ("amplitude", "length_scale"), 0, 1)


if __name__ == "__main__":
    main()
