"""Gradient deflection: how much the slope varies along the chord between two data points."""

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
from inscape.smoothness.chords import Chords, refined_results, values, with_previous_knot

#: Rounding error of secant slopes, in units of that of the outputs; up to 3.5 was measured for
#: affine maps of 3072 inputs.
ROUNDINGS = 8


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GradientDeflection(Result):
    """Standard deviation of the slope along each of the chords.

    ``coarse`` marks a first result, from fewer knots than requested.
    """

    range: ClassVar[Range] = NONNEGATIVE

    deflections: Float[Tensor, " pairs"]
    distances: Float[Tensor, " pairs"]
    knots: int
    outputs: int
    seed: int
    coarse: bool = False

    def rows(self) -> Iterator[Row]:
        """Yield one row for each chord: its deflection and the distance between its ends."""
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
    probed, ends = probe(f, x), draw_pair_numbers(len(x), pairs, seed=seed)
    chords = Chords(probe=probed, x=x, ends=ends, knots=knots, rows=probed.rows(memory))
    yield from refined_results(chords, partial(_deflections, seed=seed))


def _deflections(chords: Chords, *, seed: int) -> Iterator[tuple[int, GradientDeflection | None]]:
    """Yield the deflections of the chords so far, after each batch; None within a chord."""
    x, intervals = chords.x, chords.knots - 1
    deflections, distances = x.new_zeros(2, chords.ends.shape[1])
    straight, squares, previous = x.new_zeros(1, 1), x.new_zeros(1), None
    largest = 0.0
    for pairs, is_first, is_last, y in chords.values():
        if is_first:
            outputs_at_ends = (y[:, 0], y[:, -1]) if is_last else _outputs_at_ends(chords, pairs)
            straight, squares, previous = (
                outputs_at_ends[1] - outputs_at_ends[0],
                x.new_zeros(len(y)),
                None,
            )
            largest = max(largest, float(norm(torch.cat(outputs_at_ends), dim=1).max()))
        y = with_previous_knot(previous, y)
        squares += (intervals * y.diff(dim=1) - straight[:, None]).square().sum((1, 2))
        if not is_last:
            previous = y[:, -1].clone()
            yield pairs.start, None
            continue
        deflections[pairs] = (squares / intervals).sqrt()
        distances[pairs] = norm(straight, dim=1)
        rounding = ROUNDINGS * intervals * torch.finfo(x.dtype).eps * largest
        so_far = deflections[: pairs.stop]
        result = GradientDeflection(
            deflections=so_far.masked_fill(so_far <= rounding, 0),
            distances=distances[: pairs.stop],
            knots=chords.knots,
            outputs=chords.probe.outputs,
            seed=seed,
            coarse=chords.coarse,
        )
        yield pairs.stop, result


def _outputs_at_ends(
    chords: Chords, pairs: slice
) -> tuple[Float[Tensor, "m c"], Float[Tensor, "m c"]]:
    """Return the outputs at both ends of chords."""
    x, ends = chords.x, chords.ends[:, pairs].to(chords.x.device)
    start, stop = (values(chords.probe.f, x[end], rows=chords.rows) for end in ends)
    return start, stop
