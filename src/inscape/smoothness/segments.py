"""Walking along segments: knots between pairs of points, in pieces that fit the memory."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import checks
from inscape._core.anytime import stoppable
from inscape._core.checks import Function
from inscape._core.compiled import compiled
from inscape.functional.jacobians import Probe, chunks, norm

#: Numbers from which on the compiled sum pays for being compiled.
LARGE = 10_000_000
#: Pairs of a first, coarse answer where a batch is shorter than a few walks; knots of values there,
#: and of gradients, which cost more.
COARSE_PAIRS, COARSE_KNOTS, COARSE_GRADIENTS = 16, 8, 4
#: Walks that a batch should have room for in a coarse answer.
COARSE_WALKS = 4
#: Pairs that are cut exactly in one step at most where the caller may stop.
BLOCK = 64

R = TypeVar("R")


def walks(
    x: Float[Tensor, "n *d"], ends: Int64[Tensor, "2 pairs"], knots: int, *, rows: int
) -> Iterator[tuple[slice, bool, Float[Tensor, "m k *d"]]]:
    """Yield which pairs, whether their walk begins, and the next knots: ``rows`` in all at most.

    Both ends are exactly the points of ``x`` that ``ends`` numbers. All lie in one place, each over
    the one before: fresh memory for every piece is slower to write and to read.
    """
    at = torch.linspace(0, 1, knots, dtype=torch.float64).to(x)
    at = at.reshape(1, -1, *[1] * (x.ndim - 1))
    pairs, group, windows = ends.shape[1], max(1, rows // knots), -(-knots // rows)
    window = -(-knots // windows)
    x, ends = x.detach(), ends.to(x.device)
    space = x.new_empty(min(group, pairs) * window * x[0].numel())
    for first in range(0, pairs, group):
        some = slice(first, min(first + group, pairs))
        start, stop = (x[end[some]][:, None] for end in ends)
        for knot in range(0, knots, window):
            t = at[:, knot : knot + window]
            shape = (len(start), t.shape[1], *x.shape[1:])
            points = torch.lerp(start, stop, t, out=space[: math.prod(shape)].view(shape))
            yield some, knot == 0, points


@dataclass(frozen=True, eq=False, kw_only=True)
class Walk:
    """Chords between points that ``ends`` numbers, to be walked along with so many knots.

    A batch has at most ``rows`` rows; ``coarse`` tells that more knots were asked for.
    """

    probe: Probe
    x: Float[Tensor, "n *d"]
    ends: Int64[Tensor, "2 pairs"]
    knots: int
    rows: int
    coarse: bool = False

    def values(self) -> Iterator[tuple[slice, bool, bool, Float[Tensor, "m k c"]]]:
        """Yield which pairs, whether their walk begins and ends, and the outputs at its knots.

        Outputs may lie where those of the next knots will.
        """
        passed = 0
        for some, begins, at in walks(self.x, self.ends, self.knots, rows=self.rows):
            passed = at.shape[1] + (0 if begins else passed)
            y = self.probe.f(at.flatten(0, 1)).reshape(*at.shape[:2], -1)
            yield some, begins, passed == self.knots, y


def walked(walk: Walk, measure: Callable[[Walk], Iterator[tuple[int, R | None]]]) -> Iterator[R]:
    """Yield the results of ever more chords; before those with all knots perhaps coarse ones."""

    def staged(stage: Stage) -> Iterator[tuple[int, R | None]]:
        fewer = stage.places < walk.knots
        ends = walk.ends[:, : stage.samples]
        return measure(replace(walk, ends=ends, knots=stage.places, coarse=fewer))

    fine = Stage(walk.ends.shape[1], walk.knots)
    yield from in_stages(staged, stages(fine, walk.rows, coarse_knots=COARSE_KNOTS))


def joined(last: Tensor | None, values: Float[Tensor, "m k *w"]) -> Float[Tensor, "m j *w"]:
    """Return values at knots with those at the last knot of the window before, if there was one."""
    return values if last is None else torch.cat([last[:, None], values], dim=1)


class Stage(NamedTuple):
    """How many samples are taken, at how many places each is measured, and with what vectors."""

    samples: int
    places: int
    projections: int = 0


def stages(fine: Stage, rows: int, *, coarse_knots: int, projections: int = 0) -> list[Stage]:
    """Return the stages of walks: before the asked one a coarse one, if that is of use.

    Where the caller may stop and a batch has no room for a few walks, a few pairs are walked along
    with fewer knots, and fewer random projections, first.
    """
    knots = min(fine.places, max(coarse_knots, rows // COARSE_WALKS))
    coarse = Stage(min(fine.samples, COARSE_PAIRS), knots, projections)
    short = rows < COARSE_WALKS * fine.places
    return [coarse, fine] if stoppable() and short and coarse[1:] != fine[1:] else [fine]


def in_stages(
    measure: Callable[[Stage], Iterator[tuple[int, R | None]]], stages: Sequence[Stage]
) -> Iterator[R]:
    """Yield the results of ever more samples, one for each batch of the model.

    One sample has no interval: the first result has two, unless one is all that was asked for.

    Args:
        measure: Yields samples so far and their result for each batch; None within a sample.
        stages: The stages; results of a finer one count once they have as many samples.
    """
    best: R | None = None
    count = 0
    for stage in stages:
        count = max(count, min(2, stage.samples))
        for done, result in measure(stage):
            if result is not None and done >= count:
                best, count = result, done
            if best is not None:
                yield best


def blocks(
    x: Float[Tensor, "n *d"], ends: Int64[Tensor, "2 pairs"]
) -> Iterator[tuple[Float64[Tensor, "m *d"], Float64[Tensor, "m *d"]]]:
    """Yield both ends of all pairs at once; of ever more at a time where the caller may stop."""
    first, pairs = 0, ends.shape[1]
    size = 1 if stoppable() else pairs
    while first < pairs:
        some = ends[:, first : first + size].to(x.device)
        yield x[some[0]].double(), x[some[1]].double()
        first, size = first + size, min(2 * size, BLOCK)


def values(f: Function, x: Float[Tensor, "m *d"], *, rows: int) -> Float[Tensor, "m c"]:
    """Return ``f`` at points, one flat row each, ``rows`` of them at a time."""
    return torch.cat([f(part).reshape(len(part), -1) for part in chunks(x, rows)])


def variation(rows: Float[Tensor, "m k w"], *, large: bool) -> Float[Tensor, " m"]:
    """Return the length of the way through the ``k`` rows of each of ``m`` walks."""
    if large and rows.device.type == "cpu":
        lengths = rows.new_empty(len(rows))
        _add_steps(rows.contiguous().numpy(), lengths.numpy())
        return lengths
    return norm(rows.diff(dim=1), dim=2).sum(1)


@compiled
def _add_steps(rows: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> None:
    """Sum the norms of the steps in one pass over memory, where torch takes three."""
    for i in range(rows.shape[0]):
        length = 0.0
        for k in range(rows.shape[1] - 1):
            square = rows[i, k, 0] - rows[i, k, 0]  # a zero of the rows' own precision
            for j in range(rows.shape[2]):
                step = rows[i, k + 1, j] - rows[i, k, j]
                square += step * step
            length += np.sqrt(square)
        lengths[i] = length


def halves(x: Float[Tensor, "n *d"]) -> tuple[Float[Tensor, "m *d"], Float[Tensor, "m *d"]]:
    """Pair the first half of a batch with the second; an odd last point is left out."""
    half = len(x) // 2
    return x[:half], x[half : 2 * half]


def reduced(values: Float[Tensor, " n"], reduction: Literal["mean", "sum"]) -> Float[Tensor, ""]:
    """Return the mean or the sum."""
    checks.one_of(("mean", "sum"), reduction=reduction)
    return values.mean() if reduction == "mean" else values.sum()
