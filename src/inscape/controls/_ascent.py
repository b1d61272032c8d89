"""Two points as far apart in their outputs, beside their own distance, as can be found."""

from dataclasses import dataclass
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from inscape._core import generator
from inscape._core.checks import Function
from inscape._core.functional import chunks, jacobians, probe
from inscape._core.progress import Bar, progress

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

    ``jacobian`` is the largest norm of a Jacobian among the points where the search began or ended.
    """

    slope: float
    pair: Float[Tensor, "2 *d"]
    doubt: float
    jacobian: float

    @property
    def found(self) -> float:
        """Return the slope of the chord; that of the Jacobian where differences are rounding."""
        return self.slope if self.doubt <= ROUNDING else self.jacobian


def steepest_chord(f: Function, x: Float[Tensor, "n *d"], *, memory: int, seed: int) -> Chord:
    """Return the largest ratio of distances that was found, and where.

    Starts at the points where the Jacobian's norm is largest, among the data and points drawn three
    times as wide; then both ends of a short chord climb.
    """
    centre, spread = x.mean(0), float(x.std(0, correction=0).norm()) or 1.0
    shape = (WIDE, *x.shape[1:])
    dice = torch.randn(shape, generator=generator(seed), dtype=torch.float64).to(x)
    wide = centre + 3 * dice * (x - centre).square().mean(0).sqrt()
    search = _Search(f, memory, seed)
    with progress(len(x) + WIDE + STEPS, label="steepest chord") as bar:
        starts, along, first = search.steepest(torch.cat([x, wide]), bar)
        pairs = [_around(starts, along, near * spread) for near in NEAR]
        climbed = _climbed(f, pairs[0], spread, bar)
        starts, along, norms = search.steepest(climbed.mean(0), None)
    far = _audible(f, starts, norms)
    pairs += [climbed, *(_around(starts, along, near * spread) for near in NEAR)]
    pairs += [_around(starts, along, far)]
    every = torch.cat(pairs, 1)
    slopes, noise = _ratio(f, every)
    slopes[-len(starts) :].nan_to_num_(0.0, 0.0)  # far away a function may leave all numbers
    best = int((slopes - noise).nan_to_num(-inf).argmax())
    doubt = float(noise[best] / slopes[best]) if slopes[best] > 0 else inf
    jacobian = max(float(first.max()), float(norms.max()))
    return Chord(float(slopes[best]), every[:, best].clone(), doubt, jacobian)


@dataclass(frozen=True, eq=False)
class _Search:
    """How to find where a function is steep, within so much memory."""

    f: Function
    memory: int
    seed: int

    def steepest(self, x: Tensor, bar: Bar | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the points with the largest Jacobians, where they stretch, and their norms."""
        c = self.f(x[:1]).numel()
        if c > OUTPUTS and len(x) > SHORTLIST:
            dice = torch.randn(c, OUTPUTS, generator=generator(self.seed), dtype=torch.float64)
            mix = torch.linalg.qr(dice).Q.to(x)
            norms, _ = self._norms(lambda z: self.f(z).flatten(1) @ mix, x, bar)
            x, bar = x[norms.argsort(descending=True)[:SHORTLIST]], None
        norms, directions = self._norms(self.f, x, bar)
        order = norms.argsort(descending=True)[:PAIRS]
        along = directions[order].reshape(len(order), *x.shape[1:])
        return x[order], along, norms[order]

    def _norms(self, f: Function, x: Tensor, bar: Bar | None) -> tuple[Tensor, Tensor]:
        """Return the norm of every Jacobian and the direction in which it stretches most."""
        norms, directions = x.new_empty(len(x)), x.new_empty(len(x), x[0].numel())
        rows = max(1, probe(f, x).rows(self.memory) // 2)  # with the products, two Jacobians a row
        done = 0
        for part in chunks(x, rows):
            at = slice(done, done := done + len(part))
            norms[at], directions[at] = _leading(jacobians(f, part).detach())
            if bar:
                bar.advance(len(part))
        return norms, directions


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


@torch.no_grad()
def _ratio(f: Function, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distance of outputs over that of inputs, 0 where these are one, and its noise."""
    apart = (pairs[1] - pairs[0]).flatten(1).norm(dim=1)
    ends = [f(one).flatten(1) for one in pairs]
    ratio = torch.where(apart > 0, (ends[1] - ends[0]).norm(dim=1) / apart.clamp(min=1e-300), 0.0)
    size = sum(end.norm(dim=1) for end in ends) + ratio * pairs.flatten(2).norm(dim=2).sum(0)
    return ratio, 4 * torch.finfo(pairs.dtype).eps * size / apart.clamp(min=1e-300)


@torch.no_grad()
def _audible(f: Function, x: Tensor, norms: Tensor) -> Tensor:
    """Return, for each point, a distance at which differences are far above their rounding."""
    size = f(x).flatten(1).norm(dim=1) / norms.clamp(min=1e-300) + x.flatten(1).norm(dim=1)
    distance = (32 * torch.finfo(x.dtype).eps / ROUNDING * size).clamp(max=1e12)
    shaped: Tensor = distance.view(-1, *[1] * (x.ndim - 1))
    return shaped


def _climbed(f: Function, pairs: Tensor, spread: float, bar: Bar) -> Tensor:
    """Let both ends climb the ratio by steps of one length that shrinks; return the best seen."""
    best, at = _ratio(f, pairs)[0], pairs.clone()
    kept = at.clone()
    for step in range(STEPS):
        with torch.enable_grad():
            at = at.detach().requires_grad_()
            apart = (at[1] - at[0]).flatten(1).norm(dim=1)
            outputs = (f(at[1]) - f(at[0])).flatten(1).norm(dim=1)
            value = (outputs.clamp(min=1e-300).log() - apart.log()).sum()
            (slope,) = torch.autograd.grad(value, at)
        length = slope.flatten(2).norm(dim=(0, 2)).clamp(min=1e-300)
        pace = 0.1 * spread * (1 - step / STEPS)
        at = at.detach() + pace * slope / length.view(1, -1, *[1] * (at.ndim - 2))
        found, _ = _ratio(f, at)
        better = found > best
        best = torch.where(better, found, best)
        kept[:, better] = at[:, better]
        bar.advance()
    return kept
