"""Path length: how far the output travels along the chord between two data points."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor

from inscape._core import Bound, Result, Row, Summary, checks, instrument, mean_summary
from inscape._core.anytime import anytime
from inscape._core.checks import Function
from inscape._core.inference import no_grad
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape._core.sampling import draw_pair_numbers
from inscape.functional.jacobians import MEMORY, norm, probe
from inscape.piecewise.graph.network import piecewise
from inscape.piecewise.lines.segments import lines
from inscape.smoothness.chords import (
    Chords,
    blocks,
    halves,
    reduced,
    refined_results,
    variation,
    with_previous_knot,
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PathLength(Result):
    """Length of the output's path along each of the chords, by secants between the knots.

    Where it is exact, ``knots`` counts those of all chords: their ends and every breakpoint.
    ``coarse`` marks a first result, from fewer knots than requested.
    """

    range: ClassVar[Range] = NONNEGATIVE

    lengths: Float[Tensor, " pairs"]
    distances: Float[Tensor, " pairs"]
    knots: int
    outputs: int
    seed: int
    exact: bool = False
    coarse: bool = False

    def rows(self) -> Iterator[Row]:
        """Yield one row for each chord: the path and the distance between its ends."""
        for length, distance in zip(self.lengths.tolist(), self.distances.tolist(), strict=True):
            yield {"path_length": length, "straight": distance}

    def per_sample(self) -> Tensor:
        """Return the length along each chord."""
        return self.lengths

    def summary(self) -> Summary:
        """Return the mean over the chords, a lower bound where it is coarse."""
        resolution = ", exact along each chord" if self.exact else f" x {self.knots} knots"
        basis = f"{len(self.lengths)} pairs{resolution}"
        kind: Kind = "lower bound" if self.coarse else "estimate"
        return mean_summary(self.lengths, kind=kind, basis=basis)


def label_bound(x: Tensor, y: Tensor) -> Bound | None:
    r"""Return the shortest mean path of any function that takes the values ``y`` at the data.

    .. math:: PL_0(f^*) \ge \frac{1}{n^2} \sum_{i,j} \lVert y_i - y_j \rVert

    Volhejn's Eq. (4.8), exact. None for class labels: a network's outputs are then scores, which
    the labels do not fix.
    """
    if not y.is_floating_point():
        return None
    values, counts = torch.unique(y.reshape(len(y), -1).double(), dim=0, return_counts=True)
    if values.shape[1] == 1:
        total = _sum_of_gaps(values[:, 0], counts)
    else:
        total = _sum_of_distances(values, counts)
    return Bound(total / len(y) ** 2, "any function that fits these labels exactly")


def _sum_of_distances(vectors: Float[Tensor, "m c"], counts: Int[Tensor, " m"]) -> float:
    """Return the sum of |a - b| over ordered pairs of vectors with multiplicities."""
    weights, total = counts.double(), 0.0
    mode = "donot_use_mm_for_euclid_dist"
    for block, multiplicities in zip(
        torch.split(vectors, 256), torch.split(weights, 256), strict=True
    ):
        total += float(multiplicities @ torch.cdist(block, vectors, compute_mode=mode) @ weights)
    return total


def _sum_of_gaps(values: Float[Tensor, " m"], counts: Int[Tensor, " m"]) -> float:
    """Return the sum of |a - b| over ordered pairs of a sorted sample with multiplicities."""
    below = counts.cumsum(0)[:-1].double()
    return float(2 * (values.diff() * below * (counts.sum() - below)).sum())


@instrument(
    reads="function",
    larger="rougher",
    cost="instant",
    work=lambda n, c: 100_000,
    samples="pairs",
    meaning="Along the straight line from one data point to another, the output moves by {value} "
    "in total, ups and downs included.",
    cites="volhejn2020smoothness, Definition 6, Eqs. (3.4)-(3.6)",
    least_rows=2,
    bound=label_bound,
)
@anytime
@no_grad
def path_length(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    pairs: int = 1000,
    knots: int = 100,
    exact: bool = False,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[PathLength]:
    r"""Measure how far ``f`` moves along chords between random pairs of points.

    .. math:: PL_0(f) = \mathbb{E}_{a,b} \, TV_{[a,b]}(f), \quad
              \widehat{TV}_{[a,b]}(f, n) = \sum_{i=1}^{n-1} \lVert f(p_i) - f(p_{i-1}) \rVert

    The sum over ``n`` equidistant knots is a lower bound for each chord, exact where ``f`` is
    affine between knots; the mean over pairs is an estimate with its standard error. Costs
    ``pairs * knots`` evaluations. For a piecewise-linear network ``exact=True`` cuts each
    chord at all kinks, so that only the pairs are sampled.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Points that the chords join, drawn with replacement.
        pairs: Number of chords.
        knots: Points on each chord, ends included.
        exact: Whether to cut each chord at every breakpoint of the network instead, in float64.
        seed: Seed of the draw of pairs.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> ends = torch.tensor([[-1.0], [1.0]])
    >>> path_length(torch.abs, ends, pairs=8, knots=3).lengths.unique().tolist()
    [0.0, 2.0]
    """
    checks.whole(1, pairs=pairs, memory=memory)
    checks.whole(2, knots=knots)
    checks.points(x)
    ends = draw_pair_numbers(len(x), pairs, seed=seed)
    if exact:
        yield from _exact(f, x, ends, seed, memory)
        return
    probed = probe(f, x)
    chords = Chords(probe=probed, x=x, ends=ends, knots=knots, rows=probed.rows(memory))
    yield from refined_results(chords, partial(_lengths, seed=seed))


def _lengths(chords: Chords, *, seed: int) -> Iterator[tuple[int, PathLength | None]]:
    """Yield the lengths of the chords so far, after each batch; None within a chord."""
    lengths, distances = chords.x.new_zeros(2, chords.ends.shape[1])
    first, last = chords.x.new_zeros(1, 1), None
    for pairs, is_first, is_last, y in chords.values():
        if is_first:
            first, last = y[:, 0].clone(), None
        y = with_previous_knot(last, y)
        lengths[pairs] += variation(y, large=False)
        if not is_last:
            last = y[:, -1].clone()
            yield pairs.start, None
            continue
        distances[pairs] = norm(y[:, -1] - first, dim=1)
        result = PathLength(
            lengths=lengths[: pairs.stop],
            distances=distances[: pairs.stop],
            knots=chords.knots,
            outputs=chords.probe.outputs,
            seed=seed,
            coarse=chords.coarse,
        )
        yield pairs.stop, result


def _exact(
    f: Function, x: Tensor, ends: Int64[Tensor, "2 pairs"], seed: int, memory: int
) -> Iterator[PathLength]:
    """Yield exact path lengths of a piecewise-linear network, cut at all its breakpoints."""
    net = piecewise(f, x)
    lengths, distances, knots = [], [], 0
    for start, stop in blocks(x, ends):
        segments = lines(net, start, stop, memory=memory)
        lengths.append(segments.variation())
        starts, stops = segments.offsets[:-1], segments.offsets[1:] - 1
        distances.append(norm(segments.values[stops] - segments.values[starts], dim=1))
        knots += len(segments.t)
        yield PathLength(
            lengths=torch.cat(lengths),
            distances=torch.cat(distances),
            knots=knots,
            outputs=net.outputs,
            seed=seed,
            exact=True,
        )


def path_length_penalty(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    knots: int = 10,
    reduction: Literal["mean", "sum"] = "mean",
) -> Float[Tensor, ""]:
    r"""Return the path length of a batch, differentiable in the weights of ``f``.

    .. math:: \widehat{PL}_0(f) = \tfrac2k \sum_{i=1}^{k/2} \widehat{TV}_{[x_i, x_{i+k/2}]}(f, 10)

    Volhejn's Eq. (4.7) as corrected (V3): the first half of the batch is paired with the second,
    an odd last point is left out. ``reduction="sum"`` is the thesis' own code; its coefficient
    1e-4 belongs to the sum and is 32 times weaker as a mean at batch 64.
    """
    checks.points(x)
    checks.whole(2, knots=knots)
    a, b = halves(x)
    if len(a) == 0:
        return x.new_zeros(())
    t = torch.linspace(0, 1, knots, dtype=x.dtype, device=x.device)
    y = f(torch.cat([torch.lerp(a, b, at) for at in t])).reshape(knots, len(a), -1)
    return reduced(norm(y.diff(dim=0), dim=2).sum(0), reduction)
