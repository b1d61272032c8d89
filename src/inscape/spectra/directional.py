"""The derivative of a function along one direction, by two backward passes."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel


def directional(
    f: Callable[..., Tensor], at: Sequence[Tensor], along: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return ``f(*at)`` and its derivative as the arguments move along ``along``.

    The backward pass of ``f`` is linear in what it is given; its own derivative is what we want.
    Unlike forward mode this needs no rules beyond those of training with a gradient penalty. Of the
    kernels of attention only the plain one has second derivatives.
    """
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        at = [tensor.detach().requires_grad_() for tensor in at]
        value = f(*at)
        if not value.requires_grad:  # a constant function
            return value.detach(), torch.zeros_like(value)
        pulled = torch.zeros_like(value, requires_grad=True)
        gradients = torch.autograd.grad(
            value, at, pulled, create_graph=True, materialize_grads=True
        )
        total = sum((g * v).sum() for g, v in zip(gradients, along, strict=True))
        assert isinstance(total, Tensor)
        (moved,) = torch.autograd.grad(total, pulled, materialize_grads=True)
    return value.detach(), moved
