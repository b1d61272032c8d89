"""Cut many segments through any piecewise-linear graph, evaluated at the knots found so far."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64, Integer
from torch import Tensor, fx

from inscape._core.checks import Function
from inscape._core.pieces.bends import Bend
from inscape._core.pieces.line_sizes import NOISE, settled_run, with_sizes
from inscape._core.pieces.piecewise import Piecewise

#: Rows beyond this many gain nothing.
MOST = 4096


@dataclass(frozen=True, eq=False)
class Rows:
    """A network at places t of segments from a to b, some at a time."""

    net: Piecewise
    a: Float64[Tensor, "n *d"]
    b: Float64[Tensor, "n *d"]
    memory: int

    @cached_property
    def most(self) -> int:
        """Return how many rows fit into the memory, at least two."""
        nodes = [node.meta.get("val") for node in self.net.program.nodes]
        sizes = [prod(map(int, v.shape[1:])) for v in nodes if isinstance(v, Tensor)]
        largest = max([self.net.inputs, self.net.outputs, *sizes])
        return min(MOST, max(2, self.memory // (8 * 6 * largest)))

    def at(self, segment: Int64[Tensor, " k"], t: Float64[Tensor, " k"]) -> Tensor:
        """Return the points."""
        return torch.lerp(self.a[segment], self.b[segment], t.reshape(-1, *[1] * (self.a.ndim - 1)))

    def parts(
        self, segment: Int64[Tensor, " k"], t: Float64[Tensor, " k"]
    ) -> Iterator[tuple[Int64[Tensor, " m"], Float64[Tensor, "m *d"]]]:
        """Yield segments and points, as many at a time as fit into the memory."""
        for first in range(0, len(t), self.most):
            some = slice(first, first + self.most)
            yield segment[some], self.at(segment[some], t[some])

    def values(
        self, segment: Int64[Tensor, " k"], t: Float64[Tensor, " k"]
    ) -> Float64[Tensor, "k c"]:
        """Return the outputs there."""
        return torch.cat([self.net.values(at) for _, at in self.parts(segment, t)])

    def slopes(
        self, segment: Int64[Tensor, " k"], t: Float64[Tensor, " k"]
    ) -> Float64[Tensor, "k c"]:
        """Return the derivatives by t there, exact inside a piece however narrow it is."""
        return torch.cat(
            [
                self._rise(segment[first : first + self.most], t[first : first + self.most])
                for first in range(0, len(t), self.most)
            ]
        )

    def _rise(self, segment: Tensor, t: Tensor) -> Tensor:
        """Send both ends of the segments through the pieces at t, and return how far they part.

        On a piece all before a bend is affine, so that its ends tell what the bend sees at t.
        """
        program, bends = self.net.program, {bend.node: bend for bend in self.net.bends}
        ends = torch.cat([self.a[segment], self.b[segment]])
        values: dict[fx.Node, Any] = {**program.constants, program.input: ends}
        for node in program.nodes:
            if (bend := bends.get(node)) is None:
                values[node] = program.step(node, values)
            else:
                args = fx.node.map_arg(node.args, values.__getitem__)
                kwargs = fx.node.map_arg(node.kwargs, values.__getitem__)
                start, stop = bend.source(*args, **kwargs).chunk(2)
                choice = bend.pattern(torch.lerp(start, stop, t[:, None]))
                values[node] = bend.chosen(choice.repeat(2, 1), *args, **kwargs)
            for arg in node.all_input_nodes:
                if self._last_reader[arg] is node and arg is not program.output:
                    del values[arg]
        y: Tensor = values[program.output]
        start, stop = y.reshape(len(ends), -1).chunk(2)
        return stop - start

    @cached_property
    def _last_reader(self) -> dict[fx.Node, fx.Node]:
        return {arg: node for node in self.net.program.nodes for arg in node.all_input_nodes}


def differentiable(net: Piecewise) -> Function:
    """Return the network as a function in float64 that autograd can follow.

    On a kink its gradient is that of the pattern there, with ties off: autograd has a convention
    of its own for each operation.
    """

    def call(x: Tensor) -> Tensor:
        return settled_run(net, x)[0]

    return call


@torch.no_grad()
def settled_patterns(net: Piecewise, x: Float64[Tensor, "n *d"]) -> list[Integer[Tensor, "n _"]]:
    """Return the choices of all units; what rounding cannot tell from a tie is one."""
    return settled_run(net, x)[1]


@torch.no_grad()
def cut_graph(rows: Rows, narrow: float) -> dict[str, Tensor]:
    """Return t, offsets, values and slopes of all segments, cut at every bend."""
    n = len(rows.a)
    t = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(n)
    segment = torch.arange(n).repeat_interleave(2)
    for at in range(len(rows.net.bends)):
        found = list(_zeros(rows, at, segment, t, narrow))
        segment = torch.cat([segment, *(some for some, _ in found)])
        t = torch.cat([t, *(zeros for _, zeros in found)])
        segment, t = _in_order(segment, t, narrow)
    same = segment[1:] == segment[:-1]
    middles = ((t[1:] + t[:-1]) / 2)[same]
    return {
        "t": t,
        "offsets": torch.cat([torch.zeros(1, dtype=torch.int64), segment.bincount().cumsum(0)]),
        "values": rows.values(segment, t),
        "slopes": rows.slopes(segment[:-1][same], middles),
    }


def _zeros(
    rows: Rows, at: int, segment: Tensor, t: Tensor, narrow: float
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield segments and places where units of one bend change their choice."""
    bend, step = rows.net.bends[at], rows.most - 1
    for first in range(0, len(t) - 1, step):
        some = slice(first, first + step + 1)
        group = torch.cat([segment.new_zeros(1), (segment[some].diff() > 0).cumsum(0)])
        functions, sizes = with_sizes(rows.net, rows.at(segment[some], t[some]), at, group)
        piece, share = _changes(bend, functions, sizes, group)
        lo, hi = t[some][piece], t[some][piece + 1]
        zero = lo + (hi - lo) * share
        inside = (zero > lo + narrow) & (zero < hi - narrow)
        yield segment[some][piece][inside], zero[inside]


def _changes(
    bend: Bend,
    functions: Float64[Tensor, "k m"],
    sizes: Float64[Tensor, "g m"],
    group: Int64[Tensor, " k"],
) -> tuple[Int64[Tensor, " found"], Float64[Tensor, " found"]]:
    """Return pieces between neighbouring rows, and shares of them, where a choice changes.

    ``sizes`` are those of what the functions of a segment, a group of rows, are summed from.
    """
    within = group.diff() == 0  # no piece lies between two segments
    if bend.windows is not None:
        noise = NOISE * sizes[:, bend.windows].amax(2)
        return _window_changes(functions, noise, torch.where(within, group[1:], -1), bend.windows)
    left, right = functions[:-1], functions[1:]
    crosses = ((left < 0) & (right > 0)) | ((left > 0) & (right < 0))
    piece, unit = torch.nonzero(crosses & within[:, None], as_tuple=True)
    start, end = left[piece, unit], right[piece, unit]
    large = torch.maximum(start.abs(), end.abs()) > NOISE * sizes[group[piece], unit]
    return piece[large], (start / (start - end))[large]


def _window_changes(
    functions: Tensor, noise: Tensor, group: Tensor, windows: Int64[Tensor, "w k"]
) -> tuple[Int64[Tensor, " found"], Float64[Tensor, " found"]]:
    """Return where the largest function of a window becomes another."""
    from inscape._core.pieces.line_windows import window_changes

    room = len(functions) + len(windows)
    given = (
        functions.contiguous().numpy(),
        noise.numpy(),
        group.numpy(),
        windows.contiguous().numpy(),
    )
    while True:
        piece, share = np.empty(room, np.int64), np.empty(room)
        count = window_changes(*given, piece, share)
        if count <= room:
            return torch.from_numpy(piece[:count]), torch.from_numpy(share[:count])
        room = count


def _in_order(segment: Tensor, t: Tensor, narrow: float) -> tuple[Tensor, Tensor]:
    """Sort the knots along their segments, and keep one of each cluster drawn apart by rounding."""
    order = torch.from_numpy(np.lexsort((t.numpy(), segment.numpy())))
    segment, t = segment[order], t[order]
    apart = (segment.diff() > 0) | (t.diff() > narrow)
    keep = torch.cat([apart.new_ones(1), apart])
    return segment[keep], t[keep]
