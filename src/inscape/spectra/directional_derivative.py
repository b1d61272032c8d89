"""Directional derivatives (JVPs) in forward mode, by a double backward pass, or row by row."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from inscape.functional.forward_mode import forward_derivative


def directional_derivative(
    f: Callable[..., Tensor], primals: Sequence[Tensor], tangents: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return ``f(*primals)`` and its directional derivative (JVP) along ``tangents``.

    In forward mode where all operations support it and the result agrees with a gradient, else by
    a double backward pass, or by one backward pass for each number of the output where an operation
    (``torch.cdist``) has no second derivative. Of the attention kernels only the plain one has.
    """
    with sdpa_kernel(SDPBackend.MATH):
        pair = forward_derivative(f, primals, tangents)
        if pair is not None and _agrees(f, primals, tangents, pair[1]):
            return pair
        try:
            return _by_double_backward(f, primals, tangents)
        except NotImplementedError:
            return _by_single_backwards(f, primals, tangents)


def _agrees(
    f: Callable[..., Tensor],
    primals: Sequence[Tensor],
    tangents: Sequence[Tensor],
    derivative: Tensor,
) -> bool:
    """Tell whether a directional derivative agrees with the gradient of a sum of outputs."""
    cotangent = torch.ones_like(derivative).flatten()
    cotangent[1::2] = -0.5
    cotangent = cotangent.view_as(derivative)
    with torch.enable_grad():
        primals = [tensor.detach().requires_grad_() for tensor in primals]
        output = f(*primals)
        if not output.requires_grad:
            return not bool(derivative.any())
        gradients = torch.autograd.grad(output, primals, cotangent, materialize_grads=True)
    products = [(g * v).double().sum() for g, v in zip(gradients, tangents, strict=True)]
    sizes = [float(g.norm()) * float(v.norm()) for g, v in zip(gradients, tangents, strict=True)]
    expected = (cotangent * derivative).double()
    error = abs(float(sum(products)) - float(expected.sum()))
    size = sum(sizes) + float(expected.abs().sum())
    return bool(error <= torch.finfo(derivative.dtype).eps ** 0.5 * size)


def _by_double_backward(
    f: Callable[..., Tensor], primals: Sequence[Tensor], tangents: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """The VJP of ``f`` is linear in its cotangent; its derivative in that is the JVP."""
    with torch.enable_grad():
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


def _by_single_backwards(
    f: Callable[..., Tensor], primals: Sequence[Tensor], tangents: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Multiply the gradient of each number of the output by the tangents."""
    with torch.enable_grad():
        primals = [tensor.detach().requires_grad_() for tensor in primals]
        output = f(*primals)
        numbers = output.flatten().unbind()
    derivative = torch.zeros_like(output.detach()).flatten()
    for k, number in enumerate(numbers):
        gradients = torch.autograd.grad(number, primals, retain_graph=True, materialize_grads=True)
        products = [(g * v).sum() for g, v in zip(gradients, tangents, strict=True)]
        derivative[k] = torch.stack(products).sum()
    return output.detach(), derivative.view_as(output)
