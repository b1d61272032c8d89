"""The smoothness measures as the thesis writes them: loops, one point at a time."""

import itertools
from collections.abc import Callable

import torch
from torch import Tensor


def jacobian(f: Callable[[Tensor], Tensor], point: Tensor) -> Tensor:
    """Return the Jacobian at one point by plain autograd, one output after the other."""
    point = point.detach()[None].requires_grad_()
    y = f(point).reshape(-1)
    rows = [torch.autograd.grad(out, point, retain_graph=True)[0].flatten() for out in y]
    return torch.stack(rows)


def difference_jacobian(f: Callable[[Tensor], Tensor], point: Tensor, step: float = 1e-6) -> Tensor:
    """Return the Jacobian at one point by central differences."""
    columns = []
    for k in range(point.numel()):
        shift = torch.zeros_like(point).flatten()
        shift[k] = step
        shift = shift.reshape(point.shape)
        columns.append((f((point + shift)[None]) - f((point - shift)[None])).flatten() / (2 * step))
    return torch.stack(columns, dim=1).detach()


def variation(rows: list[Tensor]) -> Tensor:
    """Return the length of the polygonal path through the vertices."""
    moves = [(b - a).norm() for a, b in itertools.pairwise(rows)]
    return torch.stack(moves).sum()


def on_segment(g: Callable[[Tensor], Tensor], a: Tensor, b: Tensor, knots: int) -> Tensor:
    """Return the variation of ``g`` over equidistant knots from ``a`` to ``b``, Eq. (3.6)."""
    shares = [i / (knots - 1) for i in range(knots)]
    return variation([g(a + t * (b - a)).detach().flatten() for t in shares])
