"""Send segments through a piecewise-linear graph once, and cut them at each bend on the way."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor, fx

from inscape._core.deadline import NEVER, Deadline
from inscape._core.pieces.bends import Bend
from inscape._core.pieces.line_changes import changes, middle_pattern
from inscape._core.pieces.line_graph import Rows
from inscape._core.pieces.line_sizes import Values, largest, sizes_after, summands
from inscape._core.pieces.ops import SHAPES, arguments, name_of


@dataclass(frozen=True, eq=False)
class Knots:
    """Places t of segments, in order; a piece lies between neighbours on one segment."""

    segment: Int64[Tensor, " k"]
    t: Float64[Tensor, " k"]

    @cached_property
    def left(self) -> Int64[Tensor, " pieces"]:
        """Return the knot on the left of every piece."""
        return torch.nonzero(self.segment.diff() == 0)[:, 0]

    @cached_property
    def group(self) -> Int64[Tensor, " k"]:
        """Return the number of each knot's segment, from zero on."""
        return self.segment - self.segment[0]

    @property
    def groups(self) -> int:
        """Return the number of segments."""
        return int(self.group[-1]) + 1

    @property
    def rows(self) -> int:
        """Return the rows of a batch: values at the knots, derivatives on the pieces, and zero."""
        return len(self.t) + len(self.left) + 1


@dataclass(frozen=True, eq=False)
class Swept:
    """Segments, or a prefix of them, cut at every bend: outputs at the knots, derivatives by t."""

    knots: Knots
    values: Float64[Tensor, "k c"]
    slopes: Float64[Tensor, "pieces c"]


class Sweep:
    """A graph through which go batches of values at knots and of derivatives on the pieces between.

    Before a bend the network is affine between the knots that are known. So activations at a new
    knot are interpolated, and no layer is evaluated twice. The last row of a batch has input zero:
    an affine operation makes its own constant of it, which derivatives do not have.
    """

    def __init__(self, rows: Rows, narrow: float) -> None:
        self._rows, self._narrow, self._net = rows, narrow, rows.net
        program = rows.net.program
        self._bends = {bend.node: at for at, bend in enumerate(rows.net.bends)}
        self._last = _last_readers(program.nodes, program.output)
        self._moving = {program.input}
        self._constant: Values = dict(program.constants)
        self._constant_sizes: Values = {}
        self._of_rows: list[fx.Node] = []  # constants but for the number of rows
        for node in program.nodes:
            if node not in self._last:
                continue
            read = arguments(node)
            if name_of(node) not in SHAPES and any(arg in self._moving for arg in read):
                self._moving.add(node)
            elif all(arg in self._constant for arg in read):
                self._constant[node] = program.step(node, self._constant)
            else:
                self._of_rows.append(node)
        self._order = [n for n in program.nodes if n in self._last and n in self._moving]

    @torch.no_grad()
    def run(self, knots: Knots, most: int, deadline: Deadline = NEVER) -> Swept | None:
        """Return the first ``most`` pieces of the cut segments; None where the time is over."""
        net, a, b = self._net, self._rows.a, self._rows.b
        x, way = self._rows.at(knots.segment, knots.t), (b - a)[knots.segment[knots.left]]
        values: Values = {net.program.input: torch.cat([x, way, torch.zeros_like(x[:1])])}
        sizes: Values = {net.program.input: largest(x, knots.group)}
        for node in self._order:
            if deadline.passed():
                return None
            at = self._bends.get(node)
            if at is None:
                out = net.program.step(node, {**self._constants(knots.rows), **values})
                values[node] = _each(out, lambda z: _without_constant(z, len(knots.t)))  # noqa: B023
                sizes[node] = self._sizes_after(node, knots, sizes)
            else:
                knots, values, sizes = self._cut(at, knots, most, values, sizes)
                values[node] = self._bent(net.bends[at], knots, values)
                sizes[node] = largest(values[node][: len(knots.t)], knots.group)
            for arg in node.all_input_nodes:
                if self._last[arg] is node and arg in values and arg is not net.program.output:
                    del values[arg], sizes[arg]
        y = values[net.program.output].expand(knots.rows, *values[net.program.output].shape[1:])
        y = y.reshape(knots.rows, -1)
        return Swept(knots, y[: len(knots.t)], y[len(knots.t) : -1])

    def _constants(self, rows: int) -> Values:
        """Return all that does not depend on the inputs, for this number of rows."""
        if not self._of_rows:
            return self._constant
        known = dict(self._constant)
        for node in self._of_rows:
            for arg in arguments(node):
                if arg in self._moving:  # only its shape is read
                    shape = [rows, *map(int, arg.meta["val"].shape[1:])]
                    known[arg] = torch.zeros((), dtype=torch.float64).expand(shape)
            known[node] = self._net.program.step(node, known)
        return {node: value for node, value in known.items() if node not in self._moving}

    def _sizes_after(self, node: fx.Node, knots: Knots, sizes: Values) -> Any:
        """Return the sizes of what an affine node makes of its summands."""
        for arg in arguments(node):
            constant = self._constant.get(arg)
            if not isinstance(constant, Tensor) or not constant.is_floating_point():
                continue  # masks and indices have no size
            if arg not in self._constant_sizes:
                self._constant_sizes[arg] = constant.abs()
        known = {**self._constant_sizes, **sizes}
        return sizes_after(node, self._constants(knots.groups), known)

    def _cut(
        self, at: int, knots: Knots, most: int, values: Values, sizes: Values
    ) -> tuple[Knots, Values, Values]:
        """Put a knot wherever a unit of the bend chooses otherwise, and interpolate what lives."""
        bend = self._net.bends[at]
        args, kwargs = self._arguments(bend.node, values, knots, slice(len(knots.t)))
        functions = bend.source(*args, **kwargs).expand(len(knots.t), -1)
        scale = summands(self._net, at, self._constants(knots.groups), sizes)
        piece, share = changes(bend, functions, scale.expand(knots.groups, -1), knots.group)
        after, source, share = _refined(knots, piece, share, most, self._narrow)
        if len(after.t) == len(knots.t) and not bool(share.any()):
            return knots, values, sizes
        number = torch.arange(len(knots.t)) - knots.group  # of the piece right of a knot
        rows = len(knots.t) + number[source[after.left]]

        new = torch.nonzero(share)[:, 0]

        def interpolated(z: Tensor) -> Tensor:
            out, by = z.index_select(0, taken), share[new].reshape(-1, *[1] * (z.ndim - 1))
            out[new] += by * (z[source[new] + 1] - z[source[new]])
            return out

        taken = torch.cat([source, rows, torch.tensor([knots.rows - 1])])
        values = {node: _each(value, interpolated) for node, value in values.items()}
        sizes = {n: _each(size, lambda z: z[: after.groups]) for n, size in sizes.items()}
        return after, values, sizes

    def _bent(self, bend: Bend, knots: Knots, values: Values) -> Tensor:
        """Return what a bend makes of values, and of derivatives by the choices on their pieces."""
        args, kwargs = self._arguments(bend.node, values, knots, slice(len(knots.t)))
        functions = bend.source(*args, **kwargs).expand(len(knots.t), -1)
        pattern = middle_pattern(bend, functions, knots.left)
        assert callable(bend.node.target)
        out: Tensor = bend.node.target(*args, **kwargs)
        slopes = self._slopes(bend, pattern, knots, values)
        return torch.cat([out, slopes, torch.zeros_like(out[:1])])

    def _slopes(self, bend: Bend, pattern: Tensor, knots: Knots, values: Values) -> Tensor:
        """Return what a bend makes of derivatives, by its choices on their pieces."""
        pieces = slice(len(knots.t), knots.rows - 1)
        args, kwargs = self._arguments(bend.node, values, knots, pieces)
        if bend.linear is not None:
            return bend.linear(pattern, *args, **kwargs)
        read = [node for node in arguments(bend.node) if node in self._moving]
        zeros = {**values, **{node: torch.zeros_like(values[node]) for node in read}}
        others, more = self._arguments(bend.node, zeros, knots, pieces)
        return bend.chosen(pattern, *args, **kwargs) - bend.chosen(pattern, *others, **more)

    def _arguments(
        self, node: fx.Node, values: Values, knots: Knots, rows: slice
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return some rows of what a node reads."""
        known = {**self._constants(knots.rows), **values}

        def some(arg: fx.Node) -> Any:
            is_batch = arg in self._moving or arg in self._of_rows
            return known[arg][rows] if is_batch and isinstance(known[arg], Tensor) else known[arg]

        args: tuple[Any, ...] = fx.node.map_arg(node.args, some)
        kwargs: dict[str, Any] = fx.node.map_arg(node.kwargs, some)
        return args, kwargs


def _last_readers(nodes: tuple[fx.Node, ...], output: fx.Node) -> dict[fx.Node, fx.Node]:
    """Return the nodes that an output needs, each with the last one that reads it."""
    last = {output: output}
    for node in reversed(nodes):
        if node in last:
            for arg in node.all_input_nodes:
                last.setdefault(arg, node)
    return last


def _each(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Change a tensor, or each of several; what a batch norm returns beside its values is empty."""
    if isinstance(value, tuple | list):
        return type(value)(change(z) if z.numel() else z for z in value)
    return change(value)


def _without_constant(rows: Tensor, points: int) -> Tensor:
    """Take from the derivatives, after some rows of values, what the operation makes of zero."""
    if not bool(rows[-1].any()):
        return rows
    rows = rows.contiguous()
    rows[points:] -= rows[-1:].clone()
    return rows


def _refined(
    knots: Knots, piece: Tensor, share: Tensor, most: int, narrow: float
) -> tuple[Knots, Int64[Tensor, " k"], Float64[Tensor, " k"]]:
    """Return the first pieces between knots and new ones, and the old knot left of each new one.

    The last array is how far each lies from there to the next old one, as a fraction.
    """
    low, high = knots.t[piece], knots.t[piece + 1]
    new = low + (high - low) * share
    inside = (new > low + narrow) & (new < high - narrow)
    source = torch.cat([torch.arange(len(knots.t)), piece[inside]])
    share = torch.cat([torch.zeros_like(knots.t), share[inside]])
    t, segment = torch.cat([knots.t, new[inside]]), knots.segment[source]
    order = torch.from_numpy(np.lexsort((t.numpy(), segment.numpy())))
    t, segment = t[order], segment[order]
    same = segment.diff() == 0
    keep = torch.cat([same.new_ones(1), ~same | (t.diff() > narrow)])
    kept = torch.nonzero(keep)[:, 0]
    begins = torch.cat([same.new_ones(1), segment[kept].diff() > 0])
    count = int(((~begins).cumsum(0) <= most).sum())
    count -= bool(begins[count - 1])  # nothing of that segment is left
    kept = kept[:count]
    return Knots(segment[kept], t[kept]), source[order][kept], share[order][kept]
