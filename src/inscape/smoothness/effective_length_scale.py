"""Effective length scale: over what distance the function changes by as much as it varies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.anytime import anytime, stoppable
from inscape._core.checks import Function
from inscape._core.inference import no_grad
from inscape._core.result import NONNEGATIVE, Range
from inscape._core.sampling import draw_pair_numbers, generator
from inscape.functional.jacobians import MEMORY, Probe, probe
from inscape.smoothness._line_moments import (
    DOUBLE_BACKWARD,
    Moments,
    along,
    best_process,
    joined,
    scale,
    spread,
)
from inscape.smoothness._line_spread import between_draws, between_lines
from inscape.smoothness.segments import Stage, in_stages, stages

#: Scales beyond so many times the size of the data cannot be told from each other.
LONGEST = 10.0
#: Knots of a first, coarse answer: each takes a backward pass that is differentiated.
COARSE = 3
#: Slopes that account for a smaller share of the steps between knots have missed jumps.
SEEN = 0.5


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EffectiveLengthScale(Result):
    """The length scale of a function, twice: by its moments along lines, and by a process.

    ``variances`` and ``slopes`` are, for each line and output, the variance of the values and the
    mean square of the slope (over the whole line, so that both have the unit of the output).
    ``scale`` is what they say together and ``by_output`` what each output says alone. ``interval``
    is that of 95% of this function's scale (bootstrap over lines); ``source``, wider, that of a
    process of which it were one draw. Where ``scale`` equals ``longest``, the function is as good
    as straight over the data: its own scale is at least that, but a process of a scale far below
    has such draws too, and ``source`` has no upper end.
    ``process`` is the length scale of the Gaussian process that explains sampled values best, and
    ``unexplained`` the share of their variance that it takes for noise; None if not asked for, and
    where the values do not tell it: no process is likelier than noise, or the longer, the likelier.
    """

    range: ClassVar[Range] = NONNEGATIVE
    nonfinite: ClassVar[Mapping[str, str]] = {
        "source": "no upper end where the function is as good as straight",
    }

    scale: Float64[Tensor, ""]
    interval: Float64[Tensor, " 2"]
    source: Float64[Tensor, " 2"]
    longest: float
    by_output: Float64[Tensor, " c"]
    lengths: Float64[Tensor, " lines"]
    variances: Float64[Tensor, "lines c"]
    slopes: Float64[Tensor, "lines c"]
    process: float | None
    unexplained: float | None
    knots: int
    outputs: int
    seed: int

    @property
    def value(self) -> float:
        """Return the length scale."""
        return float(self.scale)

    @property
    def straight(self) -> bool:
        """Tell whether the function bends too little for its scale to be known."""
        return self.value >= self.longest

    @property
    def size(self) -> float:
        """Return the size of the data: the root mean square length of the lines."""
        return float(self.lengths.square().mean().sqrt())

    def expected(self, scale: float | None = None) -> Float64[Tensor, " lines"]:
        """Return the deviation that a process would have along each line, from the slope there.

        Args:
            scale: Length scale of the process; by default the one that was found.
        """
        long = self.lengths > 0
        q = (self.lengths[long] / (self.value if scale is None else scale)).square()
        share = torch.zeros_like(self.lengths)
        share[long] = torch.from_numpy(spread(q.numpy(), self.knots)) / q
        return (share * self.slopes.sum(1)).sqrt()

    def rows(self) -> Iterator[Row]:
        """Yield one row for each line and output."""
        for line, length in enumerate(self.lengths.tolist()):
            for c in range(self.outputs):
                yield {
                    "line": line,
                    "output": c,
                    "length": length,
                    "variance": float(self.variances[line, c]),
                    "square_slope": float(self.slopes[line, c]),
                }

    def summary(self) -> Summary:
        """Return the length scale; a lower bound where the function is as good as straight."""
        basis = f"{len(self.lengths)} lines of size {self.size:.3g}"
        if self.process is not None:
            basis += f"; process, otherwise defined, {self.process:.3g}"
        if self.straight:
            return Summary(
                value=self.longest, kind="lower bound", basis=f"{basis}; as good as straight"
            )
        low, high = self.interval.tolist()
        low, high = min(low, self.value), max(high, self.value)  # a few lines may all be alike
        return Summary(value=self.value, kind="estimate", basis=basis, low=low, high=high)


Answer = EffectiveLengthScale | NotApplicable


@instrument(
    reads="function",
    larger="smoother",
    cost="seconds",
    work=lambda n, c: 100 * 16 * 6,
    setup=0.2,
    samples="lines",
    meaning="The function varies as one of length scale {value} does: points that are much nearer "
    "to each other have nearly the same output, points that are much farther have little in "
    "common.",
    cites="klindt2023controlling, section 3.3; rasmussen2006gaussian, section 4.1; our definition",
    least_rows=2,
    exempt=("process", "unexplained"),  # a search ends elsewhere within its tolerance
)
@anytime
@no_grad
def effective_length_scale(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    lines: int = 100,
    knots: int = 16,
    process: bool = True,
    resamples: int = 500,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[EffectiveLengthScale | NotApplicable]:
    r"""Measure the length scale of ``f`` along random lines through the data.

    .. math:: \frac{\sum_i \mathrm{Var}_t \, f(p_i(t))}{\sum_i \mathbb{E}_t \, f'(p_i(t))^2}
              = \frac{\sum_i 1 - \kappa_i(\ell)}{\sum_i |b_i - a_i|^2 / \ell^2}, \quad
              p_i(t) = a_i + t (b_i - a_i)

    A function that is drawn from a Gaussian process with kernel
    :math:`a \exp(-|x - z|^2 / 2 \ell^2)` has slopes of variance :math:`a / \ell^2` in every
    direction. On a line of finite length its values vary by :math:`a` less their mean covariance,
    :math:`a \kappa_i(\ell)`. The length scale of any other function is that of the processes with
    the same ratio of both. A scaled or shifted output has the same. Many outputs are taken
    together, each with the weight of its variance. Slopes are exact up to rounding.

    A straight function has the largest ratio that a process can have; then, and wherever
    the scale would exceed ten times the size of the data, this is said and the result is a lower
    bound of the function's own scale. An estimate, with two intervals: of other lines through the
    same function, and of other draws of a process. One draw over a stretch no longer than the
    scale says little of it: some are as good as straight. Costs ``lines * knots`` evaluations with
    slope.

    A periodic function has nothing slower than its period, which a process has: on long lines the
    scale of :math:`\sin \omega x` tends to :math:`1 / \omega`, on lines of a few dozen times that
    it is 10% longer, and no interval is meant to hold :math:`1 / \omega`.

    A second answer, by another definition, is the length scale of the Gaussian process with noise
    that makes some of the values likeliest. Only for draws of such a process are both estimates of
    one number; a function that is rough in one place and smooth in another has two different ones.
    Even for draws this one is often outside of the interval, which is for other lines through the
    same function: it is the sharper one, and somewhat high (of ten draws each, ten scales long, 12%
    on average in one dimension, and 6% in two, three scales wide; 18 of 20 were above).

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Points; a line joins two of them, drawn with replacement.
        lines: Number of lines.
        knots: Points on each line, evenly spaced, with a random start.
        process: Whether to fit the Gaussian process as well.
        resamples: Resamples of the bootstrap over lines.
        seed: Seed of all draws.
        memory: Bytes that the working set may take.

    >>> x = torch.linspace(-20, 20, 50, dtype=torch.float64)[:, None]
    >>> waves = effective_length_scale(lambda x: torch.sin(5 * x), x, process=False)
    >>> round(waves.value, 1)
    0.2
    """
    checks.whole(2, lines=lines, knots=knots)
    checks.whole(1, resamples=resamples, memory=memory)
    found = probe(f, x)
    found.need_gradient()
    checks.points(x)
    ends = draw_pair_numbers(len(x), lines, seed=seed)
    starts = torch.rand(lines, generator=generator(seed + 1), dtype=torch.float64)

    def measure(stage: Stage) -> Iterator[tuple[int, Answer | None]]:
        fit = process and stage == fine
        return _walked(found, x, (ends, starts), stage, resamples, seed, memory, process=fit)

    fine = Stage(lines, knots)
    rows = found.rows(memory // DOUBLE_BACKWARD, gradients=1)
    plan = stages(fine, rows, coarse_knots=COARSE)
    answers: Iterator[Answer] = in_stages(measure, plan)
    yield from answers


def _walked(
    found: Probe,
    x: Float[Tensor, "n *d"],
    drawn: tuple[Int64[Tensor, "2 lines"], Float64[Tensor, " lines"]],
    stage: Stage,
    resamples: int,
    seed: int,
    memory: int,
    *,
    process: bool,
) -> Iterator[tuple[int, Answer | None]]:
    """Yield what twice as many lines say as the time before, and None after other batches."""
    count, knots, _ = stage
    ends, starts = drawn[0][:, :count], drawn[1][:count]
    parts: list[Moments] = []
    done = said = 0
    for part in along(found, x, ends, starts, knots, memory=memory):
        parts += [part] if part is not None else []
        done += len(part.lengths) if part is not None else 0
        if part is None or (done < count and not (stoppable() and done >= max(2, 2 * said))):
            yield done, None
            continue
        walked, said = _Lines(joined(parts), x, ends, starts), done
        result = walked.result(resamples, seed)
        yield done, result
    if process and isinstance(result, EffectiveLengthScale):
        scale, unexplained = walked.process(seed)
        yield done, replace(result, process=scale, unexplained=unexplained)


class _Lines:
    """The lines that were walked along so far, and what the function did there."""

    def __init__(
        self,
        moments: Moments,
        x: Float[Tensor, "n *d"],
        ends: Int64[Tensor, "2 lines"],
        starts: Float64[Tensor, " lines"],
    ) -> None:
        self._moments, self._starts = moments, starts[: len(moments.lengths)]
        first, second = ends[:, : len(moments.lengths)].to(x.device)
        self._a, self._b = x[first], x[second]

    def result(self, resamples: int, seed: int) -> EffectiveLengthScale | NotApplicable:
        """Return the length scale with its intervals, without the process."""
        moments = self._moments
        reason = _reason_not(moments)
        if reason is not None:
            return NotApplicable(what="effective_length_scale", reason=reason)
        _, knots, outputs = moments.values.shape
        longest = LONGEST * float(moments.lengths.square().mean().sqrt())
        value = scale(moments.lengths, moments.variances, moments.slopes, knots, longest)
        low, high = between_lines(moments, value, longest, resamples=resamples, seed=seed + 2)
        lines = self._a, self._b, self._starts
        source = between_draws(moments, *lines, value, longest, seed=seed + 3)
        by_output = [
            scale(moments.lengths, variances[:, None], slopes[:, None], knots, longest)
            for variances, slopes in zip(moments.variances.T, moments.slopes.T, strict=True)
        ]
        return EffectiveLengthScale(
            scale=torch.tensor(value, dtype=torch.float64),
            interval=torch.tensor([low, high], dtype=torch.float64),
            source=torch.tensor(source, dtype=torch.float64),
            longest=longest,
            by_output=torch.tensor(by_output, dtype=torch.float64),
            lengths=moments.lengths,
            variances=moments.variances,
            slopes=moments.slopes,
            process=None,
            unexplained=None,
            knots=knots,
            outputs=outputs,
            seed=seed,
        )

    def process(self, seed: int) -> tuple[float, float] | tuple[None, None]:
        """Return length scale and fraction of noise of the likeliest Gaussian process."""
        return best_process(self._moments, self._a, self._b, self._starts, seed=seed)


def _reason_not(moments: Moments) -> str | None:
    if not float(moments.lengths.max()) > 0:
        return "all points are the same, so that there are no lines between them: pass more data"
    if not float(moments.variances.sum()) > 0:
        return "the function is constant along all lines, so that it has no length scale"
    if float(moments.slopes.sum()) < SEEN * float(moments.steps.sum()):
        return (
            "the function moves by steps that its slopes do not see: measure what stands before "
            "the rounding, or raise knots"
        )
    return None
