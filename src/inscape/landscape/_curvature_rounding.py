"""How far rounding may move a computed curvature where the loss cancels, as a softmax does."""

from collections.abc import Iterator
from functools import partial

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.sampling import generator
from inscape.functional.hessian_products import HessianProducts, Term
from inscape.landscape._loss_function import LossFunction

#: Roundings of a product in float64, in machine epsilons of the terms that it is a sum of.
LEAST_ROUNDING = 16
#: Steps of power iteration, and the least length that they divide by.
POWER, TINY = 6, 1e-300
EPSILON = float(torch.finfo(torch.float64).eps)


def has_terms(problem: LossFunction) -> bool:
    """Tell whether the terms of the loss are known."""
    known = isinstance(problem.loss, str) and problem.loss in TERMS
    return known and problem.module_loss is None


def curvature_rounding(problem: LossFunction, vector: Float64[Tensor, " p"]) -> float:
    r"""Return how far rounding may move the curvature along a vector of length one.

    .. math:: \tfrac1n \sum_i \kappa_i \lVert t_i \rVert^2
              + \Bigl| \tfrac1n \sum_i \gamma_i \pm f_i''(v, v) \Bigr|, \quad t_i = J_i v

    In machine epsilons: the curvature of a loss by the outputs is a difference of terms of size
    :math:`\kappa`, its slope one of terms of size :math:`\gamma`, however small both are where a
    softmax is saturated. Random signs stand for those of the rounding errors. Costs two products,
    zero for a loss of one's own, of which no terms are known.

    Args:
        problem: The objective.
        vector: The direction.
    """
    sizes = [float(vector @ product(vector).double()) for product in _products_of_terms(problem)]
    return LEAST_ROUNDING * EPSILON * max(sizes, default=0.0)


def matrix_rounding(problem: LossFunction) -> float:
    """Return the same for the direction in which it is largest: the norm of the rounding of H.

    By a few steps of power iteration, doubled.
    """
    start = torch.randn(problem.size, generator=generator(0), dtype=torch.float64)
    size, problem = 0.0, problem.in_double()
    for product in _products_of_terms(problem):
        vector = start
        for _ in range(POWER):
            vector = product(vector / max(TINY, _length(vector)))
            size = max(size, _length(vector))
    return 2 * LEAST_ROUNDING * EPSILON * size


def _length(vector: Float64[Tensor, " p"]) -> float:
    """Return the norm of a vector whose squares may overflow."""
    largest = vector.abs().max().clamp_min(TINY)
    return float(largest) * float((vector / largest).norm())


def _products_of_terms(problem: LossFunction) -> Iterator[HessianProducts]:
    """Yield the products of which the curvature of terms is computed, for both signs of errors."""
    if not has_terms(problem):
        return
    for sign in (1.0, -1.0):
        terms = [_surrogate(problem, span, sign) for span in problem.spans()]
        yield HessianProducts(terms, problem.tensors)


def _surrogate(problem: LossFunction, span: slice, sign: float) -> Term:
    """Return the part of the function of some samples whose curvature is that of the rounding."""
    value = partial(_surrogate_value, problem, span, sign)
    return Term(weight=(span.stop - span.start) / len(problem.x), value=value)


def _surrogate_value(problem: LossFunction, span: slice, sign: float) -> Tensor:
    outputs = problem.outputs(span)
    still = outputs.detach()
    curvature, slope = TERMS[str(problem.loss)](still, problem.labels(span, still))
    drawn = torch.rand(still.shape, generator=generator(span.start), dtype=torch.float64)
    signs = sign * torch.where(drawn < 0.5, -1.0, 1.0).to(still)
    moved = outputs - still
    return (slope * signs * moved).sum() + (curvature / 2 * moved.square()).sum()


def _mse_terms(f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sizes of the terms of second and first derivatives by each output."""
    scale = 2 / f.numel()
    return torch.full_like(f, scale), scale * (f.abs() + y.abs())


def _logistic_terms(f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    size = (1 + f.abs()) / f.numel()
    return size, size


def _softmax_terms(f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    largest = f.abs().amax(1, keepdim=True)
    mass = y.abs().sum(1, keepdim=True) if y.is_floating_point() else 1.0
    size = ((1 + largest) * mass * (f.shape[1] / f.numel())).expand_as(f)
    return size, size


#: Sizes of the terms by loss: of its second derivatives, and of its first ones.
TERMS = {"mse": _mse_terms, "bce_logits": _logistic_terms, "cross_entropy": _softmax_terms}
