"""Recognise a two-layer ReLU network in an exported graph."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, fx

from inscape._core.checks import Function
from inscape.errors import UnsupportedModelError
from inscape.functional.jacobians import norm
from inscape.piecewise.graph.cache import export
from inscape.piecewise.graph.ops import (
    SHAPES,
    SUMS,
    arguments,
    is_affine,
    is_relu,
    keeps_batch,
    name_of,
    place_of,
)
from inscape.piecewise.graph.program import Program

#: Operations that keep the numbers of a row and their order, so that a weight keeps its columns.
_MOVES = frozenset(
    {
        *("view", "_unsafe_view", "reshape", "flatten", "unsqueeze", "squeeze"),
        *("clone", "contiguous", "detach", "alias", "dropout"),
    }
)

#: How far a value is from the input: constant, affine in it, affine in the hidden units.
_CONSTANT, _INPUT, _HIDDEN = 0, 1, 2


@dataclass(frozen=True, eq=False)
class TwoLayer:
    """The two affine halves of x -> W2 relu(W1 x + b1) + b2, with the model's live weights."""

    program: Program
    hidden: tuple[fx.Node, ...]
    input_shape: tuple[int, ...]

    def norms(self) -> tuple[Float[Tensor, " hidden"], Float[Tensor, " hidden"]]:
        """Return for each hidden unit the norms of its incoming and of its outgoing weights.

        Differentiable in the weights where gradients are on.
        """
        pairs = [(self._incoming(node), self._outgoing(node)) for node in self.hidden]
        first, second = zip(*pairs, strict=True)
        return torch.cat(first), torch.cat(second)

    def _incoming(self, node: fx.Node) -> Float[Tensor, " h"]:
        before = node.args[0]
        assert isinstance(before, fx.Node)
        weight = self._weight(before, self.program.input)
        if weight is None:
            weight = self._jacobian_of_first_layer(before)
        return norm(weight, dim=1)

    def _outgoing(self, node: fx.Node) -> Float[Tensor, " h"]:
        weight = self._weight(self.program.output, node)
        if weight is None:
            weight = self._jacobian_of_second_layer(node)
        return norm(weight, dim=0)

    def _weight(self, end: fx.Node, start: fx.Node) -> Tensor | None:
        """Return W where ``end`` is ``linear(start, W, ...)`` up to reshapes."""
        layer = _before_moves(end)
        if name_of(layer) != "linear" or len(self.hidden) > 1:
            return None
        source, weight = layer.args[:2]
        if not isinstance(source, fx.Node) or not isinstance(weight, fx.Node):
            return None
        if _before_moves(source) is not start or weight not in self.program.constants:
            return None
        rows, matrix = source.meta["val"], self.program.constants[weight]
        return matrix if rows.ndim == 2 and matrix.ndim == 2 else None

    def _jacobian_of_first_layer(self, before: fx.Node) -> Float[Tensor, "h d"]:
        grows = torch.is_grad_enabled()
        with torch.enable_grad():
            x = self._zeros(1)
            (z,) = self.program.run({self.program.input: x}, [before])
            units = z.numel()
            rows = []
            for start in range(0, units, 512):
                stop = min(start + 512, units)
                x = self._zeros(stop - start)
                (z,) = self.program.run({self.program.input: x}, [before])
                pick = z.new_zeros(stop - start, units)
                pick[torch.arange(stop - start), torch.arange(start, stop)] = 1
                rows.append(_gradient(z, x, pick.reshape(z.shape), grows=grows))
        return torch.cat(rows)

    def _jacobian_of_second_layer(self, node: fx.Node) -> Float[Tensor, "c h"]:
        grows = torch.is_grad_enabled()
        with torch.enable_grad():
            known = {self.program.input: self._zeros(1)}
            values = self.program.run(known, self.hidden)
            units = {n: torch.zeros_like(v) for n, v in zip(self.hidden, values, strict=True)}
            units[node].requires_grad_()
            (y,) = self.program.run({**known, **units}, [self.program.output])
            y = y.reshape(-1)
            rows = [
                _gradient(y[k], units[node], None, grows=grows, keep=True) for k in range(len(y))
            ]
        return torch.cat(rows)

    def _zeros(self, rows: int) -> Tensor:
        like = next(
            (t for t in self.program.constants.values() if t.is_floating_point()), torch.empty(0)
        )
        return like.new_zeros(rows, *self.input_shape).requires_grad_()


def _gradient(
    y: Tensor, x: Tensor, weights: Tensor | None, *, grows: bool, keep: bool = False
) -> Tensor:
    (g,) = torch.autograd.grad(
        y, x, weights, create_graph=grows, retain_graph=grows or keep, materialize_grads=True
    )
    return g.flatten(1)


def _before_moves(node: fx.Node) -> fx.Node:
    """Walk back over operations that only reshape."""
    while name_of(node) in _MOVES and isinstance(node.args[0], fx.Node):
        node = node.args[0]
    return node


def two_layer(f: Function, x: Tensor) -> TwoLayer:
    """Read ``f`` as a two-layer ReLU network, or raise ``UnsupportedModelError`` saying why not."""
    program = export(f, x)
    distance: dict[fx.Node, int] = {program.input: _INPUT}
    hidden: list[fx.Node] = []
    for node in program.nodes:
        distance[node] = _distance(node, distance, hidden, program.batch)
    if not hidden:
        raise UnsupportedModelError("it has no ReLU")
    if distance[program.output] != _HIDDEN:
        raise UnsupportedModelError("its output does not come through the ReLU layer")
    return TwoLayer(program=program, hidden=tuple(hidden), input_shape=tuple(x.shape[1:]))


def _distance(
    node: fx.Node, distance: dict[fx.Node, int], hidden: list[fx.Node], batch: Any
) -> int:
    levels = [distance.get(arg, _CONSTANT) for arg in arguments(node)]
    level = max(levels, default=_CONSTANT)
    if level == _CONSTANT or name_of(node) in SHAPES:
        return _CONSTANT
    if not keeps_batch(node, batch):
        raise UnsupportedModelError(f"{place_of(node)} moves the batch from the first dimension")
    if is_relu(node):
        if level == _HIDDEN:
            raise UnsupportedModelError(f"it has a second ReLU layer ({place_of(node)})")
        hidden.append(node)
        return _HIDDEN
    if not is_affine(node, lambda arg: distance.get(arg, _CONSTANT) != _CONSTANT):
        raise UnsupportedModelError(f"{place_of(node)} is neither affine nor a ReLU")
    if name_of(node) in SUMS and {_INPUT, _HIDDEN} <= set(levels):
        raise UnsupportedModelError(f"its input also goes past the ReLU ({place_of(node)})")
    return level
