"""Leading eigenvectors of the uncentred covariance of gradients, output by output."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float64
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from inscape._core import BudgetError, checks
from inscape._core.anytime import finished
from inscape._core.checks import Function
from inscape._core.sampling import generator
from inscape.functional.jacobians import stacked, vjps
from inscape.runtime.progress import progress
from inscape.sensitivity._path_integrals import chosen_gradients

#: Stands for the largest output at each point.
LARGEST = -1
#: Eigenvalues below this fraction of the largest are rounding.
RANK = 1e-12
#: Directions that a random subspace has beyond those that are wanted.
OVERSAMPLING = 10


@dataclass(eq=False, kw_only=True)
class GradientSample:
    """Gradients of some outputs at points; stored where they fit into ``room`` bytes.

    Where they do not, each pass over :meth:`batches` computes them anew. ``known`` are those of the
    first points, if they were computed before.
    """

    f: Function
    x: Float64[Tensor, "n *d"]
    outputs: tuple[int, ...]
    rows: int
    room: int
    known: Float64[Tensor, "m c D"] | None = None
    _stored: Tensor | None = field(default=None, init=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return how many points, outputs and inputs there are."""
        return len(self.x), len(self.outputs), self.x[0].numel()

    @property
    def fits(self) -> bool:
        """Tell whether all gradients fit into the room."""
        n, c, d = self.shape
        return 8 * n * c * d <= self.room

    def of_more(self, x: Float64[Tensor, "n *d"]) -> "GradientSample":
        """Return the gradients at more points, of which these are the first."""
        return replace(self, x=x, known=self._stored)

    def batches(self) -> Iterator[tuple[slice, Float64[Tensor, "m c D"]]]:
        """Yield the gradients, batch by batch, with the points that they belong to."""
        if self._stored is not None:
            for first in range(0, len(self.x), max(self.rows, 1024)):
                at = slice(first, first + max(self.rows, 1024))
                yield at, self._stored[at]
            return
        stored, begin = self.x.new_empty(self.shape) if self.fits else None, 0
        if stored is not None and self.known is not None:
            begin = len(self.known)
            stored[:begin] = self.known
            yield slice(begin), self.known
        with progress(len(self.x) - begin, label="gradients") as bar:
            for first in range(begin, len(self.x), self.rows):
                at = slice(first, first + self.rows)
                gradients = self._gradients(self.x[at])
                checks.finite(gradients.flatten(1).sum(1), "points")
                if stored is not None:
                    stored[at] = gradients
                yield at, gradients
                bar.advance(len(gradients))
        self._stored = stored

    def all(self) -> Float64[Tensor, "n c D"]:
        """Return all gradients at once."""
        for _ in self.batches():
            pass
        if self._stored is None:
            n, c, d = self.shape
            raise BudgetError(
                f"all gradients must fit into room, {self.room} bytes, but {n} points with {c} "
                f"outputs and {d} inputs take {8 * n * c * d}: raise room, or take "
                "method='randomised'."
            )
        return self._stored

    def _gradients(self, x: Tensor) -> Tensor:
        if self.outputs == (LARGEST,):
            return chosen_gradients(self.f, x, None)[0][:, None]
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            y = checks.call(self.f, leaf).reshape(len(x), -1)
            rows = torch.eye(y.shape[1], dtype=y.dtype)[list(self.outputs)]
            vectors = rows.expand(len(x), *rows.shape)
            products = finished(vjps(y, get_gradient_edge(leaf), vectors=vectors))
            return stacked(products, (len(x), 1, x[0].numel()), leaf).detach()


@dataclass(frozen=True, eq=False, kw_only=True)
class LeadingDirections:
    """Leading eigenvalues and eigenvectors for each output, and the sum of all eigenvalues.

    Each eigenvalue is too small by at most ``missed``: 0 where they are exact.
    """

    eigenvalues: Float64[Tensor, "c k"]
    directions: Float64[Tensor, "c k D"]
    energies: Float64[Tensor, " c"]
    missed: Float64[Tensor, " c"]


def leading_directions(
    sample: GradientSample, count: int, method: str, seed: int
) -> LeadingDirections:
    """Return the leading directions by the method that suits the sizes, or the one wanted.

    Exact from the smaller of both Gram matrices: of inputs, summed batch by batch, or of points.
    """
    n, c, d = sample.shape
    fits = 8 * c * d * d <= sample.room if d <= n else sample.fits
    if method == "randomised" or (method == "auto" and not fits):
        return _randomised(sample, count, seed)
    if d <= n:
        return _from_inputs(sample, count)
    return _from_points(sample, count)


def _from_inputs(sample: GradientSample, count: int) -> LeadingDirections:
    n, c, d = sample.shape
    sums = sample.x.new_zeros(c, d, d)
    for _, gradients in sample.batches():
        by_output = gradients.movedim(1, 0)
        sums.baddbmm_(by_output.mT, by_output)
    values, vectors = torch.linalg.eigh(sums / n)
    chosen = vectors.flip(2)[:, :, :count].mT
    energies = values.clamp(min=0).sum(1)
    return _cleaned(values.flip(1)[:, :count], chosen, energies, torch.zeros_like(energies))


def _from_points(sample: GradientSample, count: int) -> LeadingDirections:
    n, c, d = sample.shape
    gradients = sample.all()
    values, directions = sample.x.new_zeros(c, count), sample.x.new_zeros(c, count, d)
    energies = gradients.square().sum((0, 2)) / n
    few = min(count, n)
    for j in range(c):
        own = gradients[:, j]
        eigenvalues, vectors = torch.linalg.eigh(own @ own.T / n)
        values[j, :few] = eigenvalues.flip(0)[:few]
        projected = vectors.flip(1)[:, :few].T @ own
        sizes = projected.norm(dim=1, keepdim=True)
        directions[j, :few] = projected / torch.where(sizes > 0, sizes, 1.0)
    return _cleaned(values, directions, energies, torch.zeros_like(energies))


def _randomised(sample: GradientSample, count: int, seed: int) -> LeadingDirections:
    """Return the best directions of a random subspace, by two passes over the gradients.

    What it misses of the energy bounds the error of each eigenvalue (Weyl's inequality).
    """
    n, c, d = sample.shape
    wide = min(d, count + OVERSAMPLING)
    start = torch.randn(d, wide, generator=generator(seed), dtype=torch.float64)
    sketch, energies = sample.x.new_zeros(c, d, wide), sample.x.new_zeros(c)
    for _, gradients in sample.batches():
        by_output = gradients.movedim(1, 0)
        sketch.baddbmm_(by_output.mT, by_output @ start)
        energies += gradients.square().sum((0, 2)) / n
    basis = torch.linalg.qr(sketch)[0]
    inner = sample.x.new_zeros(c, wide, wide)
    for _, gradients in sample.batches():
        within = gradients.movedim(1, 0) @ basis
        inner.baddbmm_(within.mT, within)
    values, vectors = torch.linalg.eigh(inner / n)
    values, vectors = values.flip(1), vectors.flip(2)
    directions = (basis @ vectors).mT[:, :count]
    missed = (energies - values.sum(1)).clamp(min=0)
    missed = torch.where(missed > RANK * energies, missed, 0.0)
    return _cleaned(values[:, :count], directions, energies, missed)


def _cleaned(
    values: Tensor, directions: Tensor, energies: Tensor, missed: Tensor
) -> LeadingDirections:
    """Drop what is rounding, and turn each direction so that its largest entry is positive."""
    known = values > RANK * values[:, :1].clamp(min=0)
    values = torch.where(known, values, 0.0)
    largest = directions.abs().argmax(2, keepdim=True)
    signs = torch.where(directions.gather(2, largest) < 0, -1.0, 1.0)
    directions = torch.where(known[:, :, None], directions * signs, 0.0)
    energies = torch.maximum(energies, values.sum(1))
    return LeadingDirections(
        eigenvalues=values, directions=directions, energies=energies, missed=missed
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Resampled:
    """What eigenvalues and leading directions would be for other points, by bootstrap."""

    eigenvalues: Float64[Tensor, "resamples c k"]
    fractions: Float64[Tensor, "resamples c"]
    turns: Float64[Tensor, "resamples c"]


def resampled(
    sample: GradientSample, known: LeadingDirections, count: int, resamples: int, seed: int
) -> Resampled:
    """Draw the points anew with replacement, within the span of the directions that are known.

    ``turns`` is the sine of the angle between the leading directions.
    """
    n, c, _ = sample.shape
    within = sample.x.new_empty(c, n, known.directions.shape[1])
    squares = sample.x.new_empty(n, c)
    for at, gradients in sample.batches():
        within[:, at] = gradients.movedim(1, 0) @ known.directions.mT
        squares[at] = gradients.square().sum(2)
    draw = generator(seed)
    parts: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    for _ in range(resamples):
        counts = torch.bincount(torch.randint(n, (n,), generator=draw), minlength=n).double()
        values, vectors = torch.linalg.eigh((within * counts[:, None]).mT @ within / n)
        energies = torch.maximum(counts @ squares / n, values.clamp(min=0).sum(1))
        leading = values[:, -1].clamp(min=0)
        parts[0].append(values.flip(1)[:, :count].clamp(min=0))
        parts[1].append(leading / torch.where(energies > 0, energies, 1.0))
        parts[2].append((1 - vectors[:, 0, -1].square()).clamp(min=0).sqrt())
    eigenvalues, fractions, turns = map(torch.stack, parts)
    return Resampled(eigenvalues=eigenvalues, fractions=fractions, turns=turns)
