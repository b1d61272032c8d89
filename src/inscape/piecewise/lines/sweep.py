"""Send segments through a piecewise-linear graph once, cutting them at each operation."""

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor, fx

from inscape._core.inference import no_grad
from inscape.piecewise.graph.forward import ForwardPass, each
from inscape.piecewise.graph.ops import arguments
from inscape.piecewise.graph.piecewise_ops import PiecewiseOp
from inscape.piecewise.lines.evaluation import SegmentEvaluation
from inscape.piecewise.lines.pattern_changes import changes, middle_pattern
from inscape.piecewise.lines.rounding import Values, largest, sizes_after, summands

#: Rows with more numbers than this are summed one by one.
LONG = 1024


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

    @cached_property
    def first(self) -> Int64[Tensor, " groups"]:
        """Return the first knot of every segment."""
        return torch.cat(
            [torch.zeros(1, dtype=torch.int64), torch.nonzero(self.group.diff())[:, 0] + 1]
        )

    @property
    def rows(self) -> int:
        """Return the rows of a batch: a value of each segment, derivatives on pieces, and zero."""
        return self.groups + len(self.left) + 1

    def values(self, rows: Float64[Tensor, "rows *m"]) -> Float64[Tensor, "k *m"]:
        """Return values at the knots from a batch: derivatives are summed along each segment."""
        out = rows.new_empty(len(self.t), *rows.shape[1:])
        out[self.first] = rows[: self.groups]
        widths, slopes = self.t[self.left + 1] - self.t[self.left], rows[self.groups : -1]
        if rows[0].numel() >= LONG:  # row by row, which is quicker than a sum over columns
            steps = zip(self.left.tolist(), slopes, widths.tolist(), strict=True)
            for left, slope, width in steps:
                torch.add(out[left], slope, alpha=width, out=out[left + 1])
            return out
        out[self.left + 1] = slopes * widths.reshape(-1, *[1] * (rows.ndim - 1))
        for begin, end in pairwise([*self.first.tolist(), len(out)]):
            out[begin:end] = out[begin:end].cumsum(0)
        return out


@dataclass(frozen=True, eq=False)
class SweptSegments:
    """Segments, or a prefix of them, cut at every kink: outputs at the knots, derivatives by t."""

    knots: Knots
    values: Float64[Tensor, "k c"]
    slopes: Float64[Tensor, "pieces c"]


class SegmentSweep(ForwardPass):
    """A graph through which go batches of derivatives on the pieces between knots.

    Before an operation the network is affine between the known knots: values there are summed
    from those at the beginning of the segments, which are the first rows of a batch, and a piece
    that is cut has one derivative on both sides. So a piece costs one row, and no layer is
    evaluated twice. The last row of a batch is input zero: what an affine operation returns for it
    is its constant, which derivatives do not have.
    """

    def __init__(self, rows: SegmentEvaluation, narrow: float) -> None:
        super().__init__(rows.net)
        self._rows, self._narrow = rows, narrow
        self._constant_sizes: Values = {}

    @no_grad
    def steps(self, knots: Knots, most: int) -> Generator[None, None, SweptSegments]:
        """Return the first ``most`` pieces of the cut segments, one operation at a time."""
        net, a, b = self.net, self._rows.a, self._rows.b
        x = self._rows.at(knots.segment, knots.t)
        direction = (b - a)[knots.segment[knots.left]]
        batch = torch.cat([x[knots.first], direction, torch.zeros_like(x[:1])])
        values: Values = {net.program.input: batch}
        sizes: Values = {net.program.input: largest(x, knots.group)}
        for node in self.order:
            yield
            at = self.ops.get(node)
            if at is None:
                values[node] = self.affine(node, values, knots.rows, knots.groups)
                sizes[node] = self._sizes_after(node, knots, sizes)
            else:
                knots, values, sizes, there = self._cut(at, knots, most, values, sizes)
                values[node], sizes[node] = self._activated(net.ops[at], knots, values, there)
            for arg in node.all_input_nodes:
                if self.last[arg] is node and arg in values and arg is not net.program.output:
                    del values[arg], sizes[arg]
        y = values[net.program.output].expand(knots.rows, *values[net.program.output].shape[1:])
        y = y.reshape(knots.rows, -1)
        return SweptSegments(knots, knots.values(y), y[knots.groups : -1])

    def _sizes_after(self, node: fx.Node, knots: Knots, sizes: Values) -> Any:
        """Return the sizes of the summands after an affine node."""
        for arg in arguments(node):
            constant = self.constant.get(arg)
            if not isinstance(constant, Tensor) or not constant.is_floating_point():
                continue  # masks and indices have no size
            if arg not in self._constant_sizes:
                self._constant_sizes[arg] = constant.abs()
        known = {**self._constant_sizes, **sizes}
        return sizes_after(node, self.constants(knots.groups), known)

    def _cut(
        self, at: int, knots: Knots, most: int, values: Values, sizes: Values
    ) -> tuple[Knots, Values, Values, Values]:
        """Put a knot wherever a unit of the operation switches.

        The last value returned are the pre-activations at the knots.
        """
        op = self.net.ops[at]
        read = [node for node in dict.fromkeys(arguments(op.node)) if node in self.moving]
        there = {node: each(values[node], knots.values) for node in read}
        scale = summands(self.net, at, self.constants(knots.groups), sizes)
        functions = self._functions(op, knots, there)
        piece, fraction = changes(op, functions, scale.expand(knots.groups, -1), knots.group)
        after, source, fraction = _refined(knots, piece, fraction, most, self._narrow)
        if len(after.t) == len(knots.t) and not bool(fraction.any()):
            return knots, values, sizes, there
        number = torch.arange(len(knots.t)) - knots.group  # of the piece right of a knot
        pieces = knots.groups + number[source[after.left]]
        taken = torch.cat([torch.arange(after.groups), pieces, torch.tensor([knots.rows - 1])])
        values = {node: each(value, lambda z: z[taken]) for node, value in values.items()}
        sizes = {n: each(size, lambda z: z[: after.groups]) for n, size in sizes.items()}
        return after, values, sizes, {node: each(values[node], after.values) for node in read}

    def _functions(self, op: PiecewiseOp, knots: Knots, there: Values) -> Tensor:
        """Return the pre-activations at the knots."""
        args, kwargs = self.arguments(op.node, there, len(knots.t), slice(len(knots.t)))
        return op.source(*args, **kwargs).expand(len(knots.t), -1)

    def _activated(
        self, op: PiecewiseOp, knots: Knots, values: Values, there: Values
    ) -> tuple[Tensor, Tensor]:
        """Apply an operation to a batch by its patterns on the pieces; return the sizes too."""
        pattern = middle_pattern(op, self._functions(op, knots, there), knots.left)
        args, kwargs = self.arguments(op.node, there, len(knots.t), slice(len(knots.t)))
        assert callable(op.node.target)
        out: Tensor = op.node.target(*args, **kwargs)
        pieces = slice(knots.groups, knots.rows - 1)
        slopes = self.derivatives(op, pattern, values, knots.rows, pieces)
        batch = torch.cat([out[knots.first], slopes, torch.zeros_like(out[:1])])
        return batch, largest(out, knots.group)


def _refined(
    knots: Knots, piece: Tensor, fraction: Tensor, most: int, narrow: float
) -> tuple[Knots, Int64[Tensor, " k"], Float64[Tensor, " k"]]:
    """Return the first pieces between knots and new ones, and the old knot left of each new one.

    The last array is how far each lies from there to the next old one, as a fraction.
    """
    low, high = knots.t[piece], knots.t[piece + 1]
    new = low + (high - low) * fraction
    inside = (new > low + narrow) & (new < high - narrow)
    source = torch.cat([torch.arange(len(knots.t)), piece[inside]])
    fraction = torch.cat([torch.zeros_like(knots.t), fraction[inside]])
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
    return Knots(segment[kept], t[kept]), source[order][kept], fraction[order][kept]
