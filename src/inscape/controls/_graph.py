"""A network between its activations: linear maps from any of them to any later one.

Slopes of an activation lie in an interval. Written as middle plus deviation, the network is a
linear one (all slopes in their middle) and what the deviations add.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import torch
from torch import Tensor, fx

from inscape._core import UnsupportedModelError
from inscape._core.checks import Function
from inscape.controls._slopes import slopes_of, softsign_of, stretch_of
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
from inscape.spectra import singular

#: Maps with at most so many inputs or outputs are written out as matrices.
SMALL = 512
LARGE = 2_000_000


@dataclass(frozen=True, eq=False)
class Activation:
    """An operation that is not affine: its slopes, or only how much it stretches.

    Without ``each`` it is no function of single numbers (pooling by maximum); then its middle is
    zero and its deviation the stretch.
    """

    node: fx.Node
    before: fx.Node
    low: float
    high: float
    each: bool

    @property
    def deviation(self) -> float:
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
        """Return how many numbers a node holds for one row."""
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
        needed = program._needed([end], values)
        for node in program.nodes:
            if node not in needed:
                continue
            if node in chosen:
                values[node] = _bent(*chosen[node], values, len(rows))
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
        return self._pulled(start, end, slopes, torch.eye(b).to(self._like))

    def norm(self, start: fx.Node, end: fx.Node, slopes: Sequence[float | Tensor]) -> float:
        """Return the largest singular value of such a map; infinity if it was not found."""
        matrix = self.matrix(start, end, slopes)
        if matrix is not None:
            return singular.of_matrix(matrix)
        zero = self._like.new_zeros(1, self.size(start))
        offset = self.run(start, zero, end, slopes)[0]
        value, converged = singular.of_map(
            lambda v: self.run(start, v[None], end, slopes)[0] - offset,
            lambda u: self._pulled(start, end, slopes, u[None])[0],
            zero[0],
        )
        return value if converged else inf

    def _pulled(
        self, start: fx.Node, end: fx.Node, slopes: Sequence[float | Tensor], rows: Tensor
    ) -> Tensor:
        """Apply the transpose of such a map to every row."""
        with torch.enable_grad():
            at = self._like.new_zeros(len(rows), self.size(start)).requires_grad_()
            values = self.run(start, at, end, slopes)
            if not values.requires_grad:
                return torch.zeros_like(at)
            found: tuple[Tensor | None, ...] = torch.autograd.grad(
                values, at, rows, allow_unused=True
            )
        return torch.zeros_like(at) if found[0] is None else found[0]


def _bent(one: Activation, slope: float | Tensor, values: dict[fx.Node, Any], rows: int) -> Tensor:
    """Return what an activation of a given slope makes of its argument."""
    z: Tensor = values[one.before]
    if one.each:
        return z * (slope if isinstance(slope, float) else slope.reshape(len(slope), *z.shape[1:]))
    return z.new_zeros(rows, *one.node.meta["val"].shape[1:])


def _activations(program: Program) -> list[Activation]:
    """Return all operations that are not affine, or refuse the first whose slopes are not known."""
    moving, found = {program.input}, list[Activation]()
    for node in program.nodes:
        read = [arg for arg in arguments(node) if arg in moving]
        if name_of(node) in SHAPES or not read:
            continue
        moving.add(node)
        if not keeps_batch(node, program.batch):
            raise UnsupportedModelError(
                f"{place_of(node)} moves the batch from the first dimension"
            )
        if is_affine(node, moving.__contains__):
            continue
        if softsign := softsign_of(node):
            z, idle = softsign
            found = [one for one in found if one.node is not idle]
            found.append(Activation(node, z, 0.0, 1.0, each=True))
        elif len(read) == 1 and (slopes := slopes_of(node, program.constants)):
            found.append(Activation(node, read[0], *slopes, each=True))
        elif len(read) == 1 and (stretch := stretch_of(node)):
            found.append(Activation(node, read[0], -stretch, stretch, each=False))
        else:
            raise UnsupportedModelError(
                f"{place_of(node)} is neither affine nor an activation whose slopes are known"
            )
    if program.output not in moving:
        raise UnsupportedModelError("its output does not depend on its input")
    return found
