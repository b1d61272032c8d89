"""Gradient deflection: how far the slope strays from the straight way between two data points."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from inscape._core import Result, Row, Summary, checks, instrument, mean_summary
from inscape._core.anytime import anytime
from inscape._core.checks import Function
from inscape._core.functional import MEMORY, Probe, norm, probe
from inscape._core.inference import no_grad
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape._core.sampling import draw_pair_numbers
from inscape.smoothness.segments import (
    COARSE_KNOTS,
    Stage,
    in_stages,
    joined,
    stages,
    values,
    walks,
)

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

    def summary(self) -> Summary:
        """Return the mean over the chords, a lower bound where it is coarse."""
        basis = f"{len(self.deflections)} pairs x {self.knots} knots"
        kind: Kind = "lower bound" if self.coarse else "estimate"
        return mean_summary(self.deflections, kind=kind, basis=basis)


@instrument(
    reads="function",
    cost="instant",
    work=lambda n, c: 102_000,
    samples="pairs",
    meaning="Between two data points, the speed at which the output changes strays by {value} from "
    "the even pace of the straight way.",
    cites="kubo2019implicit, our reading",
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
    found = probe(f, x)
    rows, ends = found.rows(memory), draw_pair_numbers(len(x), pairs, seed=seed)

    def measure(stage: Stage) -> Iterator[tuple[int, GradientDeflection | None]]:
        coarse = stage.places < knots
        return _walked(found, x, ends[:, : stage.samples], stage.places, rows, seed, coarse=coarse)

    yield from in_stages(measure, stages(Stage(pairs, knots), rows, coarse_knots=COARSE_KNOTS))


def _walked(
    found: Probe,
    x: Tensor,
    ends: Int64[Tensor, "2 pairs"],
    knots: int,
    rows: int,
    seed: int,
    *,
    coarse: bool,
) -> Iterator[tuple[int, GradientDeflection | None]]:
    """Yield the deflections of the chords so far, after each batch; None within a chord."""
    deflections, distances = x.new_zeros(2, ends.shape[1])
    straight, squares, last = x.new_zeros(1, 1), x.new_zeros(1), None
    passed, largest = 0, 0.0
    for some, begins, at in walks(x, ends, knots, rows=rows):
        y = found.f(at.flatten(0, 1)).reshape(*at.shape[:2], -1)
        if begins:
            whole = at.shape[1] == knots
            tips = (y[:, 0], y[:, -1]) if whole else _tips(found, x, ends[:, some], rows)
            straight, squares, last, passed = tips[1] - tips[0], x.new_zeros(len(y)), None, 0
            largest = max(largest, float(norm(torch.cat(tips), dim=1).max()))
        y, passed = joined(last, y), passed + at.shape[1]
        squares += ((knots - 1) * y.diff(dim=1) - straight[:, None]).square().sum((1, 2))
        if passed < knots:
            last = y[:, -1].clone()  # y may lie where the next knots go
            yield some.start, None
            continue
        deflections[some] = (squares / (knots - 1)).sqrt()
        distances[some] = norm(straight, dim=1)
        rounding = ROUNDINGS * (knots - 1) * torch.finfo(x.dtype).eps * largest
        so_far = deflections[: some.stop]
        result = GradientDeflection(
            deflections=so_far.masked_fill(so_far <= rounding, 0),
            distances=distances[: some.stop],
            knots=knots,
            outputs=found.outputs,
            seed=seed,
            coarse=coarse,
        )
        yield some.stop, result


def _tips(
    found: Probe, x: Tensor, ends: Int64[Tensor, "2 m"], rows: int
) -> tuple[Float[Tensor, "m c"], Float[Tensor, "m c"]]:
    """Return the outputs at both ends of some chords."""
    start, stop = (values(found.f, x[end], rows=rows) for end in ends.to(x.device))
    return start, stop
