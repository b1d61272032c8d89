"""Directional derivatives (JVPs) by a double backward pass."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel


def directional_derivative(
    f: Callable[..., Tensor], primals: Sequence[Tensor], tangents: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return ``f(*primals)`` and its directional derivative (JVP) along ``tangents``.

    The VJP of ``f`` is linear in its cotangent; its derivative in that is the JVP. Unlike forward
    mode this needs no rules beyond those of training with a gradient penalty. Of the attention
    kernels only the plain one has second derivatives.
    """
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        primals = [tensor.detach().requires_grad_() for tensor in primals]
        output = f(*primals)
        if not output.requires_grad:  # a constant function
            return output.detach(), torch.zeros_like(output)
        cotangent = torch.zeros_like(output, requires_grad=True)
        gradients = torch.autograd.grad(
            output, primals, cotangent, create_graph=True, materialize_grads=True
        )
        product = sum((g * v).sum() for g, v in zip(gradients, tangents, strict=True))
        assert isinstance(product, Tensor)
        (tangent_output,) = torch.autograd.grad(product, cotangent, materialize_grads=True)
    return output.detach(), tangent_output
