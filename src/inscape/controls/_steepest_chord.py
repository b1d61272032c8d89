"""Search for the steepest chord: the largest ratio of output to input distance."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isnan

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from inscape._core import generator
from inscape._core.checks import Function
from inscape.functional.jacobians import chunks, jacobians, probe
from inscape.runtime.progress import Bar, progress

#: Chords of the gradient ascent, and its steps.
PAIRS, STEPS = 8, 60
#: Points drawn around the data.
DRAWN = 256
#: Lengths of chords, relative to the standard deviation of the data.
DISTANCES = (1e-2, 1e-4)


#: Outputs up to which Jacobians are complete; beyond that random projections select the starts.
OUTPUTS, SHORTLIST = 24, 4 * PAIRS
#: Fraction of a difference that may be rounding.
ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class Chord:
    """The steepest chord: its slope, both ends, and the relative rounding error of the slope.

    ``jacobian`` is the largest norm of a Jacobian so far.
    """

    slope: float
    pair: Float[Tensor, "2 *d"]
    rounding: float
    jacobian: float

    @property
    def value(self) -> float:
        """Return the slope of the chord; that of the Jacobian where differences are rounding."""
        return self.slope if self.rounding <= ROUNDING else self.jacobian

    @property
    def guaranteed(self) -> float:
        """Return the slope less its rounding error."""
        return self.value * (1 - min(self.rounding, ROUNDING))


def steepest_chords(
    f: Function, x: Float[Tensor, "n *d"], *, memory: int, seed: int
) -> Iterator[Chord]:
    """Yield the steepest chord so far, after each batch.

    Starts at the points where the Jacobian's norm is largest, among the data (in random order) and
    points drawn three times as wide; then both ends of a short chord climb. The chords that are
    tried do not depend on the size of a batch.
    """
    search = _Search(f, x, memory, seed)
    with progress(len(x) + DRAWN + STEPS, label="steepest chord") as bar:
        for _ in search.steps(torch.cat([x, _drawn_around(x, seed)]), bar):
            assert search.best is not None
            yield search.best


def _drawn_around(x: Float[Tensor, "n *d"], seed: int) -> Float[Tensor, "w *d"]:
    """Return normal points with three times the standard deviation of the data."""
    centre = x.mean(0)
    shape = (DRAWN, *x.shape[1:])
    draws = torch.randn(shape, generator=generator(seed), dtype=torch.float64).to(x)
    return centre + 3 * draws * (x - centre).square().mean(0).sqrt()


@dataclass(eq=False)
class _Steepest:
    """The points with the largest Jacobians so far, their norms and leading directions."""

    count: int
    points: Tensor
    norms: Tensor
    directions: Tensor

    def add(self, points: Tensor, matrices: Float[Tensor, "n c D"]) -> None:
        """Add some points with their Jacobians; keep the largest."""
        norms, directions = _leading(matrices)
        norms = torch.cat([self.norms, norms])
        order = norms.argsort(descending=True, stable=True)[: self.count]
        self.norms = norms[order]
        self.points = torch.cat([self.points, points])[order]
        self.directions = torch.cat([self.directions, directions.reshape(points.shape)])[order]


class _Search:
    """Gradient ascent of chords from the points with the largest Jacobians."""

    def __init__(self, f: Function, x: Tensor, memory: int, seed: int) -> None:
        self._f, self._memory, self._seed = f, memory, seed
        self._spread = float(x.std(0, correction=0).norm()) or 1.0
        self._rows = max(1, probe(f, x).rows(memory) // 2)  # with the products, two of each row
        self._largest = 0.0
        self.best: Chord | None = None

    def steps(self, x: Tensor, bar: Bar) -> Iterator[None]:
        """Search from some points; a step is a batch."""
        steepest = yield from self._steepest(x, bar)
        pairs = _around(steepest.points, steepest.directions, DISTANCES[0] * self._spread)
        pairs = yield from self._climb(pairs, bar)
        final = yield from self._steepest(pairs.mean(0), None)
        distance = self._resolvable_distance(final.points, final.norms)
        self._try(_around(final.points, final.directions, distance), far=True)
        yield

    def _steepest(self, x: Tensor, bar: Bar | None) -> Generator[None, None, _Steepest]:
        """Return the points with the largest Jacobians; of many outputs by mixtures of them."""
        c = self._f(x[:1]).numel()
        if c > OUTPUTS and len(x) > SHORTLIST:
            draws = torch.randn(c, OUTPUTS, generator=generator(self._seed), dtype=torch.float64)
            mix = torch.linalg.qr(draws).Q.to(x)
            shortlist = yield from self._scan(
                lambda z: self._f(z).flatten(1) @ mix, x, SHORTLIST, bar
            )
            x, bar = shortlist.points, None
        return (yield from self._scan(self._f, x, PAIRS, bar))

    def _scan(
        self, f: Function, x: Tensor, count: int, bar: Bar | None
    ) -> Generator[None, None, _Steepest]:
        """Return the points with the largest Jacobians; try chords at those of 1, 2, 4, ... points.

        Norms of orthonormal mixtures of outputs are no larger than those of all outputs.
        """
        batch_size = max(1, probe(f, x).rows(self._memory) // 2)
        steepest = _Steepest(count, x[:0], x.new_empty(0), x[:0])
        stages = [2**k for k in range(len(x).bit_length()) if 2**k < len(x)]
        for low, high in pairwise((0, *stages, len(x))):
            for batch in chunks(x[low:high], batch_size):
                steepest.add(batch, jacobians(f, batch).detach())
                low += len(batch)
                if bar:
                    bar.advance(len(batch))
                if low == high:
                    self._largest = max(self._largest, float(steepest.norms[0]))
                    points, directions = steepest.points[:PAIRS], steepest.directions[:PAIRS]
                    near = [
                        _around(points, directions, fraction * self._spread)
                        for fraction in DISTANCES
                    ]
                    self._try(torch.cat(near, 1))
                yield
        return steepest

    def _climb(self, pairs: Tensor, bar: Bar) -> Generator[None, None, Tensor]:
        """Return the best chords of a gradient ascent of the ratio with decreasing steps.

        Every step is made for as many pairs as a batch may have, then for the others.
        """
        best, current = self._ratio(pairs)[0], pairs.clone()
        best_pairs = current.clone()
        for step in range(STEPS):
            step_size = 0.1 * self._spread * (1 - step / STEPS)
            for batch in torch.split(torch.arange(pairs.shape[1]), self._rows):
                current[:, batch] = moved = self._uphill(current[:, batch], step_size)
                ratio, _ = self._ratio(moved)
                better = ratio > best[batch]
                best[batch] = torch.where(better, ratio, best[batch])
                best_pairs[:, batch[better]] = moved[:, better]
                self._try(best_pairs[:, batch])
                yield
            bar.advance()
        return best_pairs

    def _uphill(self, pairs: Tensor, step_size: float) -> Tensor:
        """Return both ends of chords after a step of that length along the ratio's gradient."""
        with torch.enable_grad():
            ends = pairs.detach().requires_grad_()
            distances = (ends[1] - ends[0]).flatten(1).norm(dim=1)
            outputs = (self._f(ends[1]) - self._f(ends[0])).flatten(1).norm(dim=1)
            value = (outputs.clamp(min=1e-300).log() - distances.log()).sum()
            (gradient,) = torch.autograd.grad(value, ends)
        length = gradient.flatten(2).norm(dim=(0, 2)).clamp(min=1e-300)
        moved: Tensor = ends.detach() + step_size * gradient / length.view(
            1, -1, *[1] * (ends.ndim - 2)
        )
        return moved

    def _try(self, pairs: Tensor, *, far: bool = False) -> None:
        """Store the steepest of some chords if it is steeper than the best so far."""
        slopes, noise = self._ratio(pairs)
        if far:  # a function may overflow there
            slopes.nan_to_num_(0.0, 0.0)
        steepest = int((slopes - noise).nan_to_num(-inf).argmax())
        rounding = float(noise[steepest] / slopes[steepest]) if slopes[steepest] > 0 else inf
        chord = Chord(float(slopes[steepest]), pairs[:, steepest].clone(), rounding, self._largest)
        if (
            self.best is None
            or chord.guaranteed > self.best.guaranteed
            or isnan(self.best.guaranteed)
        ):
            self.best = chord

    @torch.no_grad()
    def _ratio(self, pairs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the distance of outputs over that of inputs, 0 at distance 0, and its noise."""
        distances = (pairs[1] - pairs[0]).flatten(1).norm(dim=1)
        ends = [self._outputs(end) for end in pairs]
        difference = (ends[1] - ends[0]).norm(dim=1)
        ratio = torch.where(distances > 0, difference / distances.clamp(min=1e-300), 0.0)
        magnitude = sum(end.norm(dim=1) for end in ends) + ratio * pairs.flatten(2).norm(dim=2).sum(
            0
        )
        return ratio, 4 * torch.finfo(pairs.dtype).eps * magnitude / distances.clamp(min=1e-300)

    @torch.no_grad()
    def _resolvable_distance(self, x: Tensor, norms: Tensor) -> Tensor:
        """Return, for each point, a distance at which differences are far above their rounding."""
        outputs = self._outputs(x).norm(dim=1)
        magnitude = outputs / norms.clamp(min=1e-300) + x.flatten(1).norm(dim=1)
        distance = (32 * torch.finfo(x.dtype).eps / ROUNDING * magnitude).clamp(max=1e12)
        reshaped: Tensor = distance.view(-1, *[1] * (x.ndim - 1))
        return reshaped

    def _outputs(self, x: Tensor) -> Float[Tensor, "n c"]:
        """Return the outputs, evaluated in batches."""
        return torch.cat([self._f(part).flatten(1) for part in chunks(x, self._rows)])


def _leading(matrices: Float[Tensor, "n c D"]) -> tuple[Float[Tensor, " n"], Float[Tensor, "n D"]]:
    """Return largest singular values and their right vectors, from the smaller Gram matrices.

    Matrices are scaled by powers of two, so that neither their squares nor a norm underflows.
    """
    exponent = torch.frexp(matrices.abs().amax((1, 2))).exponent.clamp(-1000, 1000)
    matrices = torch.ldexp(matrices, -exponent[:, None, None])
    wide = matrices.shape[1] <= matrices.shape[2]
    gram = matrices @ matrices.mT if wide else matrices.mT @ matrices
    last = torch.linalg.eigh(gram).eigenvectors[..., -1:]
    right = matrices.mT @ last if wide else last
    right = normalize(right[..., 0], dim=1)
    return torch.ldexp((matrices @ right[..., None]).flatten(1).norm(dim=1), exponent), right


def _around(x: Tensor, directions: Tensor, distance: float | Tensor) -> Tensor:
    """Return chords around points, first all beginnings, then all ends."""
    return torch.stack([x - distance / 2 * directions, x + distance / 2 * directions])
