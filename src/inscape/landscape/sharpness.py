"""Sharpness: the largest curvature of the loss, as it is and relative to the weights."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.inference import no_grad
from inscape._core.result import NONNEGATIVE, Range
from inscape._core.sampling import generator
from inscape.functional.hessian_products import joined
from inscape.landscape._dense_network import DenseLayer, dense_layers
from inscape.landscape._lanczos import lanczos
from inscape.landscape._loss_function import GRAPHS, LossFunction, ModuleLoss, loss_function_of
from inscape.training import Loss

#: By how much the demonstration scales the first hidden layer up, and the next one down.
FACTOR = 4.0
FORMS = ("plain", "adaptive", "relative to filters")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sharpness(Result):
    r"""Largest eigenvalues of :math:`T H T` for three scales T, with their residuals.

    ``values`` are those of FORMS: T = 1, the sizes of the weights, the norms of the filters (a row
    of weights each). ``rescaled`` are those of the same function with the first hidden layer scaled
    up by four and the next one down: the adaptive one stays. None where there is no such layer.
    """

    range: ClassVar[Range] = NONNEGATIVE

    values: Float64[Tensor, "3"]
    residuals: Float64[Tensor, "3"]
    rescaled: Float64[Tensor, "3"] | None
    products: int
    loss: str
    seed: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each form."""
        same = [None] * 3 if self.rescaled is None else self.rescaled.tolist()
        columns = (self.values.tolist(), self.residuals.tolist(), same)
        for name, value, residual, rescaled in zip(FORMS, *columns, strict=True):
            yield {"form": name, "largest": value, "residual": residual, "rescaled": rescaled}

    def summary(self) -> Summary:
        """Return the adaptive sharpness, zero if no direction curves upwards."""
        value, residual = max(0.0, float(self.values[1])), float(self.residuals[1])
        basis = f"plain {float(self.values[0]):.3g}, {self.products} products"
        return Summary(
            value=value,
            kind="estimate",
            basis=basis,
            low=max(0.0, value - residual),
            high=value + residual,
        )


@instrument(
    reads="parameters",
    better="smaller",
    larger="a sharper point",
    cost="seconds",
    work=lambda n, c: 600 * n,
    meaning="If each weight may change by a small fraction of its size, the loss curves by {value} "
    "at most.",
    cites="kwon2021asam; dinh2017sharp; goldblum2020truth, Remark 2.2",
    by_default=False,
    of_training=True,
)
@no_grad
def sharpness(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor | None = None,
    *,
    loss: str | Loss | None = None,
    module_loss: ModuleLoss | None = None,
    weight_decay: float = 0.0,
    tolerance: float = 1e-3,
    products: int = 40,
    seed: int = 0,
    memory: int = GRAPHS,
) -> Sharpness | NotApplicable:
    r"""Measure the largest curvature of the loss, and two forms that are relative to the weights.

    .. math:: \lambda_{max}(T H T), \quad T = I, \; \mathrm{diag} |\theta|, \;
              \mathrm{diag} \lVert \text{filter of } \theta_i \rVert

    A network whose units are rescaled computes the same and has another largest eigenvalue (Dinh et
    al.); the adaptive form does not change. Estimates by Lanczos, with residuals. Costs at most
    ``6 * products`` double backward passes over the data.

    Args:
        model: A module in eval mode.
        x: Points of the data, all of which count.
        y: Their labels; not needed for a ``module_loss``.
        loss: As in ``fit``, a mean over samples; ``"cross_entropy"`` by default for integer labels.
        module_loss: Instead of a loss of outputs, any scalar function of the module.
        weight_decay: As in ``fit``.
        tolerance: Residuals to be reached, as a fraction of the spectrum's width.
        products: Most products for each eigenvalue.
        seed: Seed of the random starts.
        memory: Bytes that the graphs may take.
    """
    checks.whole(1, products=products)
    checks.at_least(0.0, tolerance=tolerance)
    checks.seed(seed)
    problem = loss_function_of(
        model,
        x,
        y,
        loss=loss,
        module_loss=module_loss,
        weight_decay=weight_decay,
        memory=memory,
    )
    if problem is None:
        return NotApplicable(what="sharpness", reason="the model has no parameters")
    return _sharpness(problem, tolerance, products, seed)


def _sharpness(problem: LossFunction, tolerance: float, products: int, seed: int) -> Sharpness:
    values, residuals, count = _all_forms(problem, tolerance, products, seed)
    rescaled = None
    if _rescale(problem):
        rescaled, _, more = _all_forms(problem, tolerance, products, seed)
        count += more
    return Sharpness(
        values=values,
        residuals=residuals,
        rescaled=rescaled,
        products=count,
        loss=problem.loss_name,
        seed=seed,
    )


def _all_forms(
    problem: LossFunction, tolerance: float, products: int, seed: int
) -> tuple[Tensor, Tensor, int]:
    """Return the largest eigenvalue of each form, its residual, and the products taken."""
    product = problem.products()
    theta = problem.vector()
    filters = joined([_filter_norms(tensor.detach()) for tensor in problem.tensors])
    values, residuals = [], []
    for scale in (torch.ones_like(theta), theta.abs(), filters):

        def scaled(vector: Tensor, scale: Tensor = scale) -> Tensor:
            return scale * product(scale * vector)

        value, residual = _largest(scaled, theta, tolerance, products, seed)
        values.append(value)
        residuals.append(residual)
    return (
        torch.tensor(values, dtype=torch.float64),
        torch.tensor(residuals, dtype=torch.float64),
        product.products,
    )


def _largest(
    product: Callable[[Tensor], Tensor], like: Tensor, tolerance: float, products: int, seed: int
) -> tuple[float, float]:
    """Return the largest eigenvalue and the residual of its vector."""
    start = torch.randn(len(like), generator=generator(seed), dtype=torch.float64).to(like)
    for pairs in lanczos(product, start, columns=products, products=products):
        close = pairs.residual(-1) <= tolerance * pairs.width
        if pairs.exhausted or (pairs.products > 2 and close):
            break
    return float(pairs.values[-1]), pairs.residual(-1)


def _filter_norms(tensor: Tensor) -> Tensor:
    """Return for each entry the norm of its filter: its row, or itself in a vector."""
    if tensor.ndim < 2:
        return tensor.abs()
    norms = tensor.flatten(1).norm(dim=1)
    expanded: Tensor = norms.reshape(-1, *[1] * (tensor.ndim - 1)).expand(tensor.shape)
    return expanded


def _rescale(problem: LossFunction) -> bool:
    """Scale the first hidden ReLU layer of the copy up and the next one down, if there is one."""
    if problem.module_loss is not None:
        return False
    layers: list[DenseLayer] | None = dense_layers(problem.in_double())
    named = dict(problem.model.named_parameters())
    for layer, follower in zip(layers or [], (layers or [])[1:], strict=False):
        if layer.kind is nn.ReLU:
            named[layer.weight_name].mul_(FACTOR)
            if layer.bias_name:
                named[layer.bias_name].mul_(FACTOR)
            named[follower.weight_name].div_(FACTOR)
            return True
    return False
