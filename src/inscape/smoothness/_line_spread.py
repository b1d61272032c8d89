"""How far a length scale would move: between other lines, and between other draws of a process."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import generator
from inscape._core.result import Z95, student
from inscape.smoothness._line_moments import SHORTEST, Moments, coordinates, scale, spread, times

#: Length scales of the table, in units of the size of the data.
GRID = np.geomspace(1e-5, 100, 281)
#: Draws of a process, each a sum of so many waves.
DRAWS, WAVES = 40, 64


def between_lines(
    moments: Moments, value: float, longest: float, *, resamples: int, seed: int
) -> tuple[float, float]:
    """Return the interval of 95% of the length scale when lines are drawn again and again.

    That of the bootstrap, in logarithms, widened as Student's t is over the normal distribution:
    resamples of few lines differ too little.
    """
    lines, knots = moments.values.shape[:2]
    squares = moments.lengths.square()
    grid = GRID * float(squares.mean().sqrt())
    drawn = torch.randint(lines, (resamples, lines), generator=generator(seed))
    drawn += lines * torch.arange(resamples)[:, None]
    counts = drawn.flatten().bincount(minlength=resamples * lines).reshape(resamples, -1).double()
    counts = counts[counts @ squares > 0]  # lines without a length say nothing
    if not len(counts):
        return SHORTEST * longest, longest
    ratios = (counts @ moments.variances.sum(1)) / (counts @ moments.slopes.sum(1))
    table = np.stack([spread(squares.numpy() / g**2, knots) * g**2 for g in grid], axis=1)
    expected = (counts @ torch.from_numpy(table)) / (counts @ squares)[:, None]
    found = [
        np.interp(math.log(max(ratio, 1e-300)), row, np.log(grid))
        for ratio, row in zip(ratios.nan_to_num(0.0).tolist(), expected.log().numpy(), strict=True)
    ]
    low, high = np.quantile(np.minimum(np.exp(found), longest), [0.025, 0.975]) / value
    wider = student(lines) / Z95 * math.sqrt(lines / (lines - 1))
    return value * min(low, 1.0) ** wider, min(value * max(high, 1.0) ** wider, longest)


def between_draws(
    moments: Moments,
    a: Float[Tensor, "lines *d"],
    b: Float[Tensor, "lines *d"],
    starts: Float64[Tensor, " lines"],
    value: float,
    longest: float,
    *,
    seed: int,
) -> tuple[float, float]:
    """Return the interval of 95% of the scale of a process of which the function were one draw.

    Processes of the scale that was found are drawn along the same lines; the scatter of what is
    found of them is the error of one. Several outputs count as so many draws as they have
    directions in which they vary. Where some draws are as good as straight, that scatter has no
    end: then those scales are sought of which hardly any draw has a scale as long, or as short.
    """
    draws = _Draws(moments.lengths, a, b, starts, moments.values.shape[1], seed=seed)
    centred = moments.values.flatten(0, 1) - moments.values.flatten(0, 1).mean(0)
    centred /= _power_of_two(float(centred.abs().max()))  # fourth powers overflow soon
    covariance = centred.T @ centred
    independent = float(covariance.trace() ** 2 / covariance.square().sum())
    if value < longest:
        found = [draws.scale(*moment, longest) for moment in draws.moments(value, 1)]
        if max(found) < longest:
            half = Z95 * float(np.std(np.log(found), ddof=1)) / math.sqrt(independent)
            return value * math.exp(-half), value * math.exp(half)
    return draws.ends(min(value, longest), longest, max(1, round(independent)))


def _power_of_two(value: float) -> float:
    """Return the power of two next below a number: to divide by it does not round; 1 for zero."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1) if value > 0 else 1.0


class _Draws:
    """Draws of processes along lines: the same random numbers for every length scale."""

    def __init__(
        self,
        lengths: Float64[Tensor, " lines"],
        a: Float[Tensor, "lines *d"],
        b: Float[Tensor, "lines *d"],
        starts: Float64[Tensor, " lines"],
        knots: int,
        *,
        seed: int,
    ) -> None:
        self._lengths, self._knots, self._seed = lengths, knots, seed
        both = torch.cat([end.double().flatten(1).cpu() for end in (a, b - a)])
        # waves go in all directions alike, so that only inner products count
        self._start, self._way = coordinates(both).chunk(2)
        self._t = times(starts, knots)[..., None]

    def moments(self, length_scale: float, outputs: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield variances and squared slopes on all lines, of one draw after the other."""
        rng = generator(self._seed)
        start, way = self._start / length_scale, self._way / length_scale
        for _ in range(DRAWS):
            waves = torch.randn(start.shape[1], WAVES, generator=rng, dtype=torch.float64)
            turn = torch.rand(WAVES, generator=rng, dtype=torch.float64) * (2 * math.pi)
            high = torch.randn(WAVES, outputs, generator=rng, dtype=torch.float64)
            pace = (way @ waves)[:, None]
            phase = (start @ waves + turn)[:, None] + self._t * pace
            y, dy = phase.cos() @ high, (phase.sin() * pace) @ high
            yield y.var(1, correction=0), dy.square().mean(1)

    def scale(self, variances: Tensor, slopes: Tensor, longest: float) -> float:
        """Return the length scale that is found of a draw."""
        return scale(self._lengths, variances, slopes, self._knots, longest)

    def ends(self, value: float, longest: float, outputs: int) -> tuple[float, float]:
        """Return the scales below and above which no draw is found at ``value`` or beyond it."""
        q = (self._lengths / value).square().numpy()
        border = float(spread(q, self._knots).sum() / q.sum())

        def ratios(length_scale: float) -> Iterator[float]:
            for variances, slopes in self.moments(length_scale, outputs):
                yield float(variances.sum() / slopes.sum())

        low = high = value
        while low > SHORTEST * longest and any(ratio >= border for ratio in ratios(low)):
            low /= 2
        while high < longest and any(ratio <= border for ratio in ratios(high)):
            high *= 2
        return low, high if high < longest else math.inf
