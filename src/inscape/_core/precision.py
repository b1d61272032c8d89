"""Modules in another precision, complex weights included."""

from typing import TypeVar

import torch
from torch import Tensor, nn

from inscape._core.copies import module_copy

Module = TypeVar("Module", bound=nn.Module)


def real_dtype(tensor: Tensor) -> torch.dtype:
    """Return the dtype of a tensor, of a complex one that of its real part."""
    return tensor.dtype.to_real() if tensor.is_complex() else tensor.dtype


def converted_copy(module: Module, dtype: torch.dtype) -> Module:
    """Return a copy of a module in another precision, each of its parts in the mode that it has.

    (Copies of Keras models come back in training mode.)
    """
    copied = module_copy(module)
    for part, original in zip(copied.modules(), module.modules(), strict=True):
        part.training = original.training
    return to_precision(copied, dtype)


def to_precision(module: Module, dtype: torch.dtype) -> Module:
    """Convert a module, in place, and return it.

    ``module.to(torch.float64)`` would drop the imaginary part of complex weights, and
    ``module.double()`` would leave them in single precision.

    Args:
        module: The module; integers and booleans in it stay what they are.
        dtype: A floating-point dtype; complex tensors get the complex one of that precision.

    >>> layer = to_precision(nn.Linear(2, 1, dtype=torch.complex64), torch.float64)
    >>> layer.weight.dtype
    torch.complex128
    """

    def convert(tensor: Tensor) -> Tensor:
        if tensor.is_complex():
            return tensor.to(dtype.to_complex())
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    converted: Module = module._apply(convert)  # type: ignore[no-untyped-call]
    return converted
