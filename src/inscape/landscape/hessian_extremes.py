"""Hessian extremes: the largest and the smallest curvature of the loss, with their errors."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, instrument
from inscape._core.anytime import anytime
from inscape._core.inference import no_grad
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape.landscape._ends import EndSearch, extreme_ends
from inscape.landscape._loss_function import (
    GRAPHS,
    LossFunction,
    Matrix,
    ModuleLoss,
    loss_function_of,
)
from inscape.training import Loss

#: Reason where there is nothing to differentiate by.
NO_PARAMETERS = "the model has no parameters"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HessianExtremes(Result):
    r"""Both ends of the spectrum of the Hessian of the loss.

    An eigenvalue lies within ``residuals`` of each of ``smallest`` and ``largest``, up to
    ``rounding``. ``below`` and ``above`` are bounds that no eigenvalue passes: by ``proof``
    ``"inertia"`` for certain, up to rounding; by ``"probability"`` except with probability
    ``failure`` over the random start. ``negative`` tells that negative curvature is proved, by a
    vector with :math:`v \cdot Hv < 0` by more than its rounding.
    """

    range: ClassVar[Range] = NONNEGATIVE
    nonfinite: ClassVar[Mapping[str, str]] = {
        "below": "infinite: too few products for a bound",
        "above": "infinite: too few products for a bound",
    }

    smallest: float
    largest: float
    residuals: Float64[Tensor, "2"]
    rounding: float
    below: float
    above: float
    proof: Literal["inertia", "probability"]
    failure: float
    negative: bool
    converged: bool
    parameters: int
    products: int
    matrix: str
    loss: str
    seed: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each end."""
        ends = (self.smallest, self.largest)
        bounds = (self.below, self.above)
        for name, value, residual, bound in zip(
            ("smallest", "largest"), ends, self.residuals.tolist(), bounds, strict=True
        ):
            shown = bound if math.isfinite(bound) else None
            yield {"end": name, "eigenvalue": value, "residual": residual, "bound": shown}

    def summary(self) -> Summary:
        """Return the curvature of largest size, whatever its sign, with its residual."""
        ends = (abs(self.smallest), abs(self.largest))
        at = 0 if ends[0] > ends[1] else 1
        radius = float(self.residuals[at]) + self.rounding
        kind: Kind = "exact" if self.proof == "inertia" else "estimate"
        basis = f"from {self.smallest:.3g} to {self.largest:.3g}, {self.products} products"
        if not self.converged:
            basis += ", unconverged"
        return Summary(
            value=ends[at],
            kind=kind,
            basis=basis,
            low=max(0.0, ends[at] - radius),
            high=ends[at] + radius,
        )

    @property
    def status(self) -> str:
        """Return ``"ok"``, or by how much the residuals are too large."""
        if self.converged:
            return "ok"
        return (
            f"unconverged: residuals {self.residuals[0]:.2g} and {self.residuals[1]:.2g} after "
            f"{self.products} products; raise products"
        )


@instrument(
    reads="parameters",
    better="smaller",
    larger="a sharper point",
    cost="seconds",
    work=lambda n, c: 240 * n,
    meaning="The curvature of the loss is {value} in the direction in which it is largest.",
    cites="lanczos1950iteration; kuczynski1992estimating, Theorem 4.2; ghorbani2019investigation",
    by_default=False,
    of_training=True,
)
@anytime
@no_grad
def hessian_extremes(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor | None = None,
    *,
    loss: str | Loss | None = None,
    module_loss: ModuleLoss | None = None,
    parameters: Sequence[str] | None = None,
    weight_decay: float = 0.0,
    matrix: Matrix = "hessian",
    double: bool = False,
    tolerance: float = 1e-3,
    products: int = 200,
    starts: int = 1,
    dense: int = 200,
    seed: int = 0,
    memory: int = 2 * GRAPHS,
) -> Iterator[HessianExtremes | NotApplicable]:
    r"""Measure the smallest and the largest eigenvalue of the Hessian of the loss.

    .. math:: H = \nabla^2_\theta \left( \tfrac{1}{n} \sum_i \ell(f_\theta(x_i), y_i)
              + \tfrac{\lambda}{2} \lVert \theta \rVert^2 \right), \quad
              r = \lVert H v - \vartheta v \rVert

    Lanczos finds both ends at once, with true residuals in float64. That no eigenvalue lies beyond
    is proved by inertia for few parameters, else it holds with a stated probability over the random
    start. Costs a double backward pass over the data for each product.

    Args:
        model: A module in eval mode.
        x: Points of the data, all of which count: cut into mini-batches, exactly.
        y: Their labels; not needed for a ``module_loss``.
        loss: As in ``fit``, a mean over samples; ``"cross_entropy"`` by default for integer labels.
        module_loss: Instead of a loss of outputs, any scalar function of the module.
        parameters: Names of parameters or modules that count; all by default.
        weight_decay: As in ``fit``; added once.
        matrix: ``"hessian"`` or ``"gauss_newton"``.
        double: Whether to compute all products in float64, not only the last.
        tolerance: Residuals to be reached, as a fraction of the spectrum's width.
        products: Most products of each start.
        starts: Random starts; each makes it less probable that an eigenvalue is missed.
        dense: Up to so many parameters the whole matrix is computed instead.
        seed: Seed of the random starts.
        memory: Bytes that the vectors and graphs may take.
    """
    problem = loss_function_of(
        model,
        x,
        y,
        loss=loss,
        module_loss=module_loss,
        parameters=parameters,
        weight_decay=weight_decay,
        double=double,
        memory=memory,
    )
    yield from _results(
        problem, EndSearch(matrix, tolerance, products, starts, dense, seed, memory)
    )


def _results(
    problem: LossFunction | None, search: EndSearch
) -> Iterator[HessianExtremes | NotApplicable]:
    """Yield the ends so far after each product, and verified ones at last."""
    if problem is None:
        yield NotApplicable(what="hessian_extremes", reason=NO_PARAMETERS)
        return
    for ends in extreme_ends(problem, search):
        yield HessianExtremes(
            smallest=ends.smallest,
            largest=ends.largest,
            residuals=torch.tensor(ends.residuals, dtype=torch.float64),
            rounding=ends.rounding,
            below=ends.below,
            above=ends.above,
            proof=ends.proof,
            failure=ends.failure,
            negative=ends.negative,
            converged=ends.converged,
            parameters=problem.size,
            products=ends.products,
            matrix=search.matrix,
            loss=problem.loss_name,
            seed=search.seed,
        )
