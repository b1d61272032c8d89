"""Gradient deflection: how far the slope strays from the straight way between two data points."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import Result, Row, Summary, checks, instrument, mean_summary
from inscape._core.anytime import anytime
from inscape._core.checks import Function
from inscape._core.inference import no_grad
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape._core.sampling import draw_pair_numbers
from inscape.functional.jacobians import MEMORY, norm, probe
from inscape.smoothness.segments import Walk, joined, values, walked

#: Slopes of secants carry the rounding of the outputs; of affine maps in 3072 inputs up to 3.5.
ROUNDINGS = 8


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GradientDeflection(Result):
    """Deviation of the slope along each of the chords from the slope of the straight way.

    ``coarse`` tells a first answer, from fewer knots than were asked for.
    """

    range: ClassVar[Range] = NONNEGATIVE

    deflections: Float[Tensor, " pairs"]
    distances: Float[Tensor, " pairs"]
    knots: int
    outputs: int
    seed: int
    coarse: bool = False

    def rows(self) -> Iterator[Row]:
        """Yield one row for each chord: its deflection and the straight way between its ends."""
        pairs = zip(self.deflections.tolist(), self.distances.tolist(), strict=True)
        for deflection, distance in pairs:
            yield {"gradient_deflection": deflection, "straight": distance}

    def per_sample(self) -> Tensor:
        """Return the deflection of each chord."""
        return self.deflections

    def summary(self) -> Summary:
        """Return the mean over the chords, a lower bound where it is coarse."""
        basis = f"{len(self.deflections)} pairs x {self.knots} knots"
        kind: Kind = "lower bound" if self.coarse else "estimate"
        return mean_summary(self.deflections, kind=kind, basis=basis)


@instrument(
    reads="function",
    larger="less even between examples",
    cost="instant",
    work=lambda n, c: 102_000,
    samples="pairs",
    meaning="Along the straight line between two data points, the slope of the output has a "
    "standard deviation of {value}; the line counts as one unit long.",
    cites="kubo2019implicit, our reading",
    least_rows=2,
)
@anytime
@no_grad
def gradient_deflection(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    pairs: int = 1000,
    knots: int = 100,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[GradientDeflection]:
    r"""Measure how unevenly ``f`` changes along chords between random pairs of points.

    .. math:: GD(f) = \mathbb{E}_{a,b} \, \sqrt{\int_0^1 \lVert g_{ab}(t) - (f(b) - f(a))
              \rVert^2 \, dt}, \quad g_{ab}(t) = \tfrac{d}{dt} f(a + t(b - a))

    The standard deviation of the slope along a chord, in units of the output: zero where ``f``
    interpolates straight between the two points, of second order like the gradient path length.
    Volhejn names the measure after Kubo et al. (2019), who find that training keeps networks
    "almost straight" between samples; neither the thesis nor the abstract of Kubo et al. prints a
    formula, so that this one is our reading of their words.

    The slope between two of the equidistant knots is that of the secant, which makes each chord's
    number a lower bound, exact where ``f`` is affine between knots; the mean over pairs is an
    estimate with its standard error. What may be rounding of the outputs counts as zero. Costs
    ``pairs * (knots + 2)`` evaluations.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Points that the chords join, drawn with replacement.
        pairs: Number of chords.
        knots: Points on each chord, ends included.
        seed: Seed of the draw of pairs.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> ends = torch.tensor([[-1.0], [1.0]])
    >>> gradient_deflection(torch.abs, ends, pairs=8, knots=3).deflections.unique().tolist()
    [0.0, 2.0]
    """
    checks.whole(1, pairs=pairs, memory=memory)
    checks.whole(2, knots=knots)
    found, ends = probe(f, x), draw_pair_numbers(len(x), pairs, seed=seed)
    walk = Walk(probe=found, x=x, ends=ends, knots=knots, rows=found.rows(memory))
    yield from walked(walk, partial(_deflections, seed=seed))


def _deflections(walk: Walk, *, seed: int) -> Iterator[tuple[int, GradientDeflection | None]]:
    """Yield the deflections of the chords so far, after each batch; None within a chord."""
    x, pieces = walk.x, walk.knots - 1
    deflections, distances = x.new_zeros(2, walk.ends.shape[1])
    straight, squares, last = x.new_zeros(1, 1), x.new_zeros(1), None
    largest = 0.0
    for some, begins, ends, y in walk.values():
        if begins:
            tips = (y[:, 0], y[:, -1]) if ends else _tips(walk, some)
            straight, squares, last = tips[1] - tips[0], x.new_zeros(len(y)), None
            largest = max(largest, float(norm(torch.cat(tips), dim=1).max()))
        y = joined(last, y)
        squares += (pieces * y.diff(dim=1) - straight[:, None]).square().sum((1, 2))
        if not ends:
            last = y[:, -1].clone()
            yield some.start, None
            continue
        deflections[some] = (squares / pieces).sqrt()
        distances[some] = norm(straight, dim=1)
        rounding = ROUNDINGS * pieces * torch.finfo(x.dtype).eps * largest
        so_far = deflections[: some.stop]
        result = GradientDeflection(
            deflections=so_far.masked_fill(so_far <= rounding, 0),
            distances=distances[: some.stop],
            knots=walk.knots,
            outputs=walk.probe.outputs,
            seed=seed,
            coarse=walk.coarse,
        )
        yield some.stop, result


def _tips(walk: Walk, some: slice) -> tuple[Float[Tensor, "m c"], Float[Tensor, "m c"]]:
    """Return the outputs at both ends of some chords."""
    x, ends = walk.x, walk.ends[:, some].to(walk.x.device)
    start, stop = (values(walk.probe.f, x[end], rows=walk.rows) for end in ends)
    return start, stop
