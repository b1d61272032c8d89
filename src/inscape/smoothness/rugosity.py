"""Rugosity: how far the function is from affine in the neighbourhood of the data."""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import (
    NotApplicable,
    Result,
    Row,
    Summary,
    checks,
    generator,
    instrument,
)
from inscape._core.anytime import anytime, meanwhile
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape._core.sampling import FIRST, Draw
from inscape.functional.first_layer import JacobianFactors
from inscape.functional.jacobians import MEMORY, Probe, norm, probe
from inscape.smoothness._projection import (
    Directions,
    passes_for,
    projected_summary,
    projections_for,
    unbiased,
)
from inscape.smoothness.chords import Stage, in_stages
from inscape.smoothness.gradient_norm import point_stages

#: Points whose distances from the mean are summed at once.
BLOCK = 1000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Rugosity(Result):
    """Change of the Jacobian per unit of distance around each of the points.

    Jacobians are complete where ``projections`` is 0, else VJPs with so many random vectors.
    """

    range: ClassVar[Range] = NONNEGATIVE

    changes: Float[Tensor, " points"]
    distance: float
    directions: int
    outputs: int
    seed: int
    projections: int = 0

    def rows(self) -> Iterator[Row]:
        """Yield one row for each point."""
        yield from ({"rugosity": change} for change in self.changes.tolist())

    def per_sample(self) -> Tensor:
        """Return the change around each point."""
        return self.changes

    def summary(self) -> Summary:
        """Return the mean over the points."""
        basis = f"{len(self.changes)} points x {self.directions} directions"
        return projected_summary(self.changes, basis, self.projections)


@instrument(
    reads="function",
    larger="rougher",
    cost="instant",
    work=lambda n, c: 5 * min(n, 1000) * (1 + 2 * passes_for(c)),
    samples="points",
    meaning="Around a typical data point, the slope changes by {value} for each unit that the "
    "input moves.",
    cites="lejeune2019implicit, our reading",
    least_rows=2,
)
@anytime
def rugosity(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    points: int = 1000,
    directions: int = 4,
    step: float = 0.1,
    projections: int | None = None,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[Rugosity | NotApplicable]:
    r"""Measure how much the slope of ``f`` changes within a short step from the data.

    .. math:: C_\varepsilon(f) = \mathbb{E}_x \, \mathbb{E}_u \,
              \frac{\lVert J(x + \varepsilon u) - J(x) \rVert_F}{\varepsilon}

    The Jacobian at a point is compared with those at the end of steps of length
    :math:`\varepsilon` in directions :math:`u` drawn uniformly from the sphere. LeJeune et al.
    (2019) integrate the norm of the Hessian along the tangent space of the data, which is zero
    almost everywhere for a ReLU network, and so need approximations. This finite difference is our
    reading: steps in all directions of the input, and a mean of norms, not of squares, which has a
    limit for short steps also where the gradient jumps (if smooth, :math:`E \lVert H u \rVert`).

    Zero for an affine function. An estimate over points and directions, with the interval over
    points. Costs ``points * (1 + directions)`` Jacobians; for more than 32 outputs VJPs
    with ``k`` random vectors, the same for all steps from a point, as in
    :func:`~inscape.smoothness.gradient_norm`, with a bias of at most 0.07% for 8 vectors.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Points of the data.
        points: How many of them to use, drawn without replacement; all if there are no more.
        directions: Steps from each point.
        step: Length of a step, as a fraction of the RMS distance of ``x`` from its mean.
        projections: Random vectors at each point; 0 computes complete Jacobians, None does so up to
            32 outputs and uses 8 vectors beyond.
        seed: Seed of all draws.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> bent = rugosity(lambda x: 3 * x**2, x)
    >>> round(bent.summary().value, 5)
    6.0
    """
    checks.whole(1, points=points, directions=directions, memory=memory)
    _check_step(step)
    probed = probe(f, x)
    probed.need_gradient()
    distance = step * _rms_distance(x)
    if distance == 0:
        reason = "all points are the same, so that there is no scale for a step: pass more data"
        yield NotApplicable(what="rugosity", reason=reason)
        return
    fine = Stage(min(points, len(x)), directions, projections_for(probed.outputs, projections))

    def measure(stage: Stage) -> Iterator[tuple[int, Rugosity | None]]:
        return _changes(probed, x, stage, distance, seed, memory)

    yield from in_stages(measure, point_stages(fine, probed, memory))


def _changes(
    probed: Probe, x: Float[Tensor, "n *d"], stage: Stage, distance: float, seed: int, memory: int
) -> Iterator[tuple[int, Rugosity | None]]:
    """Yield the changes around the points so far, after each pass; None before the last."""
    _, directions, k = stage
    draw, rng = Draw(len(x), stage.samples, seed=seed, shuffled=True), generator(seed)
    vectors = Directions(probed.outputs, k, seed=seed ^ 1)
    rows = max(1, probed.rows(memory, gradients=k or None) // 2)  # memory holds each Jacobian twice
    changes, done = x.new_empty(len(draw)), 0
    for chosen in draw.growing(FIRST, max(1, rows // (1 + directions))):
        inputs = x[chosen]
        moved = inputs + distance * _directions(inputs, directions, rng)
        jacobian_changes = _jacobian_changes(probed, inputs, moved, vectors.draw(len(inputs)), rows)
        values = yield from meanwhile(jacobian_changes, (done, None))
        changes[done : (done := done + len(inputs))] = values / distance
        result = Rugosity(
            changes=draw.in_order(changes[:done]),
            distance=distance,
            directions=directions,
            outputs=probed.outputs,
            seed=seed,
            projections=k,
        )
        yield done, result


def _jacobian_changes(
    probed: Probe,
    x: Float[Tensor, "m *d"],
    moved: Float[Tensor, "k m *d"],
    vectors: Float64[Tensor, "m r c"] | None,
    rows: int,
) -> Generator[None, None, Float[Tensor, " m"]]:
    """Return the mean change of the Jacobian from each point to the ends of its steps."""
    inputs = torch.cat([x[None], moved]).flatten(0, 1)
    gradient_steps = JacobianFactors(probed.f, rows=0)
    batches = []
    repeated = None if vectors is None else vectors.repeat(1 + len(moved), 1, 1)
    for first in range(0, len(inputs), rows):
        batch = slice(first, first + rows)
        gradients, _ = yield from gradient_steps.steps(
            inputs[batch], None if repeated is None else repeated[batch]
        )
        batches.append(gradients)
        yield
    gradients = torch.cat(batches).reshape(1 + len(moved), len(x), *batches[0].shape[1:])
    changes = gradients[1:] - gradients[0]
    if vectors is None:
        return norm(changes.flatten(2), dim=2).mean(0)
    return unbiased(norm(changes, dim=3)).mean(0).to(x)


def _check_step(step: float) -> None:
    checks.number(step=step)
    if not 0 < step < float("inf"):
        raise ValueError(f"step must be positive and finite, found {step}: use e.g. step=0.1.")


def _rms_distance(x: Float[Tensor, "n *d"]) -> float:
    """Return the root mean square distance of the points from their mean, in blocks."""
    blocks = torch.split(x, BLOCK)
    mean = torch.stack([block.double().sum(0) for block in blocks]).sum(0) / len(x)
    return math.sqrt(sum(float((block - mean).square().sum()) for block in blocks) / len(x))


def _directions(
    x: Float[Tensor, "m *d"], count: int, rng: torch.Generator
) -> Float[Tensor, "k m *d"]:
    """Draw unit vectors uniformly from the sphere, independently of the batch size."""
    size = (count, x[0].numel())
    drawn = torch.stack([torch.randn(size, generator=rng, dtype=torch.float64) for _ in x], dim=1)
    unit = drawn / norm(drawn, dim=2)[..., None]
    return unit.reshape(count, *x.shape).to(x)
