"""Weights held at a norm: the largest singular value, or the length of each row."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from inscape.controls.layers import Held, Layer, M, held_everywhere


class SpectralScale(Held):
    """Weights whose largest singular value is always the same."""

    def __init__(self, target: float) -> None:
        super().__init__()
        self.target = target

    def extra_repr(self) -> str:
        """Return the norm."""
        return f"target={self.target:.4g}"

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weights, scaled; exact, with exact derivatives of any order."""
        matrix = weight.flatten(1)
        wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
        apply: Callable[..., tuple[Tensor, Tensor]] = _Largest.apply
        largest = apply(wide) if torch.is_grad_enabled() and weight.requires_grad else _norm(wide)
        return weight * (self.target / largest[0])


class RowScale(Held):
    """Weights whose rows, one for each output, all have the same length."""

    def __init__(self, target: float) -> None:
        super().__init__()
        self.target = target

    def extra_repr(self) -> str:
        """Return the length."""
        return f"target={self.target:.4g}"

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weights, scaled."""
        return (self.target * normalize(weight.flatten(1), dim=1)).view_as(weight)


class _Largest(torch.autograd.Function):
    r"""Return the largest singular value of a matrix, and its left singular vector.

    .. math:: \nabla \sigma = u v^T

    The vector that is returned is a constant; that of the gradient is a function of the matrix, so
    that gradients of the gradient are right.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(wide: Tensor) -> tuple[Tensor, Tensor]:
        return _norm(wide)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*inputs, output[1])
        ctx.save_for_forward(*inputs, output[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> Any:
        wide, left_vector = ctx.saved_tensors
        apply: Callable[..., Tensor] = _Left.apply
        left_vector = apply(wide, left_vector)
        return gradient * torch.outer(left_vector, normalize(wide.T @ left_vector, dim=0))

    @staticmethod
    def jvp(ctx: Any, change: Tensor) -> tuple[Tensor, None]:
        wide, left_vector = ctx.saved_tensors
        apply: Callable[..., Tensor] = _Left.apply
        left_vector = apply(wide, left_vector)
        return torch.dot(left_vector, change @ normalize(wide.T @ left_vector, dim=0)), None


class _Left(torch.autograd.Function):
    r"""Return the left singular vector of the largest singular value: known, now as a function.

    .. math:: du = (\sigma^2 - W W^T)^+ \, (dW \, W^T + W \, dW^T) \, u

    It is not one where two singular values are the largest.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(wide: Tensor, left_vector: Tensor) -> Tensor:
        return left_vector.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        wide, left_vector = ctx.saved_tensors
        turned = _pseudo_inverse_product(wide, left_vector, gradient)
        by = torch.outer(turned, wide.T @ left_vector) + torch.outer(left_vector, wide.T @ turned)
        return by, None

    @staticmethod
    def jvp(ctx: Any, change: Tensor, _: Any) -> Tensor:
        wide, left_vector = ctx.saved_tensors
        return _pseudo_inverse_product(
            wide, left_vector, change @ (wide.T @ left_vector) + wide @ (change.T @ left_vector)
        )


def _pseudo_inverse_product(wide: Tensor, left_vector: Tensor, value: Tensor) -> Tensor:
    """Apply the pseudo-inverse of the largest eigenvalue minus the Gram matrix."""
    right_vector = wide.T @ left_vector
    square = torch.dot(right_vector, right_vector)
    identity = torch.eye(len(left_vector), dtype=left_vector.dtype, device=left_vector.device)
    shifted = square * (identity + torch.outer(left_vector, left_vector)) - wide @ wide.T
    value = value - left_vector * torch.dot(left_vector, value)
    solved: Tensor = torch.linalg.solve_ex(shifted, value[:, None])[0][:, 0]
    return solved


def spectral_scale(module: M, norm: float | Sequence[float]) -> M:
    r"""Hold the largest singular value of each layer's weights.

    .. math:: \tilde W = W \, \frac{\rho}{\lVert W \rVert_2}

    Then the network's Lipschitz constant is at most the product of the norms (with 1-Lipschitz
    activations and dense layers). For convolutions W is the matrix of one row per output channel,
    whose norm bounds that of the convolution up to the root of the kernel's size. Exact at every
    step, by a decomposition of the smaller Gram matrix, with derivatives of any order (a second one
    solves a system of that size, and there is none where two singular values are the largest);
    :func:`release` makes plain layers of it.

    >>> net = spectral_scale(torch.nn.Linear(3, 5), 2.0)
    >>> round(torch.linalg.matrix_norm(net.weight.detach(), 2).item(), 5)
    2.0

    Args:
        module: A Linear or Conv layer, or a model; changed in place, and returned.
        norm: Largest singular value, for all layers or for each.
    """

    def parametrizations_of(layer: Layer, value: float, place: str) -> dict[str, Held]:
        _check_nonzero(layer.weight, f"weights of {place}", rows=False)
        return {"weight": SpectralScale(value)}

    return held_everywhere(module, norm, "norm", parametrizations_of)


def row_scale(module: M, norm: float | Sequence[float]) -> M:
    r"""Hold the length of the weights of each output of each layer.

    .. math:: \tilde w_i = w_i \, \frac{\rho}{\lVert w_i \rVert}

    Every unit then has the same steepness. :func:`release` makes plain layers of it.

    >>> net = row_scale(torch.nn.Linear(3, 5), 2.0)
    >>> [round(length, 5) for length in net.weight.norm(dim=1).tolist()]
    [2.0, 2.0, 2.0, 2.0, 2.0]

    Args:
        module: A Linear or Conv layer, or a model; changed in place, and returned.
        norm: Length of a row, for all layers or for each.
    """

    def parametrizations_of(layer: Layer, value: float, place: str) -> dict[str, Held]:
        _check_nonzero(layer.weight, f"weights of {place}", rows=True)
        return {"weight": RowScale(value)}

    return held_everywhere(module, norm, "norm", parametrizations_of)


def _norm(wide: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest singular value of a matrix, and its left singular vector."""
    _, vectors = torch.linalg.eigh((wide @ wide.T).double())
    right = normalize(wide.T @ vectors[:, -1].to(wide.dtype), dim=0)
    left_vector = normalize(wide @ right, dim=0)
    return torch.dot(left_vector, wide @ right), left_vector


@torch.no_grad()
def _check_nonzero(weight: Tensor, name: str, *, rows: bool) -> None:
    sizes = weight.flatten(1).norm(dim=1)
    if not bool(sizes.isfinite().all()):
        raise ValueError(
            f"the {name} must be finite, found NaN or Inf: load an earlier checkpoint."
        )
    if not bool((sizes > 0).all() if rows else (sizes > 0).any()):
        raise ValueError(
            f"the {name} must not be zero, found {'a row' if rows else 'nothing else'}: draw them "
            "at random first."
        )
