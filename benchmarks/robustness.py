"""How fast attacks are, and whether they find what their peers find.

    python benchmarks/robustness.py            (foolbox and pyautoattack, where installed)

PGD of 20 steps against a 784-256-256-10 network, 1000 images (MNIST where INSCAPE_DATA_DIR has it,
else blobs, and the line says so), one thread, all sides in turn in one
process, medians of wall time. Bar: at most 1.05 times a bare loop and foolbox, with the same
fraction of images broken up to chance. Then AutoAttack, image by image, beside pyautoattack
on a small network (100 digits).
"""

import argparse
import time
from functools import partial
from importlib.util import find_spec

import torch
from bars import bar, threads, times
from torch import Tensor, nn

from inscape.data import digits, mnist
from inscape.models import mlp, two_layer
from inscape.robustness import AutoAttack, Pgd, robustness
from inscape.training import fit

STEPS, BAR = 20, 1.05


def images(n: int) -> tuple[str, Tensor, Tensor]:
    """Return MNIST, or blurred blobs of ten classes that a short training tells apart."""
    try:
        data = mnist(n=n)
    except (ValueError, OSError):
        return "blobs (no MNIST at hand)", *blobs(n)
    return "MNIST", data.x.flatten(1), data.y


def blobs(n: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    y = torch.arange(n) % 10
    means = nn.functional.interpolate(torch.rand(10, 1, 7, 7, generator=draw), 28).flatten(1)
    x = 0.6 * means[y] + 0.4 * torch.rand(n, 784, generator=draw)
    return x, y


def bare(model: nn.Module, x: Tensor, y: Tensor, budget: float, norm: str) -> Tensor:
    """Return where twenty steps of plain PGD end, as one would write it down."""
    draw = torch.Generator().manual_seed(0)
    noise = torch.randn(x.shape, generator=draw)
    if norm == "l2":
        radius = torch.rand(len(x), 1, generator=draw) ** (1 / x.shape[1])
        at = x + budget * radius * noise / noise.norm(dim=1, keepdim=True)
    else:
        at = x + budget * (2 * torch.rand(x.shape, generator=draw) - 1)
    at = at.clamp(0, 1)
    rate = 2.5 * budget / STEPS
    for _ in range(STEPS):
        at.requires_grad_()
        (g,) = torch.autograd.grad(nn.functional.cross_entropy(model(at), y, reduction="sum"), at)
        at = at.detach()
        if norm == "l2":
            at = at + rate * g / g.norm(dim=1, keepdim=True).clamp_min(1e-12)
            step = at - x
            step = step * (budget / step.norm(dim=1, keepdim=True).clamp_min(budget))
        else:
            step = (at + rate * g.sign() - x).clamp(-budget, budget)
        at = (x + step).clamp(0, 1)
    return at


def peer(model: nn.Module, x: Tensor, y: Tensor, budget: float, norm: str) -> Tensor:
    """Return where foolbox's PGD ends."""
    from foolbox import PyTorchModel
    from foolbox.attacks import L2PGD, LinfPGD

    attack = (L2PGD if norm == "l2" else LinfPGD)(steps=STEPS, rel_stepsize=2.5 / STEPS)
    wrapped = PyTorchModel(model, bounds=(0, 1), device="cpu")
    found: Tensor = attack(wrapped, x, y, epsilons=budget)[1]
    return found


def pgd(rounds: int) -> None:
    found, x, y = images(3000)
    model = mlp(784, 256, 256, 10)
    settings = {"loss": "cross_entropy", "optimizer": "adam", "lr": 1e-3, "batch": 64}
    fit(model, x[1000:], y[1000:], epochs=3, **settings)
    x, y = x[:1000], y[:1000]
    for norm, budget in (("l2", 2.8), ("linf", 0.12), ("l2", 0.1), ("linf", 0.003)):
        chosen = {"attack": Pgd(norm=norm, steps=STEPS), "budgets": [budget], "points": 1000}
        ours = partial(robustness, model, x, y, bounds=(0.0, 1.0), sanity=False, **chosen)
        sides = {"a bare loop": bare}
        if find_spec("foolbox"):
            sides["foolbox"] = peer
        else:
            print("foolbox is not installed, so that side is left out: pip install -e '.[bench]'")
        broke = 1 - float(ours().accuracy[1])
        works = {name: partial(side, model, x, y, budget, norm) for name, side in sides.items()}
        taken = times(rounds, ours=ours, **works)
        print(f"PGD-{STEPS} on {found}, {norm} {budget}: {broke:.1%} broken")
        for name, side in sides.items():
            at = side(model, x, y, budget, norm)
            theirs = float((model(at).argmax(1) != y).float().mean())
            print(f"  {name}: {taken[name]:.2f} s, {theirs:.1%} broken")
            job = f"PGD-{STEPS}, {norm} {budget}, time over that of {name}"
            bar(job, taken["ours"] / taken[name], at_most=BAR)


class Images(nn.Module):
    """A network of rows, for images."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores."""
        return self.inner(x.flatten(1))


def agreement() -> None:
    """Compare AutoAttack with pyautoattack, image by image and part by part."""
    from pyautoattack import AutoAttack as Peer

    data = digits()
    net = two_layer(64, 64, 10)
    fit(net, data.x, data.y, loss="cross_entropy", optimizer="adam", lr=0.003, batch=64, epochs=15)
    model = Images(net).eval()
    x, y = data.x_test[:100].reshape(-1, 1, 8, 8), data.y_test[:100]
    for norm, name, budget in (("l2", "L2", 0.5), ("linf", "Linf", 0.1)):
        for part in ("apgd-ce", "apgd-t", "fab-t", "square", "standard"):
            kept = {"version": "custom", "attacks": [part]} if part != "standard" else {}
            theirs = Peer(model, norm=name, eps=budget, seed=0, device="cpu", **kept)
            begin = time.process_time()
            moved = theirs.run_standard_evaluation(x, y, batch_size=250)
            moved = moved[0] if isinstance(moved, tuple) else moved
            middle = time.process_time()
            chosen = AutoAttack(norm=norm, parts=(part,)) if part != "standard" else "autoattack"
            ours = robustness(
                model, x, y, attack=chosen, norm=norm, budgets=[budget], bounds=(0.0, 1.0)
            )
            end = time.process_time()
            stands = model(moved).argmax(1) == y
            same = int((stands == (ours.lengths > budget * (1 + 1e-5))).sum())
            print(
                f"{part}, {norm} {budget}: {float(ours.accuracy[1]):.0%} stand ({end - middle:.1f} "
                f"s), pyautoattack {float(stands.float().mean()):.0%} ({middle - begin:.1f} s); "
                f"{same} of 100 images alike"
            )


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--rounds", type=int, default=7)
    asked.add_argument("--agreement", action=argparse.BooleanOptionalAction, default=True)
    options = asked.parse_args()
    with threads(1):
        pgd(options.rounds)
        if options.agreement and find_spec("pyautoattack"):
            agreement()
    if not find_spec("pyautoattack"):
        print("pyautoattack is not installed, so that side is left out: pip install -e '.[bench]'")


if __name__ == "__main__":
    main()
