"""Two points as far apart in their outputs, beside their own distance, as can be found."""

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
from inscape._core.progress import Bar, progress
from inscape.functional.jacobians import chunks, jacobians, probe

#: Pairs that are followed, and steps that they take.
PAIRS, STEPS = 8, 60
#: Points that are drawn around the data.
WIDE = 256
#: Distances of the last pairs, beside the spread of the data.
NEAR = (1e-2, 1e-4)


#: Outputs of which all Jacobians are written out; of more only as many mixtures, to find starts.
OUTPUTS, SHORTLIST = 24, 4 * PAIRS
#: Share of a difference that may be rounding.
ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class Chord:
    """The steepest of all: how steep, both of its ends, and how many parts of it are rounding.

    ``jacobian`` is the largest norm of a Jacobian that was seen.
    """

    slope: float
    pair: Float[Tensor, "2 *d"]
    doubt: float
    jacobian: float

    @property
    def found(self) -> float:
        """Return the slope of the chord; that of the Jacobian where differences are rounding."""
        return self.slope if self.doubt <= ROUNDING else self.jacobian

    @property
    def sure(self) -> float:
        """Return what is left of it if rounding has added all that it can."""
        return self.found * (1 - min(self.doubt, ROUNDING))


def steepest_chords(
    f: Function, x: Float[Tensor, "n *d"], *, memory: int, seed: int
) -> Iterator[Chord]:
    """Yield the steepest chord that was found so far, after each batch.

    Starts at the points where the Jacobian's norm is largest, among the data (in random order) and
    points drawn three times as wide; then both ends of a short chord climb. The chords that are
    tried do not depend on the size of a batch.
    """
    search = _Search(f, x, memory, seed)
    with progress(len(x) + WIDE + STEPS, label="steepest chord") as bar:
        for _ in search.steps(torch.cat([x, _wide(x, seed)]), bar):
            assert search.best is not None
            yield search.best


def _wide(x: Float[Tensor, "n *d"], seed: int) -> Float[Tensor, "w *d"]:
    """Return points drawn three times as wide as the data are."""
    centre = x.mean(0)
    shape = (WIDE, *x.shape[1:])
    draws = torch.randn(shape, generator=generator(seed), dtype=torch.float64).to(x)
    return centre + 3 * draws * (x - centre).square().mean(0).sqrt()


@dataclass(eq=False)
class _Steepest:
    """The points with the largest Jacobians so far, their norms, and where they stretch."""

    count: int
    points: Tensor
    norms: Tensor
    along: Tensor

    def add(self, points: Tensor, matrices: Float[Tensor, "n c D"]) -> None:
        """Add some points with their Jacobians; keep the largest."""
        norms, along = _leading(matrices)
        norms = torch.cat([self.norms, norms])
        order = norms.argsort(descending=True, stable=True)[: self.count]
        self.norms = norms[order]
        self.points = torch.cat([self.points, points])[order]
        self.along = torch.cat([self.along, along.reshape(points.shape)])[order]


class _Search:
    """The search for a chord as steep as can be found, within so much memory."""

    def __init__(self, f: Function, x: Tensor, memory: int, seed: int) -> None:
        self._f, self._memory, self._seed = f, memory, seed
        self._spread = float(x.std(0, correction=0).norm()) or 1.0
        self._rows = max(1, probe(f, x).rows(memory) // 2)  # with the products, two of each row
        self._largest = 0.0
        self.best: Chord | None = None

    def steps(self, x: Tensor, bar: Bar) -> Iterator[None]:
        """Search from some points; a step is a batch."""
        steepest = yield from self._steepest(x, bar)
        pairs = _around(steepest.points, steepest.along, NEAR[0] * self._spread)
        pairs = yield from self._climb(pairs, bar)
        ended = yield from self._steepest(pairs.mean(0), None)
        far = self._audible(ended.points, ended.norms)
        self._try(_around(ended.points, ended.along, far), far=True)
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
        rows = max(1, probe(f, x).rows(self._memory) // 2)
        steepest = _Steepest(count, x[:0], x.new_empty(0), x[:0])
        stages = [2**k for k in range(len(x).bit_length()) if 2**k < len(x)]
        for low, high in pairwise((0, *stages, len(x))):
            for part in chunks(x[low:high], rows):
                steepest.add(part, jacobians(f, part).detach())
                low += len(part)
                if bar:
                    bar.advance(len(part))
                if low == high:
                    self._largest = max(self._largest, float(steepest.norms[0]))
                    points, along = steepest.points[:PAIRS], steepest.along[:PAIRS]
                    near = [_around(points, along, share * self._spread) for share in NEAR]
                    self._try(torch.cat(near, 1))
                yield
        return steepest

    def _climb(self, pairs: Tensor, bar: Bar) -> Generator[None, None, Tensor]:
        """Let both ends climb the ratio by steps of one length that shrinks; return the best seen.

        Every step is made for as many pairs as a batch may have, then for the others.
        """
        best, at = self._ratio(pairs)[0], pairs.clone()
        kept = at.clone()
        for step in range(STEPS):
            pace = 0.1 * self._spread * (1 - step / STEPS)
            for own in torch.split(torch.arange(pairs.shape[1]), self._rows):
                at[:, own] = moved = self._uphill(at[:, own], pace)
                ratio, _ = self._ratio(moved)
                better = ratio > best[own]
                best[own] = torch.where(better, ratio, best[own])
                kept[:, own[better]] = moved[:, better]
                self._try(kept[:, own])
                yield
            bar.advance()
        return kept

    def _uphill(self, pairs: Tensor, pace: float) -> Tensor:
        """Return both ends of chords after a step of that length along the ratio's gradient."""
        with torch.enable_grad():
            at = pairs.detach().requires_grad_()
            apart = (at[1] - at[0]).flatten(1).norm(dim=1)
            outputs = (self._f(at[1]) - self._f(at[0])).flatten(1).norm(dim=1)
            value = (outputs.clamp(min=1e-300).log() - apart.log()).sum()
            (slope,) = torch.autograd.grad(value, at)
        length = slope.flatten(2).norm(dim=(0, 2)).clamp(min=1e-300)
        moved: Tensor = at.detach() + pace * slope / length.view(1, -1, *[1] * (at.ndim - 2))
        return moved

    def _try(self, pairs: Tensor, *, far: bool = False) -> None:
        """Keep the steepest of some chords if none that was found before is as steep."""
        slopes, noise = self._ratio(pairs)
        if far:  # there a function may leave all numbers
            slopes.nan_to_num_(0.0, 0.0)
        best = int((slopes - noise).nan_to_num(-inf).argmax())
        doubt = float(noise[best] / slopes[best]) if slopes[best] > 0 else inf
        chord = Chord(float(slopes[best]), pairs[:, best].clone(), doubt, self._largest)
        if self.best is None or chord.sure > self.best.sure or isnan(self.best.sure):
            self.best = chord

    @torch.no_grad()
    def _ratio(self, pairs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the distance of outputs over that of inputs, 0 at distance 0, and its noise."""
        apart = (pairs[1] - pairs[0]).flatten(1).norm(dim=1)
        ends = [self._outputs(end) for end in pairs]
        difference = (ends[1] - ends[0]).norm(dim=1)
        ratio = torch.where(apart > 0, difference / apart.clamp(min=1e-300), 0.0)
        size = sum(end.norm(dim=1) for end in ends) + ratio * pairs.flatten(2).norm(dim=2).sum(0)
        return ratio, 4 * torch.finfo(pairs.dtype).eps * size / apart.clamp(min=1e-300)

    @torch.no_grad()
    def _audible(self, x: Tensor, norms: Tensor) -> Tensor:
        """Return, for each point, a distance at which differences are far above their rounding."""
        outputs = self._outputs(x).norm(dim=1)
        size = outputs / norms.clamp(min=1e-300) + x.flatten(1).norm(dim=1)
        distance = (32 * torch.finfo(x.dtype).eps / ROUNDING * size).clamp(max=1e12)
        shaped: Tensor = distance.view(-1, *[1] * (x.ndim - 1))
        return shaped

    def _outputs(self, x: Tensor) -> Float[Tensor, "n c"]:
        """Return the outputs, evaluated in batches."""
        return torch.cat([self._f(part).flatten(1) for part in chunks(x, self._rows)])


def _leading(matrices: Float[Tensor, "n c D"]) -> tuple[Float[Tensor, " n"], Float[Tensor, "n D"]]:
    """Return largest singular values and their right vectors, from the smaller Gram matrices."""
    wide = matrices.shape[1] <= matrices.shape[2]
    gram = matrices @ matrices.mT if wide else matrices.mT @ matrices
    last = torch.linalg.eigh(gram).eigenvectors[..., -1:]
    right = matrices.mT @ last if wide else last
    right = normalize(right[..., 0], dim=1)
    return (matrices @ right[..., None]).flatten(1).norm(dim=1), right


def _around(x: Tensor, along: Tensor, distance: float | Tensor) -> Tensor:
    """Return chords around points, first all beginnings, then all ends."""
    return torch.stack([x - distance / 2 * along, x + distance / 2 * along])
