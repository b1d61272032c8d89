"""Confidence intervals of a length scale: over lines, and over draws of a Gaussian process."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import generator
from inscape._core.result import Z95, student
from inscape.smoothness._line_moments import (
    SHORTEST,
    Moments,
    coordinates,
    expected_variance,
    knot_positions,
    scale,
)

#: Length scales of the table, in units of the size of the data.
GRID = np.geomspace(1e-5, 100, 281)
#: Draws of a Gaussian process, and random Fourier features of each.
DRAWS, FEATURES = 40, 64


def bootstrap_interval(
    moments: Moments, value: float, longest: float, *, resamples: int, seed: int
) -> tuple[float, float]:
    """Return the bootstrap 95% confidence interval of the length scale over lines.

    In logarithms, widened as Student's t is over the normal distribution: resamples of few lines
    differ too little.
    """
    lines, knots = moments.values.shape[:2]
    squares = moments.lengths.square()
    grid = GRID * float(squares.mean().sqrt())
    resampled = torch.randint(lines, (resamples, lines), generator=generator(seed))
    resampled += lines * torch.arange(resamples)[:, None]
    counts = (
        resampled.flatten().bincount(minlength=resamples * lines).reshape(resamples, -1).double()
    )
    counts = counts[counts @ squares > 0]  # lines of length zero carry no information
    if not len(counts):
        return SHORTEST * longest, longest
    ratios = (counts @ moments.variances.sum(1)) / (counts @ moments.slopes.sum(1))
    log_grid, squared_lengths = np.log(grid), squares.numpy()
    table = np.stack(
        [expected_variance(squared_lengths / length**2, knots) * length**2 for length in grid],
        axis=1,
    )
    expected = (counts @ torch.from_numpy(table)) / (counts @ squares)[:, None]
    log_scales = [
        np.interp(math.log(max(ratio, 1e-300)), log_ratios, log_grid)
        for ratio, log_ratios in zip(
            ratios.nan_to_num(0.0).tolist(), expected.log().numpy(), strict=True
        )
    ]
    low, high = np.quantile(np.minimum(np.exp(log_scales), longest), [0.025, 0.975]) / value
    widening = student(lines) / Z95 * math.sqrt(lines / (lines - 1))
    return value * min(low, 1.0) ** widening, min(value * max(high, 1.0) ** widening, longest)


def process_interval(
    moments: Moments,
    start: Float[Tensor, "lines *d"],
    stop: Float[Tensor, "lines *d"],
    starts: Float64[Tensor, " lines"],
    value: float,
    longest: float,
    *,
    seed: int,
) -> tuple[float, float]:
    """Return the 95% confidence interval of the scale of a process that drew the function.

    A parametric bootstrap: processes of the estimated scale are drawn along the same lines, and
    the standard deviation of their estimates is the standard error. The outputs count as their
    effective number of independent draws. Where some draws are nearly straight, that standard
    deviation is unbounded: the interval then ends at the scales of which hardly any draw has an
    estimate as long, or as short.
    """
    draws = _ProcessDraws(moments.lengths, start, stop, starts, moments.values.shape[1], seed=seed)
    centred = moments.values.flatten(0, 1) - moments.values.flatten(0, 1).mean(0)
    centred /= _power_of_two(float(centred.abs().max()))  # fourth powers overflow soon
    covariance = centred.T @ centred
    effective_draws = float(covariance.trace() ** 2 / covariance.square().sum())
    if value < longest:
        scales = [draws.scale(*draw, longest) for draw in draws.moments(value, 1)]
        if max(scales) < longest:
            half_width = Z95 * float(np.std(np.log(scales), ddof=1)) / math.sqrt(effective_draws)
            return value * math.exp(-half_width), value * math.exp(half_width)
    return draws.ends(min(value, longest), longest, max(1, round(effective_draws)))


def _power_of_two(value: float) -> float:
    """Return the largest power of two up to a number (division by it is exact); 1 for zero."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1) if value > 0 else 1.0


class _ProcessDraws:
    """Draws of Gaussian processes along lines, with common random numbers for all scales."""

    def __init__(
        self,
        lengths: Float64[Tensor, " lines"],
        start: Float[Tensor, "lines *d"],
        stop: Float[Tensor, "lines *d"],
        starts: Float64[Tensor, " lines"],
        knots: int,
        *,
        seed: int,
    ) -> None:
        self._lengths, self._knots, self._seed = lengths, knots, seed
        points = torch.cat([end.double().flatten(1).cpu() for end in (start, stop - start)])
        # the kernel is isotropic, so that only inner products matter
        self._start, self._direction = coordinates(points).chunk(2)
        self._t = knot_positions(starts, knots)[..., None]

    def moments(self, length_scale: float, outputs: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield variances and mean squared slopes along all lines, draw by draw."""
        rng = generator(self._seed)
        start, direction = self._start / length_scale, self._direction / length_scale
        for _ in range(DRAWS):
            waves = torch.randn(start.shape[1], FEATURES, generator=rng, dtype=torch.float64)
            phases = torch.rand(FEATURES, generator=rng, dtype=torch.float64) * (2 * math.pi)
            amplitudes = torch.randn(FEATURES, outputs, generator=rng, dtype=torch.float64)
            frequencies = (direction @ waves)[:, None]
            angles = (start @ waves + phases)[:, None] + self._t * frequencies
            y, slopes = angles.cos() @ amplitudes, (angles.sin() * frequencies) @ amplitudes
            yield y.var(1, correction=0), slopes.square().mean(1)

    def scale(self, variances: Tensor, slopes: Tensor, longest: float) -> float:
        """Return the estimated length scale of a draw."""
        return scale(self._lengths, variances, slopes, self._knots, longest)

    def ends(self, value: float, longest: float, outputs: int) -> tuple[float, float]:
        """Return the scales beyond which no draw has an estimate of ``value``."""
        q = (self._lengths / value).square().numpy()
        threshold = float(expected_variance(q, self._knots).sum() / q.sum())

        def ratios(length_scale: float) -> Iterator[float]:
            for variances, slopes in self.moments(length_scale, outputs):
                yield float(variances.sum() / slopes.sum())

        low = high = value
        while low > SHORTEST * longest and any(ratio >= threshold for ratio in ratios(low)):
            low /= 2
        while high < longest and any(ratio <= threshold for ratio in ratios(high)):
            high *= 2
        return low, high if high < longest else math.inf
