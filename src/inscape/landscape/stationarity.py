"""Stationarity: how long the gradient of the loss on all data still is."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.inference import no_grad
from inscape._core.result import NONNEGATIVE, Range
from inscape.landscape._loss_function import GRAPHS, LossFunction, ModuleLoss, loss_function_of
from inscape.training import Loss


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Stationarity(Result):
    """Norms of the gradient of the loss on all data, in float64.

    ``norms`` has one for each parameter tensor, with the regulariser. ``moved`` is how far the
    outputs at the data move (root mean square) by one step of gradient descent with rate ``lr``;
    zero for a loss of the module itself.
    """

    range: ClassVar[Range] = NONNEGATIVE

    norms: Float64[Tensor, " tensors"]
    names: tuple[str, ...]
    total: float
    without_regulariser: float
    value: float
    moved: float
    lr: float
    loss: str

    def rows(self) -> Iterator[Row]:
        """Yield one row for each parameter tensor."""
        for name, norm in zip(self.names, self.norms.tolist(), strict=True):
            yield {"parameter": name, "gradient": norm}

    def summary(self) -> Summary:
        """Return the norm of the whole gradient, with the regulariser."""
        basis = f"loss {self.value:.4g}; a step moves outputs by {self.moved:.2g}"
        return Summary(value=self.total, kind="exact", basis=basis)


@instrument(
    reads="parameters",
    better="smaller",
    larger="farther from where training would stop",
    cost="instant",
    work=lambda n, c: 8 * n,
    meaning="On all data the gradient of the loss has the length {value}.",
    cites="goldblum2020truth, Table 1",
    by_default=False,
    of_training=True,
)
@no_grad
def stationarity(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor | None = None,
    *,
    loss: str | Loss | None = None,
    module_loss: ModuleLoss | None = None,
    weight_decay: float = 0.0,
    lr: float = 0.1,
    memory: int = GRAPHS,
) -> Stationarity | NotApplicable:
    r"""Measure the gradient of the loss on all data, and what a step along it does.

    .. math:: \lVert g \rVert, \quad g = \nabla_\theta \frac{1}{n} \sum_i \ell(f_\theta(x_i), y_i)
              + \lambda \theta, \qquad \left( \frac{1}{n} \sum_i
              \lVert f_{\theta - \eta g}(x_i) - f_\theta(x_i) \rVert^2 \right)^{1/2}

    Exact up to rounding in float64. Costs a backward and two forward passes over the data.

    Args:
        model: A module in eval mode.
        x: Points of the data, all of which count.
        y: Their labels; not needed for a ``module_loss``.
        loss: As in ``fit``, a mean over samples; ``"cross_entropy"`` by default for integer labels.
        module_loss: Instead of a loss of outputs, any scalar function of the module.
        weight_decay: As in ``fit``.
        lr: Rate of the step whose effect on the outputs is measured.
        memory: Bytes that the working set may take.
    """
    checks.number(lr=lr)
    problem = loss_function_of(
        model,
        x,
        y,
        loss=loss,
        module_loss=module_loss,
        weight_decay=weight_decay,
        double=True,
        memory=memory,
    )
    if problem is None:
        return NotApplicable(what="stationarity", reason="the model has no parameters")
    gradient = problem.gradient()
    parts = problem.products().split(gradient)
    return Stationarity(
        norms=torch.stack([part.norm() for part in parts]),
        names=problem.names,
        total=float(gradient.norm()),
        without_regulariser=float(problem.without_decay().gradient().norm()),
        value=problem.value(),
        moved=0.0 if module_loss is not None else _moved(problem, lr * gradient),
        lr=lr,
        loss=problem.loss_name,
    )


def _moved(problem: LossFunction, step: Float64[Tensor, " p"]) -> float:
    """Return by how much the outputs move when a step is subtracted from the parameters."""
    start, spans = problem.vector(), problem.spans()
    before = [problem.outputs(span) for span in spans]
    problem.place(start - step)
    squares = sum(
        float((problem.outputs(span) - outputs).square().sum())
        for span, outputs in zip(spans, before, strict=True)
    )
    problem.place(start)
    return math.sqrt(squares / len(problem.x))
