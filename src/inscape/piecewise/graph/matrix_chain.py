"""A network as a plain chain of matrices with a kink in every hidden unit, where it is one."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor, fx

from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.graph.ops import SHAPES, arguments, name_of

#: Matrices with more numbers than this are left to the graph: a convolution is not one.
LARGEST = 2**23
#: Numbers of the unit vectors that are sent through a map at once.
BLOCK = 2**21

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class MatrixChain:
    """h_1 = kink(first(x)), h_{l+1} = kink(W_l h_l + b_l), y = W_L h_L + b_L.

    A kink keeps what is above zero and multiplies what is not by the slope of its unit. The map
    to the first hidden layer stays in the graph: slices and lines need it at a few points only.
    """

    net: Piecewise
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    slopes: tuple[Array, ...]

    def first(self, x: Float64[Tensor, "n *d"]) -> Array:
        """Return the first hidden layer before its kinks, for each row."""
        return np.ascontiguousarray(self.net.functions(x, 0).numpy())


@torch.no_grad()
def layers(net: Piecewise) -> MatrixChain | None:
    """Return the network as a chain of matrices; None where it is another graph."""
    if not net.ops or any(op.slope is None for op in net.ops) or not is_chain(net):
        return None
    nodes = [op.node for op in net.ops]
    ends = [*(node.args[0] for node in nodes[1:]), net.program.output]
    sizes = [_size(node) for node in nodes]
    if any(m * n > LARGEST for m, n in zip(sizes, [*sizes[1:], net.outputs], strict=True)):
        return None
    maps = [matrix(net, start, end) for start, end in zip(nodes, ends, strict=True)]
    return MatrixChain(
        net=net,
        weights=tuple(weight for weight, _ in maps),
        biases=tuple(bias for _, bias in maps),
        slopes=tuple(slopes_of(net, at) for at in range(len(nodes))),
    )


def _size(node: fx.Node) -> int:
    return int(torch.tensor(node.meta["val"].shape[1:]).prod())


def is_chain(net: Piecewise) -> bool:
    """Tell whether each piecewise-linear operation reads the one before it and nothing else."""
    program, ops = net.program, {op.node for op in net.ops}
    reads: dict[fx.Node, set[fx.Node]] = {program.input: {program.input}}
    for node in program.nodes:
        if name_of(node) in SHAPES:
            continue
        sources = set().union(*(_seen(arg, reads, ops) for arg in arguments(node)))
        if sources:
            reads[node] = sources
    order = [program.input, *(op.node for op in net.ops)]
    chained = all(reads[b] == {a} for a, b in itertools.pairwise(order))
    return chained and _seen(program.output, reads, ops) == {order[-1]}


def _seen(arg: fx.Node, reads: dict[fx.Node, set[fx.Node]], ops: set[fx.Node]) -> set[fx.Node]:
    return {arg} if arg in ops else reads.get(arg, set())


def matrix(net: Piecewise, start: fx.Node, end: Any) -> tuple[Array, Array]:
    """Return the matrix and the constant of the affine map from one node to another."""
    weight = plain_weight(net, start, end)
    bias = _values(net, start, end, torch.zeros(1, _size(start), dtype=torch.float64))[0]
    if weight is None:
        weight = torch.empty(len(bias), _size(start), dtype=torch.float64)
        for columns in torch.split(torch.arange(_size(start)), max(1, BLOCK // _size(start))):
            units = torch.zeros(len(columns), _size(start), dtype=torch.float64)
            units[torch.arange(len(columns)), columns] = 1.0
            weight[:, columns] = (_values(net, start, end, units) - bias).T
    return np.ascontiguousarray(weight.numpy()), np.ascontiguousarray(bias.numpy())


def _values(
    net: Piecewise, start: fx.Node, end: Any, rows: Float64[Tensor, "n m"]
) -> Float64[Tensor, "n k"]:
    """Return the values of one node for given values of another, flat."""
    x = rows.new_zeros(len(rows), *net.input_shape)
    given = rows.reshape(len(rows), *start.meta["val"].shape[1:])
    (values,) = net.program.run({net.program.input: x, start: given}, [end])
    return torch.as_tensor(values).reshape(len(rows), -1)


def plain_weight(net: Piecewise, start: fx.Node, end: fx.Node) -> Tensor | None:
    """Return the weight of a single linear layer, which finite differences would round."""
    if name_of(end) != "linear" or end.args[0] is not start or start.meta["val"].ndim != 2:
        return None
    weight = end.args[1]
    return net.program.constants.get(weight) if isinstance(weight, fx.Node) else None


def slopes_of(net: Piecewise, at: int) -> Array:
    """Return the slope below zero of every unit of one piecewise-linear operation."""
    op = net.ops[at]
    assert op.slope is not None
    z = torch.zeros(1, *op.node.args[0].meta["val"].shape[1:], dtype=torch.float64)  # type: ignore[union-attr]
    constants = net.program.constants
    args = fx.node.map_arg(op.node.args[1:], constants.__getitem__)
    kwargs = fx.node.map_arg(op.node.kwargs, constants.__getitem__)
    slopes = op.slope(z, *args, **kwargs).double().expand_as(z)
    return np.ascontiguousarray(slopes.flatten().numpy())
