"""Gradient deflection: how far the slope strays from the straight way between two data points."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import Result, Row, Summary, checks, draw_pairs, instrument, mean_summary
from inscape._core.checks import Function
from inscape._core.functional import MEMORY, norm, probe
from inscape._core.result import NONNEGATIVE, Range
from inscape.smoothness.segments import values, walks

#: Slopes of secants carry the rounding of the outputs; of affine maps in 3072 inputs up to 3.5.
ROUNDINGS = 8


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GradientDeflection(Result):
    """Deviation of the slope along each of the chords from the slope of the straight way."""

    range: ClassVar[Range] = NONNEGATIVE

    deflections: Float[Tensor, " pairs"]
    distances: Float[Tensor, " pairs"]
    knots: int
    outputs: int
    seed: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each chord: its deflection and the straight way between its ends."""
        pairs = zip(self.deflections.tolist(), self.distances.tolist(), strict=True)
        for deflection, distance in pairs:
            yield {"gradient_deflection": deflection, "straight": distance}

    def summary(self) -> Summary:
        """Return the mean over the chords."""
        basis = f"{len(self.deflections)} pairs x {self.knots} knots"
        return mean_summary(self.deflections, kind="estimate", basis=basis)


@instrument(
    reads="function",
    cost="instant",
    work=lambda n, c: 102_000,
    samples="pairs",
    meaning="Between two data points, the speed at which the output changes strays by {value} from "
    "the even pace of the straight way.",
    cites="kubo2019implicit, our reading",
)
@torch.no_grad()
def gradient_deflection(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    pairs: int = 1000,
    knots: int = 100,
    seed: int = 0,
    memory: int = MEMORY,
) -> GradientDeflection:
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
    found = probe(f, x)
    a, b = draw_pairs(x, pairs, seed=seed)
    ends = [values(found.f, end, rows=found.rows(memory)) for end in (a, b)]
    straight = ends[1] - ends[0]
    squares = straight.new_zeros(pairs)
    for some, at in walks(a, b, knots, rows=found.rows(memory)):
        y = found.f(at.flatten(0, 1)).reshape(*at.shape[:2], -1)
        slopes = (knots - 1) * y.diff(dim=1)
        squares[some] += (slopes - straight[some, None]).square().sum((1, 2))
    checks.finite(squares, "pairs")
    deflections = (squares / (knots - 1)).sqrt()
    rounding = torch.finfo(straight.dtype).eps * float(norm(torch.cat(ends), dim=1).max())
    deflections[deflections <= ROUNDINGS * (knots - 1) * rounding] = 0
    return GradientDeflection(
        deflections=deflections,
        distances=norm(straight, dim=1),
        knots=knots,
        outputs=found.outputs,
        seed=seed,
    )
