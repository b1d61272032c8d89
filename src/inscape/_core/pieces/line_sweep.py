"""Send segments through a piecewise-linear graph once, and cut them at each bend on the way."""

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor, fx

from inscape._core.inference import no_grad
from inscape._core.pieces.bends import Bend
from inscape._core.pieces.flow import Flow, each
from inscape._core.pieces.line_changes import changes, middle_pattern
from inscape._core.pieces.line_graph import Rows
from inscape._core.pieces.line_sizes import Values, largest, sizes_after, summands
from inscape._core.pieces.ops import arguments


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


class Sweep(Flow):
    """A graph through which go batches of values at knots and of derivatives on the pieces between.

    Before a bend the network is affine between the knots that are known. So activations at a new
    knot are interpolated, and no layer is evaluated twice. The last row of a batch has input zero:
    an affine operation makes its own constant of it, which derivatives do not have.
    """

    def __init__(self, rows: Rows, narrow: float) -> None:
        super().__init__(rows.net)
        self._rows, self._narrow = rows, narrow
        self._constant_sizes: Values = {}

    @no_grad
    def steps(self, knots: Knots, most: int) -> Generator[None, None, Swept]:
        """Return the first ``most`` pieces of the cut segments, one operation at a time."""
        net, a, b = self.net, self._rows.a, self._rows.b
        x, way = self._rows.at(knots.segment, knots.t), (b - a)[knots.segment[knots.left]]
        values: Values = {net.program.input: torch.cat([x, way, torch.zeros_like(x[:1])])}
        sizes: Values = {net.program.input: largest(x, knots.group)}
        for node in self.order:
            yield
            at = self.bends.get(node)
            if at is None:
                values[node] = self.affine(node, values, knots.rows, len(knots.t))
                sizes[node] = self._sizes_after(node, knots, sizes)
            else:
                knots, values, sizes = self._cut(at, knots, most, values, sizes)
                values[node] = self._bent(net.bends[at], knots, values)
                sizes[node] = largest(values[node][: len(knots.t)], knots.group)
            for arg in node.all_input_nodes:
                if self.last[arg] is node and arg in values and arg is not net.program.output:
                    del values[arg], sizes[arg]
        y = values[net.program.output].expand(knots.rows, *values[net.program.output].shape[1:])
        y = y.reshape(knots.rows, -1)
        return Swept(knots, y[: len(knots.t)], y[len(knots.t) : -1])

    def _sizes_after(self, node: fx.Node, knots: Knots, sizes: Values) -> Any:
        """Return the sizes of what an affine node makes of its summands."""
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
    ) -> tuple[Knots, Values, Values]:
        """Put a knot wherever a unit of the bend chooses otherwise, and interpolate what lives."""
        bend = self.net.bends[at]
        args, kwargs = self.arguments(bend.node, values, knots.rows, slice(len(knots.t)))
        functions = bend.source(*args, **kwargs).expand(len(knots.t), -1)
        scale = summands(self.net, at, self.constants(knots.groups), sizes)
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
        values = {node: each(value, interpolated) for node, value in values.items()}
        sizes = {n: each(size, lambda z: z[: after.groups]) for n, size in sizes.items()}
        return after, values, sizes

    def _bent(self, bend: Bend, knots: Knots, values: Values) -> Tensor:
        """Return what a bend makes of values, and of derivatives by the choices on their pieces."""
        args, kwargs = self.arguments(bend.node, values, knots.rows, slice(len(knots.t)))
        functions = bend.source(*args, **kwargs).expand(len(knots.t), -1)
        pattern = middle_pattern(bend, functions, knots.left)
        assert callable(bend.node.target)
        out: Tensor = bend.node.target(*args, **kwargs)
        pieces = slice(len(knots.t), knots.rows - 1)
        slopes = self.derivatives(bend, pattern, values, knots.rows, pieces)
        return torch.cat([out, slopes, torch.zeros_like(out[:1])])


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
