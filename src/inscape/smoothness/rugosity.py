"""Rugosity: how far the function is from affine in the neighbourhood of the data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import (
    NotApplicable,
    Result,
    Row,
    Summary,
    checks,
    generator,
    instrument,
    mean_summary,
)
from inscape._core.anytime import anytime
from inscape._core.checks import Function
from inscape._core.functional import MEMORY, chunks, jacobians, norm, probe
from inscape._core.result import NONNEGATIVE, Range
from inscape._core.sampling import Draw


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Rugosity(Result):
    """Change of the Jacobian per unit of distance around each of the points."""

    range: ClassVar[Range] = NONNEGATIVE

    changes: Float[Tensor, " points"]
    distance: float
    directions: int
    outputs: int
    seed: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each point."""
        yield from ({"rugosity": change} for change in self.changes.tolist())

    def summary(self) -> Summary:
        """Return the mean over the points."""
        basis = f"{len(self.changes)} points x {self.directions} directions"
        return mean_summary(self.changes, kind="estimate", basis=basis)


@instrument(
    reads="function",
    cost="instant",
    work=lambda n, c: 5 * min(n, 1000) * (1 + 2 * c),
    samples="points",
    meaning="Around a typical data point, the slope changes by {value} for each unit that the "
    "input moves.",
    cites="lejeune2019implicit, our reading",
)
@anytime
def rugosity(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    points: int = 1000,
    directions: int = 4,
    step: float = 0.1,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[Rugosity | NotApplicable]:
    r"""Measure how much the slope of ``f`` changes within a short step from the data.

    .. math:: C_\varepsilon(f) = \mathbb{E}_x \, \mathbb{E}_u \,
              \frac{\lVert J(x + \varepsilon u) - J(x) \rVert_F}{\varepsilon}

    The Jacobian at a point is compared with those at the end of steps of length
    :math:`\varepsilon` in directions :math:`u` drawn evenly from the sphere. LeJeune et al.
    (2019) integrate the norm of the Hessian along the tangent space of the data, which a ReLU
    network makes zero almost everywhere, and so need approximations. This finite difference is our
    reading: the steps go in all directions of the input, and the mean is of norms, not of squares,
    so that it has a limit for short steps also where the slope jumps. For a smooth function that
    limit is the mean of :math:`\lVert H u \rVert`.

    Zero for an affine function. An estimate over points and directions, with the standard error
    over points. Costs ``points * (1 + directions)`` Jacobians.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Points of the data.
        points: How many of them to use, drawn without replacement; all if there are no more.
        directions: Steps from each point.
        step: Length of a step, as a share of the root mean square distance of ``x`` from its mean.
        seed: Seed of both draws.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> bent = rugosity(lambda x: 3 * x**2, x)
    >>> round(bent.summary().value, 5)
    6.0
    """
    checks.whole(1, points=points, directions=directions, memory=memory)
    _positive(step)
    found = probe(f, x)
    found.need_gradient()
    distance = step * _spread(x)
    if distance == 0:
        reason = "all points are the same, so that there is no scale for a step: pass more data"
        yield NotApplicable(what="rugosity", reason=reason)
        return
    draw, dice = Draw(len(x), points, seed=seed, shuffled=True), generator(seed)
    rows = max(1, found.rows(memory) // 2)  # Jacobians of a row are held twice
    changes, done = x.new_empty(len(draw)), 0
    for picked in draw.parts(max(1, rows // (1 + directions))):
        part = x[picked]
        moved = part + distance * _directions(part, directions, dice)
        some = slice(done, done := done + len(part))
        changes[some] = _changes(found.f, part, moved, rows) / distance
        yield Rugosity(
            changes=draw.in_order(changes[:done]),
            distance=distance,
            directions=directions,
            outputs=found.outputs,
            seed=seed,
        )


def _changes(
    f: Function, x: Float[Tensor, "m *d"], moved: Float[Tensor, "k m *d"], rows: int
) -> Float[Tensor, " m"]:
    """Return how far the Jacobian moves from each point to its moved ones, on average."""
    every = torch.cat([x[None], moved]).flatten(0, 1)
    slopes = torch.cat([jacobians(f, part).flatten(1) for part in chunks(every, rows)])
    slopes = slopes.reshape(1 + len(moved), len(x), -1)
    return norm(slopes[1:] - slopes[0], dim=2).mean(0)


def _positive(step: float) -> None:
    checks.number(step=step)
    if not 0 < step < float("inf"):
        raise ValueError(f"step must be positive and finite, found {step}: use e.g. step=0.1.")


def _spread(x: Float[Tensor, "n *d"]) -> float:
    """Return the root mean square distance of the points from their mean."""
    centred = (x.double() - x.double().mean(0)).flatten(1)
    return float(centred.square().sum(1).mean().sqrt())


def _directions(
    x: Float[Tensor, "m *d"], count: int, dice: torch.Generator
) -> Float[Tensor, "k m *d"]:
    """Draw unit vectors evenly from the sphere, point by point, so that chunks change nothing."""
    size = (count, x[0].numel())
    drawn = torch.stack([torch.randn(size, generator=dice, dtype=torch.float64) for _ in x], dim=1)
    unit = drawn / norm(drawn, dim=2)[..., None]
    return unit.reshape(count, *x.shape).to(x)
