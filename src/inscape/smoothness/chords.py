"""Chords between pairs of points, evaluated at knots in batches that fit the memory."""

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
from inscape._core.anytime import patience, stoppable
from inscape._core.checks import Function
from inscape.functional.jacobians import Probe, chunks, norm
from inscape.runtime.compilation import compiled
from inscape.runtime.deadline import now

#: Elements above which the compiled sum is worth its compilation.
LARGE = 10_000_000
#: Pairs of a first, coarse result where a batch is shorter than a few chords; knots for values, and
#: for gradients, which cost more.
COARSE_PAIRS, COARSE_KNOTS, COARSE_GRADIENTS = 16, 8, 4
#: Chords that should fit into a batch for a coarse result.
COARSE_WALKS = 4
#: Pairs that are cut exactly in one step at most where the caller may stop.
BLOCK = 64

R = TypeVar("R")


def knot_batches(
    x: Float[Tensor, "n *d"], ends: Int64[Tensor, "2 pairs"], knots: int, *, rows: int
) -> Iterator[tuple[slice, bool, Float[Tensor, "m k *d"]]]:
    """Yield the pairs, whether these are their first knots, and the knots, ``rows`` at most.

    Both ends are exactly the points of ``x`` at the indices ``ends``. Each batch overwrites the one
    before: fresh memory for every batch is slower to write and to read.
    """
    positions = torch.linspace(0, 1, knots, dtype=torch.float64).to(x)
    positions = positions.reshape(1, -1, *[1] * (x.ndim - 1))
    pairs, chords_per_batch, batches_per_chord = (
        ends.shape[1],
        max(1, rows // knots),
        -(-knots // rows),
    )
    window = -(-knots // batches_per_chord)
    x, ends = x.detach(), ends.to(x.device)
    space = x.new_empty(min(chords_per_batch, pairs) * window * x[0].numel())
    for first in range(0, pairs, chords_per_batch):
        chosen = slice(first, min(first + chords_per_batch, pairs))
        start, stop = (x[end[chosen]][:, None] for end in ends)
        for knot in range(0, knots, window):
            t = positions[:, knot : knot + window]
            shape = (len(start), t.shape[1], *x.shape[1:])
            points = torch.lerp(start, stop, t, out=space[: math.prod(shape)].view(shape))
            yield chosen, knot == 0, points


@dataclass(frozen=True, eq=False, kw_only=True)
class Chords:
    """Chords between the points at the indices ``ends``, with ``knots`` knots each.

    A batch has at most ``rows`` inputs; ``coarse`` marks fewer knots than requested.
    """

    probe: Probe
    x: Float[Tensor, "n *d"]
    ends: Int64[Tensor, "2 pairs"]
    knots: int
    rows: int
    coarse: bool = False

    def values(self) -> Iterator[tuple[slice, bool, bool, Float[Tensor, "m k c"]]]:
        """Yield the pairs, whether the knots are their first and last, and the outputs there.

        Outputs may share memory with those of the next batch.
        """
        passed = 0
        for chosen, is_first, inputs in knot_batches(self.x, self.ends, self.knots, rows=self.rows):
            passed = inputs.shape[1] + (0 if is_first else passed)
            y = self.probe.f(inputs.flatten(0, 1)).reshape(*inputs.shape[:2], -1)
            yield chosen, is_first, passed == self.knots, y


def refined_results(
    chords: Chords, measure: Callable[[Chords], Iterator[tuple[int, R | None]]]
) -> Iterator[R]:
    """Yield results of ever more chords, preceded by coarse ones where batches are small."""

    def measure_stage(stage: Stage) -> Iterator[tuple[int, R | None]]:
        is_coarse = stage.places < chords.knots
        ends = chords.ends[:, : stage.samples]
        return measure(replace(chords, ends=ends, knots=stage.places, coarse=is_coarse))

    fine = Stage(chords.ends.shape[1], chords.knots)
    yield from in_stages(measure_stage, stages(fine, chords.rows, coarse_knots=COARSE_KNOTS))


def with_previous_knot(
    last: Tensor | None, values: Float[Tensor, "m k *w"]
) -> Float[Tensor, "m j *w"]:
    """Return values at knots, preceded by those at the last knot of the previous batch."""
    return values if last is None else torch.cat([last[:, None], values], dim=1)


class Stage(NamedTuple):
    """Number of samples, of places at which each is measured, and of random projections."""

    samples: int
    places: int
    projections: int = 0


def stages(fine: Stage, rows: int, *, coarse_knots: int, projections: int = 0) -> list[Stage]:
    """Return the requested stage, preceded by a coarse one if that is of use.

    Where the caller may stop and a batch is smaller than a few chords, the first stage has fewer
    pairs, knots and random projections.
    """
    knots = min(fine.places, max(coarse_knots, rows // COARSE_WALKS))
    coarse = Stage(min(fine.samples, COARSE_PAIRS), knots, projections)
    short = rows < COARSE_WALKS * fine.places
    return [coarse, fine] if stoppable() and short and coarse[1:] != fine[1:] else [fine]


def in_stages(
    measure: Callable[[Stage], Iterator[tuple[int, R | None]]], stages: Sequence[Stage]
) -> Iterator[R]:
    """Yield the results of ever more samples, one for each batch of the model.

    One sample has no interval: the first result has two, unless only one was requested.
    Where the consumer's patience ends before that, None marks that there is no result yet.

    Args:
        measure: Yields samples so far and their result for each batch; None within a sample.
        stages: The stages; results of a finer one count once they have as many samples.
    """
    best: Any = None
    count, begun = 0, now()
    for stage in stages:
        count = max(count, min(2, stage.samples))
        for done, result in measure(stage):
            if result is not None and done >= count:
                best, count = result, done
            if best is not None or now() - begun >= patience():
                yield best
                begun = now()


def blocks(
    x: Float[Tensor, "n *d"], ends: Int64[Tensor, "2 pairs"]
) -> Iterator[tuple[Float64[Tensor, "m *d"], Float64[Tensor, "m *d"]]]:
    """Yield both ends of all pairs at once, or in growing blocks where the caller may stop."""
    first, pairs = 0, ends.shape[1]
    size = 1 if stoppable() else pairs
    while first < pairs:
        chosen = ends[:, first : first + size].to(x.device)
        yield x[chosen[0]].double(), x[chosen[1]].double()
        first, size = first + size, min(2 * size, BLOCK)


def values(f: Function, x: Float[Tensor, "m *d"], *, rows: int) -> Float[Tensor, "m c"]:
    """Return the flattened outputs of ``f``, ``rows`` inputs at a time."""
    return torch.cat([f(part).reshape(len(part), -1) for part in chunks(x, rows)])


def variation(vertices: Float[Tensor, "m k w"], *, large: bool) -> Float[Tensor, " m"]:
    """Return the lengths of ``m`` polygonal paths through ``k`` vertices each."""
    if large and vertices.device.type == "cpu":
        lengths = vertices.new_empty(len(vertices))
        _add_steps(vertices.contiguous().numpy(), lengths.numpy())
        return lengths
    return norm(vertices.diff(dim=1), dim=2).sum(1)


@compiled
def _add_steps(vertices: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> None:
    """Sum the norms of the steps in one pass over memory, where torch needs three."""
    for i in range(vertices.shape[0]):
        length = 0.0
        for k in range(vertices.shape[1] - 1):
            square = vertices[i, k, 0] - vertices[i, k, 0]  # a zero of the same dtype
            for j in range(vertices.shape[2]):
                step = vertices[i, k + 1, j] - vertices[i, k, j]
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
