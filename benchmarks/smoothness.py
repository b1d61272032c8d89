"""How fast the smoothness measures are, beside what a competent user writes.

    python benchmarks/smoothness.py            # a minute, one line for each bar

Network 784-256-1 with ReLU, float32, one thread. Peers do no checks: one batched
``torch.autograd.grad`` for ``gradient_norm``, all knots of some chords in one batch for the path
lengths. Ratios are peer's time over ours (above 1: we are faster), medians of interleaved runs; of
calls that take a few milliseconds processor time is compared, in which others have no part.
"hidden" is the same network with a first layer in which no linear map can be seen, on both sides.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import bars
import torch
from torch import Tensor, nn

from inscape.smoothness import gradient_norm, gradient_path_length, path_length

PAIRS, KNOTS, INPUTS, HIDDEN = 200, 100, 784, 256
#: Chords that the peers put into one batch: 1600 rows, as many as ours.
CHORDS = 16


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)).eval()


class Opaque(torch.autograd.Function):
    """A linear map written by hand, in which autograd sees none."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Add and multiply in one call."""
        ctx.save_for_backward(weight)
        return torch.addmm(bias, x, weight.T)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        """Multiply the other way round."""
        (weight,) = ctx.saved_tensors
        return gradient @ weight, None, None


class Hidden(nn.Module):
    """The same network, with a first layer in which no linear map can be seen."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.first, self.rest = inner[0], inner[1:]  # type: ignore[index]

    def forward(self, x: Tensor) -> Tensor:
        """Call the opaque map with the weights of the first layer."""
        rest: Tensor = self.rest(Opaque.apply(x, self.first.weight, self.first.bias))  # type: ignore[no-untyped-call]
        return rest


def batched_gradients(f: nn.Module, x: Tensor) -> Tensor:
    """Return the gradient norms by one backward pass for all points."""
    x = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(x).sum(), x)
    return gradient.norm(dim=1)


def chords(x: Tensor) -> Iterator[Tensor]:
    """Return the knots of some chords, some chords at a time."""
    draw = torch.Generator().manual_seed(0)
    ends = torch.randint(len(x), (2, PAIRS), generator=draw)
    t = torch.linspace(0, 1, KNOTS)[None, :, None]
    for some in ends.split(CHORDS, dim=1):
        yield torch.lerp(x[some[0]][:, None], x[some[1]][:, None], t)


def vectorised_lengths(f: nn.Module, x: Tensor) -> Tensor:
    """Return the path lengths of chords, all knots of some in one batch."""
    with torch.no_grad():
        values = [f(at.flatten(0, 1)).reshape(len(at), KNOTS, -1) for at in chords(x)]
        return torch.cat([y.diff(dim=1).norm(dim=2).sum(1) for y in values])


def vectorised_turns(f: nn.Module, x: Tensor) -> Tensor:
    """Return the gradient path lengths of chords, likewise."""
    lengths = []
    for at in chords(x):
        rows = at.flatten(0, 1).requires_grad_()
        (gradient,) = torch.autograd.grad(f(rows).sum(), rows)
        turns = gradient.reshape(len(at), KNOTS, -1).diff(dim=1).norm(dim=2)
        lengths.append(turns.sum(1))
    return torch.cat(lengths)


def more(ours: Callable[[], object], peer: Callable[[], object], rounds: int = 201) -> float:
    """Return how many milliseconds of processor time ours takes above the peer: medians."""
    taken: tuple[list[float], list[float]] = [], []
    for _ in range(rounds):
        for work, seconds in zip((ours, peer), taken, strict=True):
            begin = time.process_time()
            work()
            seconds.append(time.process_time() - begin)
    return 1e3 * (statistics.median(taken[0]) - statistics.median(taken[1]))


def main() -> None:
    f = network()
    hidden = Hidden(f).eval()
    x = torch.rand(10_000, INPUTS)
    few = x[:200].clone()
    every = {"points": len(x)}
    walk = {"pairs": PAIRS, "knots": KNOTS}
    with bars.threads(1):
        for name, model in (("", f), (", hidden", hidden)):
            took = bars.times(
                rounds=7,
                ours=lambda model=model: gradient_norm(model, x, **every),
                peer=lambda model=model: batched_gradients(model, x),
            )
            ratio = took["peer"] / took["ours"]
            bars.bar(f"gradient_norm, 10,000 rows{name}", ratio, at_least=0.95)
            over = more(
                lambda model=model: gradient_norm(model, few),
                lambda model=model: batched_gradients(model, few),
            )
            bars.bar(f"gradient_norm over it, 200 rows{name}", over, at_most=1.0, unit="ms")
        pairs = {
            "path_length": (path_length, vectorised_lengths),
            "gradient_path_length": (gradient_path_length, vectorised_turns),
        }
        for name, (ours, peer) in pairs.items():
            took = bars.times(
                rounds=5,
                ours=lambda ours=ours: ours(f, x, **walk),
                peer=lambda peer=peer: peer(f, x),
            )
            bars.bar(f"{name}, {PAIRS} pairs", took["peer"] / took["ours"], at_least=0.95)


if __name__ == "__main__":
    main()
