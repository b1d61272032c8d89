"""Linear maps of a network between any two of its activations.

Slopes of an activation lie in an interval. With slopes as centre plus remainder, the network is a
linear one (all slopes at their centre) plus the contributions of the remainders.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import torch
from torch import Tensor, fx

from inscape._core import UnsupportedModelError
from inscape._core.checks import Function
from inscape.controls._activation_slopes import slopes_of, softsign_of, stretch_of
from inscape.piecewise.graph.cache import export
from inscape.piecewise.graph.ops import (
    SHAPES,
    arguments,
    is_affine,
    keeps_batch,
    name_of,
    place_of,
)
from inscape.piecewise.graph.program import Program
from inscape.spectra import largest_singular_value

#: Maps with at most so many inputs or outputs are assembled as matrices.
SMALL = 512
LARGE = 2_000_000


@dataclass(frozen=True, eq=False)
class Activation:
    """An operation that is not affine: its slopes, or only its Lipschitz constant.

    Without ``each`` it is no function of single numbers (pooling by maximum); then its middle is
    zero and its deviation the stretch.
    """

    node: fx.Node
    before: fx.Node
    low: float
    high: float
    elementwise: bool

    @property
    def radius(self) -> float:
        """Return half the width of the interval of slopes."""
        return (self.high - self.low) / 2


class Graph:
    """A network in double precision, run with other slopes than its own."""

    def __init__(self, f: Function, x: Tensor) -> None:
        self.program: Program = export(f, x)
        self.shape = tuple(x.shape[1:])
        self.activations: list[Activation] = _activations(self.program)
        self._like = x.new_zeros(0)

    @property
    def input(self) -> fx.Node:
        """Return the node of the input."""
        return self.program.input

    @property
    def output(self) -> fx.Node:
        """Return the node of the output."""
        return self.program.output

    def size(self, node: fx.Node) -> int:
        """Return the number of elements of a node for one sample."""
        return int(torch.Size(node.meta["val"].shape[1:]).numel())

    def run(
        self, start: fx.Node, rows: Tensor, end: fx.Node, slopes: Sequence[float | Tensor]
    ) -> Tensor:
        """Return the value at ``end``, given that at ``start`` and the slopes of activations."""
        program = self.program
        values: dict[fx.Node, Any] = {**program.constants}
        values[program.input] = rows.new_zeros(len(rows), *self.shape)
        values[start] = rows.reshape(len(rows), *start.meta["val"].shape[1:])
        chosen = {a.node: (a, slope) for a, slope in zip(self.activations, slopes, strict=True)}
        needed = program.needed([end], values)
        for node in program.nodes:
            if node not in needed:
                continue
            if node in chosen:
                values[node] = _with_slope(*chosen[node], values, len(rows))
            else:
                values[node] = program.step(node, values)
        flat: Tensor = values[end].reshape(len(values[end]), -1).expand(len(rows), -1)
        return flat

    def matrix(
        self, start: fx.Node, end: fx.Node, slopes: Sequence[float | Tensor]
    ) -> Tensor | None:
        """Return the linear map from one node to another; None where it is too large."""
        a, b = self.size(start), self.size(end)
        if min(a, b) > SMALL or a * b > LARGE:
            return None
        if a <= b:
            rows = torch.cat([self._like.new_zeros(1, a), torch.eye(a).to(self._like)])
            values = self.run(start, rows, end, slopes)
            return (values[1:] - values[:1]).T
        return self._transposed_products(start, end, slopes, torch.eye(b).to(self._like))

    def norm(self, start: fx.Node, end: fx.Node, slopes: Sequence[float | Tensor]) -> float:
        """Return the largest singular value of such a map; infinity if it was not found."""
        matrix = self.matrix(start, end, slopes)
        if matrix is not None:
            return largest_singular_value.of_matrix(matrix)
        zero = self._like.new_zeros(1, self.size(start))
        offset = self.run(start, zero, end, slopes)[0]
        value, converged = largest_singular_value.of_operator(
            lambda v: self.run(start, v[None], end, slopes)[0] - offset,
            lambda u: self._transposed_products(start, end, slopes, u[None])[0],
            zero[0],
        )
        return value if converged else inf

    def _transposed_products(
        self, start: fx.Node, end: fx.Node, slopes: Sequence[float | Tensor], cotangents: Tensor
    ) -> Tensor:
        """Return the products of the transposed map with cotangents."""
        with torch.enable_grad():
            inputs = self._like.new_zeros(len(cotangents), self.size(start)).requires_grad_()
            values = self.run(start, inputs, end, slopes)
            if not values.requires_grad:
                return torch.zeros_like(inputs)
            gradients: tuple[Tensor | None, ...] = torch.autograd.grad(
                values, inputs, cotangents, allow_unused=True
            )
        return torch.zeros_like(inputs) if gradients[0] is None else gradients[0]


def _with_slope(
    activation: Activation, slope: float | Tensor, values: dict[fx.Node, Any], rows: int
) -> Tensor:
    """Return the output of an activation with a given slope."""
    z: Tensor = values[activation.before]
    if activation.elementwise:
        return z * (slope if isinstance(slope, float) else slope.reshape(len(slope), *z.shape[1:]))
    return z.new_zeros(rows, *activation.node.meta["val"].shape[1:])


def _activations(program: Program) -> list[Activation]:
    """Return all operations that are not affine, or refuse the first whose slopes are not known."""
    dependent, activations = {program.input}, list[Activation]()
    for node in program.nodes:
        sources = [arg for arg in arguments(node) if arg in dependent]
        if name_of(node) in SHAPES or not sources:
            continue
        dependent.add(node)
        if not keeps_batch(node, program.batch):
            raise UnsupportedModelError(
                f"{place_of(node)} moves the batch from the first dimension"
            )
        if is_affine(node, dependent.__contains__):
            continue
        if softsign := softsign_of(node):
            z, idle = softsign
            activations = [activation for activation in activations if activation.node is not idle]
            activations.append(Activation(node, z, 0.0, 1.0, elementwise=True))
        elif len(sources) == 1 and (slopes := slopes_of(node, program.constants)):
            activations.append(Activation(node, sources[0], *slopes, elementwise=True))
        elif len(sources) == 1 and (stretch := stretch_of(node)):
            activations.append(Activation(node, sources[0], -stretch, stretch, elementwise=False))
        else:
            raise UnsupportedModelError(
                f"{place_of(node)} is neither affine nor an activation whose slopes are known"
            )
    if program.output not in dependent:
        raise UnsupportedModelError("its output does not depend on its input")
    return activations
