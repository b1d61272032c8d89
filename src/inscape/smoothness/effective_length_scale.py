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
from inscape.smoothness._length_scale_intervals import bootstrap_interval, process_interval
from inscape.smoothness._line_moments import (
    DOUBLE_BACKWARD,
    Moments,
    concatenated,
    expected_variance,
    likeliest_process,
    line_moments,
    scale,
)
from inscape.smoothness.chords import Stage, in_stages, stages

#: The longest scale that can be identified, in multiples of the size of the data.
LONGEST = 10.0
#: Knots of a first, coarse result: each costs a double backward pass.
COARSE = 3
#: Derivatives that explain a smaller fraction of the differences between knots missed jumps.
EXPLAINED = 0.5


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EffectiveLengthScale(Result):
    r"""Length scale of a function: from its moments along lines, and from a Gaussian process.

    ``variances`` and ``slopes`` are, for each line and output, the variance of the values and the
    mean square of the slope (over the whole line, so that both have the unit of the output).
    ``scale`` is estimated from all outputs and ``by_output`` from each alone. ``interval`` is the
    95% confidence interval of this function's scale (bootstrap over lines); ``source``, wider, that
    of a process of which the function is one draw. Where ``scale`` equals ``longest``, the function
    is nearly straight over the data: its own scale is at least that, but a process of a much
    shorter scale has such draws too, and ``source`` has no upper end.

    ``process`` is the length scale by another definition: that of the Gaussian process with noise
    of maximum likelihood for sampled values. ``unexplained`` is the fraction of their variance that
    this process attributes to noise. Both are None if not requested, and where the scale is not
    identified: no process is likelier than noise, or the likelihood grows with the scale. Only for
    draws of such a process do ``scale`` and ``process`` estimate one number; a function that is
    rough in one place and smooth in another has two different ones. Even for draws ``process`` is
    often outside of ``interval``, which is over other lines through the same function: it is more
    precise, and somewhat high (of ten draws each, ten scales long, 12% on average in one dimension,
    and 6% in two, three scales wide; 18 of 20 were above).

    Unlike a process, a periodic function has no component slower than its period: the scale of
    :math:`\sin \omega x` tends to :math:`1 / \omega` on long lines, is 10% longer on lines of a few
    dozen times that, and no interval is meant to contain :math:`1 / \omega`.
    """

    range: ClassVar[Range] = NONNEGATIVE
    nonfinite: ClassVar[Mapping[str, str]] = {
        "source": "no upper end where the function is nearly straight",
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
        """Tell whether the function is too close to affine for its scale to be identified."""
        return self.value >= self.longest

    @property
    def size(self) -> float:
        """Return the size of the data: the root mean square length of the lines."""
        return float(self.lengths.square().mean().sqrt())

    def expected(self, scale: float | None = None) -> Float64[Tensor, " lines"]:
        """Return the standard deviation of a process along each line with the same mean slope.

        Args:
            scale: Length scale of the process; by default the estimated one.
        """
        positive = self.lengths > 0
        q = (self.lengths[positive] / (self.value if scale is None else scale)).square()
        ratio = torch.zeros_like(self.lengths)
        ratio[positive] = torch.from_numpy(expected_variance(q.numpy(), self.knots)) / q
        return (ratio * self.slopes.sum(1)).sqrt()

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
        """Return the length scale; a lower bound where the function is nearly straight."""
        basis = f"{len(self.lengths)} lines of size {self.size:.3g}"
        if self.process is not None:
            basis += f"; process, otherwise defined, {self.process:.3g}"
        if self.straight:
            return Summary(
                value=self.longest, kind="lower bound", basis=f"{basis}; as good as straight"
            )
        low, high = self.interval.tolist()
        low, high = min(low, self.value), max(high, self.value)  # a few lines may be equal
        return Summary(value=self.value, kind="estimate", basis=basis, low=low, high=high)


Answer = EffectiveLengthScale | NotApplicable
Lines = tuple[Int64[Tensor, "2 lines"], Float64[Tensor, " lines"]]


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
    the same ratio of both, invariant to scaling and shifting of the output. Outputs are pooled,
    weighted by their variance. Derivatives are exact up to rounding.

    Wherever the scale would exceed ten times the size of the data, as for an affine function, the
    result is a lower bound. Else an estimate, with two confidence intervals: over lines, and over
    draws of a process (a draw over a distance below its scale is often nearly straight). Costs
    ``lines * knots`` evaluations with a directional derivative.

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
    probed = probe(f, x)
    probed.need_gradient()
    checks.points(x)
    draws = _drawn_lines(len(x), lines, seed)

    def measure(stage: Stage) -> Iterator[tuple[int, Answer | None]]:
        fit = process and stage == fine
        return _growing_results(probed, x, draws, stage, resamples, seed, memory, process=fit)

    fine = Stage(lines, knots)
    batch_size = probed.rows(memory // DOUBLE_BACKWARD, gradients=1)
    results: Iterator[Answer] = in_stages(measure, stages(fine, batch_size, coarse_knots=COARSE))
    yield from results


def _drawn_lines(points: int, lines: int, seed: int) -> Lines:
    """Return the indices of both ends of random lines, and the offset of the knots on each."""
    ends = draw_pair_numbers(points, lines, seed=seed)
    return ends, torch.rand(lines, generator=generator(seed + 1), dtype=torch.float64)


def _growing_results(
    probed: Probe,
    x: Float[Tensor, "n *d"],
    draws: Lines,
    stage: Stage,
    resamples: int,
    seed: int,
    memory: int,
    *,
    process: bool,
) -> Iterator[tuple[int, Answer | None]]:
    """Yield a result whenever the number of lines has doubled, and None after other batches."""
    count, knots, _ = stage
    ends, starts = draws[0][:, :count], draws[1][:count]
    batches: list[Moments] = []
    done = reported = 0
    for moments in line_moments(probed, x, ends, starts, knots, memory=memory):
        batches += [moments] if moments is not None else []
        done += len(moments.lengths) if moments is not None else 0
        if moments is None or (done < count and not (stoppable() and done >= max(2, 2 * reported))):
            yield done, None
            continue
        lines, reported = _Lines(concatenated(batches), x, ends, starts), done
        result = lines.result(resamples, seed)
        yield done, result
    if process and isinstance(result, EffectiveLengthScale):
        scale, unexplained = lines.process(seed)
        yield done, replace(result, process=scale, unexplained=unexplained)


class _Lines:
    """Lines through the data with the moments of the function along them."""

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
        reason = _reason_not_applicable(moments)
        if reason is not None:
            return NotApplicable(what="effective_length_scale", reason=reason)
        _, knots, outputs = moments.values.shape
        longest = LONGEST * float(moments.lengths.square().mean().sqrt())
        value = scale(moments.lengths, moments.variances, moments.slopes, knots, longest)
        low, high = bootstrap_interval(moments, value, longest, resamples=resamples, seed=seed + 2)
        lines = self._a, self._b, self._starts
        source = process_interval(moments, *lines, value, longest, seed=seed + 3)
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
        """Return length scale and noise fraction of the Gaussian process of maximum likelihood."""
        return likeliest_process(self._moments, self._a, self._b, self._starts, seed=seed)


def _reason_not_applicable(moments: Moments) -> str | None:
    if not float(moments.lengths.max()) > 0:
        return "all points are the same, so that there are no lines between them: pass more data"
    if not float(moments.variances.sum()) > 0:
        return "the function is constant along all lines, so that it has no length scale"
    if float(moments.slopes.sum()) < EXPLAINED * float(moments.steps.sum()):
        return (
            "the function has jumps that its derivatives miss: measure the outputs before they "
            "are rounded, or raise knots"
        )
    return None
