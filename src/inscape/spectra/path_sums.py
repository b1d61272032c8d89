"""Sums over all paths of a network: its forward pass with the sizes of its weights."""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from inscape.errors import UnsupportedModelError

#: Operations that pass every path on, or add paths up.
PASSING = frozenset({
    "add", "add_", "__add__", "__radd__", "__iadd__", "cat", "concat", "flatten", "reshape", "view",
    "squeeze", "unsqueeze", "permute", "transpose", "contiguous", "clone", "sum", "__getitem__",
    "split", "chunk", "stack", "pad", "size", "dim", "numel", "__get__", "__len__", "expand",
    "is_floating_point", "broadcast_tensors", "view_as", "unflatten",
})  # fmt: skip
#: Activations that scale with their input, with a slope of at most 1.
HOMOGENEOUS = frozenset({"relu", "relu_", "leaky_relu", "leaky_relu_", "dropout", "identity"})
SCALING = frozenset({"mul", "mul_", "__mul__", "__rmul__", "__imul__"})
DIVIDING = frozenset({"div", "div_", "__truediv__", "__itruediv__", "true_divide"})
LAYERS: dict[str, Callable[..., Tensor]] = {
    "linear": functional.linear,
    "conv1d": functional.conv1d,
    "conv2d": functional.conv2d,
    "conv3d": functional.conv3d,
}


@torch.no_grad()
def path_sum(model: nn.Module, x: Tensor, *, order: int) -> float:
    r"""Return the sum over all paths from an input or a bias to an output.

    .. math:: \sum_{\text{paths}} \prod_{w \in \text{path}} |w|^p

    A pass on ones with :math:`|w|^p` for every weight, activations left out and maxima as sums.
    Raises UnsupportedModelError at what is neither linear nor positively homogeneous.
    """
    body = deepcopy(model).double()
    ones = torch.ones(1, *x.shape[1:], dtype=torch.float64, device=x.device)
    total = _pass(body, ones, order)
    for parameter in body.parameters():
        parameter.neg_()
    if abs(_pass(body, ones, order) - total) > 1e-9 * abs(total):
        raise UnsupportedModelError("its weights are used where their sizes cannot replace them")
    return total


def _pass(body: nn.Module, ones: Tensor, order: int) -> float:
    """Return the sum of the outputs of one pass."""
    inputs = ones.clone()
    try:
        with _PathSums(order):
            outputs = body(inputs)
        total = float(outputs.sum())
    except UnsupportedModelError:
        raise
    except Exception as error:
        raise UnsupportedModelError(f"its forward pass does not sum over paths: {error}") from error
    if not math.isfinite(total):
        raise UnsupportedModelError("its sum over paths overflows")
    return total


class _PathSums(TorchFunctionMode):
    """Replaces each operation of a forward pass by its sum over paths."""

    def __init__(self, order: int) -> None:
        super().__init__()
        self.order = order

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs, name = kwargs or {}, getattr(func, "__name__", str(func))
        if name in HOMOGENEOUS:
            return args[0]
        if name in PASSING:
            return func(*(self._size(value) for value in args), **kwargs)
        if name in SCALING or name in DIVIDING:
            return self._scaled(func, name, args)
        if name in LAYERS:
            return self._layer(LAYERS[name], *args, **kwargs)
        if name == "batch_norm":
            return self._batch_norm(*args, **kwargs)
        if name == "mean" or name.startswith("adaptive_avg_pool"):
            out = func(*args, **kwargs)
            return out / (args[0].numel() / out.numel()) ** (self.order - 1)
        if name.startswith("avg_pool"):
            out = func(*args, **kwargs)
            return out / self._window(name, args, kwargs) ** (self.order - 1)
        if name.startswith("max_pool"):
            return self._sum_pool(name, *args, **kwargs)
        if name.startswith("adaptive_max_pool"):
            return self._sum_to_one(args[0], *args[1:], **kwargs)
        raise UnsupportedModelError(f"{name!r} is neither linear nor positively homogeneous")

    def _size(self, value: Any) -> Any:
        """Return the size of a parameter that is added; everything else as it is."""
        return value.abs() ** self.order if isinstance(value, nn.Parameter) else value

    def _scaled(self, func: Any, name: str, args: tuple[Any, ...]) -> Any:
        factors = [a for a in args[:2] if isinstance(a, nn.Parameter | int | float)]
        signals = [a for a in args[:2] if not isinstance(a, nn.Parameter | int | float)]
        if len(factors) != 1 or (name in DIVIDING and factors[0] is args[0]):
            raise UnsupportedModelError(f"{name!r} multiplies what depends on the input")
        factor: Any = factors[0]
        size = abs(factor) ** self.order
        return signals[0] / size if name in DIVIDING else signals[0] * size

    def _layer(
        self, layer: Callable[..., Tensor], x: Tensor, weight: Tensor, bias: Any = None, *args: Any,
        **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        if bias is not None:
            bias = bias.abs() ** self.order
        return layer(x, weight.abs() ** self.order, bias, *args, **kwargs)

    def _batch_norm(
        self, x: Tensor, mean: Tensor | None, var: Tensor | None, weight: Any = None,
        bias: Any = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
    ) -> Tensor:  # fmt: skip
        if mean is None or var is None or training:
            raise UnsupportedModelError("batch norm has no running statistics")
        scale = (var + eps).rsqrt() * (1.0 if weight is None else weight)
        shift = (0.0 if bias is None else bias) - mean * scale
        shape = (-1, *[1] * (x.ndim - 2))
        return x * (scale.abs() ** self.order).reshape(shape) + (shift.abs() ** self.order).reshape(
            shape
        )

    def _window(self, name: str, args: tuple[Any, ...], kwargs: Any) -> int:
        size = args[1] if len(args) > 1 else kwargs["kernel_size"]
        axes = int(name[-2])
        sizes = size if isinstance(size, tuple | list) else (size,) * axes
        return int(torch.Size(sizes).numel() if len(sizes) == axes else sizes[0] ** axes)

    def _sum_pool(
        self, name: str, x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
        dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False,
    ) -> Tensor:  # fmt: skip
        if dilation not in (1, (1,), (1, 1), (1, 1, 1)) or name[-2] not in "123":
            raise UnsupportedModelError(f"{name!r} with dilation has no sum over paths here")
        pool = getattr(functional, f"avg_pool{name[-2:]}")
        pooled: Tensor = pool(x, kernel_size, stride, padding, ceil_mode)
        return pooled * self._window(name, (x, kernel_size), {})

    def _sum_to_one(self, x: Tensor, output_size: Any, *args: Any, **kwargs: Any) -> Tensor:
        if output_size not in (1, (1,), (1, 1), (1, 1, 1)):
            raise UnsupportedModelError("an adaptive pool to more than one place")
        axes = tuple(range(2, x.ndim))
        return x.sum(axes, keepdim=True)
