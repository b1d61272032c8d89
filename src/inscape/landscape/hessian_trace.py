"""Hessian trace: the sum of all curvatures of the loss."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.anytime import anytime
from inscape._core.inference import no_grad
from inscape._core.result import ALIKE, Range, student
from inscape._core.sampling import generator
from inscape.landscape._loss_function import (
    GRAPHS,
    LossFunction,
    Matrix,
    ModuleLoss,
    loss_function_of,
)
from inscape.training import Loss


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HessianTrace(Result):
    """Trace of the Hessian: a part that is exact, and samples whose mean estimates the rest.

    Few parameters need no samples: ``exact`` is then all of it.
    """

    range: ClassVar[Range] = (-sys.float_info.max, sys.float_info.max)

    exact: float
    samples: Float64[Tensor, " samples"]
    products: int
    parameters: int
    matrix: str
    loss: str
    seed: int

    def rows(self) -> Iterator[Row]:
        """Yield one row with the trace and its interval."""
        summary = self.summary()
        yield {"trace": summary.value, "low": summary.low, "high": summary.high}

    def summary(self) -> Summary:
        """Return the trace, with Student's 95% interval of the samples."""
        basis = f"{self.parameters} parameters, {self.products} products"
        if len(self.samples) == 0:
            return Summary(value=self.exact, kind="exact", basis=basis)
        mean = self.exact + float(self.samples.mean())
        if len(self.samples) < 2 or not float(self.samples.std()) > 0:
            return Summary(value=mean, kind="estimate", basis=f"{basis}; {ALIKE}")
        error = float(self.samples.std()) / len(self.samples) ** 0.5
        half = student(len(self.samples)) * error
        return Summary(value=mean, kind="estimate", basis=basis, low=mean - half, high=mean + half)


@instrument(
    reads="parameters",
    better="smaller",
    larger="a sharper point on average",
    cost="seconds",
    work=lambda n, c: 360 * n,
    meaning="The curvatures of the loss in all directions add up to {value}.",
    cites="meyer2021hutch; hutchinson1990stochastic",
    by_default=False,
)
@anytime
@no_grad
def hessian_trace(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor | None = None,
    *,
    loss: str | Loss | None = None,
    module_loss: ModuleLoss | None = None,
    parameters: Sequence[str] | None = None,
    weight_decay: float = 0.0,
    matrix: Matrix = "hessian",
    products: int = 60,
    seed: int = 0,
    memory: int = GRAPHS,
) -> Iterator[HessianTrace | NotApplicable]:
    r"""Measure the trace of the Hessian of the loss.

    .. math:: \mathrm{tr} H = \mathrm{tr}(Q^T H Q) + \mathbb{E} \, g^T (I - Q Q^T) H (I - Q Q^T) g

    Hutch++: exact on the range ``Q`` of a sketch, from a third of the products, and a mean over
    random signs ``g`` orthogonal to it, with Student's interval. Exact for no more parameters than
    products. Costs a double backward pass over the data for each product.

    Args:
        model: A module in eval mode.
        x: Points of the data, all of which count.
        y: Their labels; not needed for a ``module_loss``.
        loss: As in ``fit``, a mean over samples; ``"cross_entropy"`` by default for integer labels.
        module_loss: Instead of a loss of outputs, any scalar function of the module.
        parameters: Names of parameters or modules that count; all by default.
        weight_decay: As in ``fit``; added once.
        matrix: ``"hessian"`` or ``"gauss_newton"``.
        products: Matrix-vector products, at least 6.
        seed: Seed of the random signs.
        memory: Bytes that the graphs may take.
    """
    checks.whole(6, products=products)
    checks.one_of(("hessian", "gauss_newton"), matrix=matrix)
    rng = generator(seed)
    problem = loss_function_of(
        model,
        x,
        y,
        loss=loss,
        module_loss=module_loss,
        parameters=parameters,
        weight_decay=weight_decay,
        memory=memory,
    )
    yield from _traces(problem, matrix, products, rng, seed)


def _traces(
    problem: LossFunction | None, matrix: Matrix, products: int, rng: torch.Generator, seed: int
) -> Iterator[HessianTrace | NotApplicable]:
    """Yield the trace with ever more samples."""
    if problem is None:
        yield NotApplicable(what="hessian_trace", reason="the model has no parameters")
        return
    product, like = problem.products(matrix), problem.tensors[0]

    def signs(count: int) -> Tensor:
        draws = torch.randint(2, (count, problem.size), generator=rng)
        return (2.0 * draws - 1.0).to(like)

    def result(exact: float, samples: list[float]) -> HessianTrace:
        return HessianTrace(
            exact=exact,
            samples=torch.tensor(samples, dtype=torch.float64),
            products=product.products,
            parameters=problem.size,
            matrix=matrix,
            loss=problem.loss_name,
            seed=seed,
        )

    if problem.size <= products:
        dense = product.matrix()
        checks.finite(dense, "parameters")
        yield result(float(dense.double().trace()), [])
        return
    # Signs would be alike on a few coordinates, and miss a part of a matrix of low rank.
    directions = torch.randn(products // 3, problem.size, generator=rng, dtype=torch.float64)
    sketch = torch.stack([product(row) for row in directions.to(like)])
    checks.finite(sketch, "parameters")
    basis = torch.linalg.qr(sketch.T).Q
    exact = sum(float((column @ product(column)).double()) for column in basis.T)
    samples: list[float] = []
    for row in signs(products - 2 * (products // 3)):
        rest = row - basis @ (basis.T @ row)
        samples.append(float((rest @ product(rest)).double()))
        if len(samples) > 1:
            yield result(exact, samples)
