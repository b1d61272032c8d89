"""Slopes of elementwise functions, and Lipschitz constants of other operations."""

from collections.abc import Callable, Mapping
from math import gcd, prod, sqrt
from typing import Any

from torch import Tensor, fx

from inscape.piecewise.graph.lipschitz_chain import is_one_lipschitz
from inscape.piecewise.graph.ops import is_relu, name_of, setting

#: Least and largest slope of elementwise functions; other than integers rounded outwards.
SLOPES: dict[str, tuple[float, float]] = {
    "abs": (-1.0, 1.0),
    "tanh": (0.0, 1.0),
    "sigmoid": (0.0, 0.25),
    "softplus": (0.0, 1.0),
    "hardtanh": (0.0, 1.0),
    "relu6": (0.0, 1.0),
    "hardsigmoid": (0.0, 0.1666667),
    "hardswish": (-0.5, 1.5),
    "sin": (-1.0, 1.0),
    "cos": (-1.0, 1.0),
    "clamp": (0.0, 1.0),
    "clamp_min": (0.0, 1.0),
    "clamp_max": (0.0, 1.0),
    "celu": (0.0, 1.0),
    "log_sigmoid": (0.0, 1.0),
    "atan": (0.0, 1.0),
    "erf": (0.0, 1.12838),
    "gelu": (-0.12905, 1.12905),
    "mish": (-0.11253, 1.0885),
    "silu": (-0.09985, 1.09985),
    "softshrink": (0.0, 1.0),
}


def slopes_of(node: fx.Node, constants: Mapping[fx.Node, Tensor]) -> tuple[float, float] | None:
    """Return the least and the largest slope of an elementwise function, if it is one."""
    name = name_of(node)
    if is_relu(node):
        return 0.0, 1.0
    if name == "prelu":
        weight = constants.get(node.args[1]) if isinstance(node.args[1], fx.Node) else None
        slopes = [1.0] if weight is None else [1.0, *weight.detach().flatten().tolist()]
        return None if weight is None else (min(slopes), max(slopes))
    if name in _SETTINGS:
        return _SETTINGS[name](node)
    return SLOPES.get(name)


def stretch_of(node: fx.Node) -> float | None:
    r"""Return the Lipschitz constant of an operation that is not elementwise.

    The Jacobian of softmax, :math:`\mathrm{diag}(p) - p p^T`, has rows of an absolute sum of at
    most 1/2. That of its logarithm, :math:`I - 1 p^T`, is a projection and has the norm of the
    complementary one, :math:`\sqrt{k} \, \lVert p \rVert`. A number that lies in m windows of a
    pooling counts m times at most.
    """
    name, value = name_of(node), node.meta["val"]
    if name in ("softmax", "log_softmax"):
        dim = setting(node, "dim") % value.ndim
        if dim == 0:
            return None
        return 0.5 if name == "softmax" else sqrt(value.shape[dim])
    if name in ("amax", "amin", "logsumexp"):
        dims, before = setting(node, "dim"), node.args[0]
        assert isinstance(before, fx.Node)
        dims = [dims] if isinstance(dims, int) else list(dims)
        return 1.0 if dims and all(dim % before.meta["val"].ndim for dim in dims) else None
    if name in ("max_pool1d", "max_pool2d", "max_pool3d"):
        return sqrt(_windows(int(name[-2]), *node.args[1:], **node.kwargs))
    return 1.0 if is_one_lipschitz(node) else None


def softsign_of(node: fx.Node) -> tuple[fx.Node, fx.Node | None] | None:
    """Return z where a node is z / (1 + abs(z)), as softsign comes out.

    Beside it the node of abs(z) if nothing else uses it, else None.
    """
    above, below = node.args[:2] if name_of(node) == "div" else (None, None)
    if not isinstance(below, fx.Node) or name_of(below) != "add" or below.kwargs:
        return None
    size = next((arg for arg in below.args if isinstance(arg, fx.Node)), None)
    if size is None or name_of(size) != "abs" or below.args not in ((size, 1), (1, size)):
        return None
    if not isinstance(above, fx.Node) or size.args[0] is not above:
        return None
    return above, size if len(size.users) == len(below.users) == 1 else None


def _windows(
    dims: int,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    *_: Any,
    **__: Any,
) -> int:
    """Return in how many windows of a pooling a number lies, at most."""
    sizes = _per_dimension(kernel, dims)
    steps = _per_dimension(stride, dims) or sizes
    gaps = _per_dimension(dilation, dims)
    return prod(
        -(-size * gcd(step, gap) // step)
        for size, step, gap in zip(sizes, steps, gaps, strict=True)
    )


def _per_dimension(value: Any, dims: int) -> tuple[int, ...]:
    """Return a size for each direction; none where it is left out."""
    sizes = tuple(value) if isinstance(value, list | tuple) else (value,)
    return sizes * dims if len(sizes) == 1 else sizes


def _leaky(node: fx.Node) -> tuple[float, float]:
    slope = setting(node, "negative_slope")
    slope = 0.01 if slope is None else float(slope)
    return min(slope, 1.0), max(slope, 1.0)


def _elu(node: fx.Node) -> tuple[float, float]:
    alpha, scale, inner = (setting(node, key) for key in ("alpha", "scale", "input_scale"))
    alpha, scale, inner = (
        1.0 if number is None else float(number) for number in (alpha, scale, inner)
    )
    ends = (0.0, scale, alpha * scale * inner)
    return min(ends), max(ends)


#: Those whose slopes depend on their settings.
_SETTINGS: dict[str, Callable[[fx.Node], tuple[float, float]]] = {
    "leaky_relu": _leaky,
    "elu": _elu,
    "selu": lambda node: (0.0, 1.0507009873554805 * 1.6732632423543772),
}
