"""A network as a chain: affine maps with 1-Lipschitz activations between them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx

from inscape._core.checks import Function
from inscape.errors import UnsupportedModelError
from inscape.piecewise.graph.cache import export
from inscape.piecewise.graph.ops import (
    SHAPES,
    arguments,
    is_affine,
    is_relu,
    keeps_batch,
    name_of,
    place_of,
    setting,
)
from inscape.piecewise.graph.program import Program

#: Functions of one argument whose outputs are never farther apart than their inputs.
ONE_LIPSCHITZ = frozenset(
    {
        *("abs", "tanh", "sigmoid", "softplus", "hardtanh", "relu6", "hardsigmoid", "sin", "cos"),
        *("clamp", "clamp_min", "clamp_max", "celu", "log_sigmoid", "atan"),
    }
)


@dataclass(frozen=True, eq=False)
class AffineSegment:
    """The affine map from one node of a graph to another."""

    program: Program
    start: fx.Node
    end: fx.Node
    name: str
    input_shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the input shape of the map, without the batch."""
        return tuple(self.start.meta["val"].shape[1:])

    def __call__(self, rows: Tensor) -> Tensor:
        """Evaluate the map for a batch, flat in the outputs."""
        known = {self.start: rows}
        if self.start is not self.program.input:
            known[self.program.input] = rows.new_zeros(len(rows), *self.input_shape)
        (end,) = self.program.run(known, [self.end])
        flat: Tensor = end.reshape(len(rows), -1)
        return flat

    def weight(self) -> Tensor | None:
        """Return the matrix where the map is a single linear layer on vectors."""
        if name_of(self.end) != "linear" or self.end.args[0] is not self.start:
            return None
        matrix = self.end.args[1]
        known = self.program.constants.get(matrix) if isinstance(matrix, fx.Node) else None
        return known if known is not None and len(self.shape) == 1 else None


def chain(f: Function, x: Tensor) -> tuple[AffineSegment, ...]:
    """Return the affine maps of ``f`` in their order, or raise ``UnsupportedModelError``.

    Between two of them is an activation that is 1-Lipschitz in the Euclidean norm. Layers with
    nothing between them (a convolution and its batch norm in eval mode) are one map.
    """
    program = export(f, x)
    source: dict[fx.Node, fx.Node] = {program.input: program.input}
    for node in program.nodes:
        read = [arg for arg in arguments(node) if arg in source]
        if read and name_of(node) not in SHAPES:
            source[node] = _source(node, read, source, program.batch)
    if program.output not in source:
        raise UnsupportedModelError("its output does not depend on its input")
    segments: list[AffineSegment] = []
    end = program.output
    while True:
        start = source[end]
        if end is not start:
            name = _name(program, start, end, source)
            segments.append(AffineSegment(program, start, end, name, tuple(x.shape[1:])))
        if start is program.input:
            return tuple(reversed(segments))
        end = next(arg for arg in arguments(start) if arg in source)


def _source(
    node: fx.Node, read: list[fx.Node], source: dict[fx.Node, fx.Node], batch: Any
) -> fx.Node:
    """Return the activation, or the input, in which a node is affine; itself for an activation."""
    if not keeps_batch(node, batch):
        raise UnsupportedModelError(f"{place_of(node)} moves the batch from the first dimension")
    if is_affine(node, source.__contains__):
        first, *others = {source[arg]: None for arg in read}
        if others:
            raise UnsupportedModelError(
                f"it is no chain of layers: several branches meet in {place_of(node)}"
            )
        return first
    if len(read) == 1 and is_one_lipschitz(node):
        return node
    raise UnsupportedModelError(f"{place_of(node)} is neither affine nor known to be 1-Lipschitz")


def is_one_lipschitz(node: fx.Node) -> bool:
    """Return whether an operation is known to be 1-Lipschitz."""
    name = name_of(node)
    if is_relu(node) or name in ONE_LIPSCHITZ:
        return True
    if name == "softmax":
        return bool(setting(node, "dim") % node.meta["val"].ndim)
    check = _CHECKS.get(name)
    return check is not None and check(*node.args[1:], **node.kwargs)


def _pooling(kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, *_: Any) -> bool:
    """Tell whether the windows do not overlap, so that no input counts twice."""
    sizes = _pair(kernel)
    return max(_pair(dilation)) == 1 and all(
        step >= size for step, size in zip(_pair(stride) or sizes, sizes, strict=True)
    )


def _pair(value: Any) -> tuple[int, ...]:
    """Return a size for both directions; none where it is left out."""
    sizes = tuple(value) if isinstance(value, list | tuple) else (value,)
    return sizes * 2 if len(sizes) == 1 else sizes


def _elu(alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> bool:
    return max(1.0, abs(alpha * input_scale)) * abs(scale) <= 1.0


#: Operations that are 1-Lipschitz for some settings only.
_CHECKS: dict[str, Callable[..., bool]] = {
    "leaky_relu": lambda slope=0.01: abs(slope) <= 1,
    "elu": _elu,
    "max_pool1d": _pooling,
    "max_pool2d": _pooling,
}


def _name(program: Program, start: fx.Node, end: fx.Node, source: dict[fx.Node, fx.Node]) -> str:
    """Return the modules whose weights a map uses, or its last operation where there are none."""
    inside = [node for node in program.nodes if source.get(node) is start and node is not start]
    places = [_module(n) for n in inside if any(a in program.constants for a in arguments(n))]
    return " + ".join(dict.fromkeys(filter(None, places))) or name_of(end)


def _module(node: fx.Node) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    return next((path for path, _ in reversed(stack.values()) if path), "")
