"""Gradient norm: how steep the function is at the data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from inscape._core import Result, Row, Summary, checks, instrument, mean_summary
from inscape._core.anytime import anytime
from inscape._core.checks import Function
from inscape._core.front import Slopes
from inscape._core.functional import MEMORY, live_jacobians, norm, probe
from inscape._core.result import NONNEGATIVE, Range
from inscape._core.sampling import Draw


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GradientNorm(Result):
    """Norm of the gradient at each of the points."""

    range: ClassVar[Range] = NONNEGATIVE

    norms: Float[Tensor, " points"]
    outputs: int
    seed: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each point."""
        yield from ({"gradient_norm": norm} for norm in self.norms.tolist())

    def summary(self) -> Summary:
        """Return the mean over the points."""
        return mean_summary(self.norms, kind="estimate", basis=f"{len(self.norms)} points")


@instrument(
    reads="function",
    cost="instant",
    work=lambda n, c: min(n, 1000) * (1 + 2 * c),
    samples="points",
    meaning="At a typical data point, a tiny step moves the output by at most {value} times "
    "the length of the step.",
    cites="volhejn2020smoothness, Definition 4, Eq. (3.1)",
)
@anytime
def gradient_norm(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    points: int = 1000,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[GradientNorm]:
    r"""Measure how steep ``f`` is at the data.

    .. math:: GN(f) = \mathbb{E}_x \, \lVert \nabla_x f(x) \rVert

    For several outputs the Frobenius norm of the Jacobian. The norm at each point is exact up to
    rounding; the mean is an estimate over the data's distribution, with its standard error.
    Costs one forward and ``c`` backward passes of ``points`` rows; less where the input goes in
    through one narrowing linear map.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Points of the data.
        points: How many of them to use, drawn without replacement; all if there are no more.
        seed: Seed of that draw.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> gradient_norm(lambda x: 3 * x[:, :1] + 4 * x[:, 1:], torch.eye(2)).summary().value
    5.0
    """
    checks.whole(1, points=points, memory=memory)
    found = probe(f, x)
    found.need_gradient()
    draw = Draw(len(x), points, seed=seed)
    slopes = Slopes(found.f, rows=len(draw) * found.outputs)
    norms, done = x.new_empty(len(draw)), 0
    for some in draw.parts(found.rows(memory)):
        part = slopes.norms(x[some])
        norms[done : (done := done + len(part))] = part
        yield GradientNorm(norms=draw.in_order(norms[:done]), outputs=found.outputs, seed=seed)


def gradient_norm_penalty(f: Function, x: Float[Tensor, "n *d"]) -> Float[Tensor, ""]:
    r"""Return the mean gradient norm over a batch, differentiable in the weights of ``f``.

    .. math:: \widehat{GN}(f) = \tfrac1k \sum_{i=1}^{k} \lVert \nabla_x f(x_i) \rVert

    Volhejn's Eq. (4.6); add it to any loss with a coefficient.
    """
    checks.points(x)
    return norm(live_jacobians(f, x).flatten(1), dim=1).mean()
