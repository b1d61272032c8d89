"""Coefficients on the faces of a plane, by one forward-mode pass through any graph."""

from collections.abc import Generator, Iterator
from math import prod

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor, fx

from inscape._core.inference import no_grad
from inscape.piecewise.graph.forward import ForwardPass, Values
from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.graph.piecewise_ops import PiecewiseOp
from inscape.piecewise.planes.coefficients import Floats, GraphCoefficients, Ints

#: Bytes of activations that go through the graph at a time.
ROOM = 2**26


class ForwardCoefficients(GraphCoefficients):
    """Coefficients of a graph whose activations are kept from operation to operation.

    Before an operation the network is affine on each face. So the activations that are still read
    later are kept as three rows for each face, a value and two derivatives, and the parts of a face
    go on from what it has: no layer is evaluated twice. Where they take too much memory the graph
    is run anew for every face.
    """

    def prepare(self, axes: Float64[Tensor, "2 *d"], memory: int) -> None:
        """Set the directions of the plane, and the bytes that activations may take."""
        flow, program = ForwardPass(self.net), self.net.program
        self._flow, self._memory = flow, memory
        self._bytes = 0
        place = {node: k for k, node in enumerate(flow.order)}
        place[program.input] = -1
        ends = [place[op.node] for op in self.net.ops]
        stops = [*ends, len(flow.order)]
        starts = [0, *(end + 1 for end in ends)]
        self._stages = [flow.order[a:b] for a, b in zip(starts, stops, strict=True)]
        reader = {node: place.get(reader, len(flow.order)) for node, reader in flow.last.items()}
        reader[program.output] = len(flow.order)
        self._kept = [
            [node for node in place if place[node] < stop and reader[node] >= stop]
            for stop in stops
        ]
        x = torch.cat([self.points[:1], axes.reshape(2, *self.points.shape[1:])])
        self._live: dict[fx.Node, Tensor] | None = {program.input: x[None]}

    @no_grad
    def reached(self, at: int) -> Iterator[None]:
        """Propagate the activations of all faces to operation ``at``, or to the outputs."""
        if self._live is None:
            return
        history, faces = self.history, self.history.faces
        kept = self._kept[at]
        shapes = {node: tuple(int(n) for n in node.meta["val"].shape[1:]) for node in kept}
        each = 24 * sum(prod(shape) for shape in shapes.values())
        if each * faces > self._memory:
            self._live = None
            return
        live = {
            n: torch.empty(faces, 3, *shape, dtype=torch.float64) for n, shape in shapes.items()
        }
        parent = np.zeros(faces, np.int64)
        if at:
            parent = history.origin[at - 1][history.ancestor[at - 1]]
        size = max(1, ROOM // (32 * max(prod(shape) for shape in shapes.values())))
        for begin in range(0, faces, size):
            block = np.arange(begin, min(begin + size, faces))
            values = yield from self._propagated(at, block, parent[block])
            for node, rows in live.items():
                three = values[node].expand(3 * len(block) + 1, *shapes[node])[:-1]
                rows[block] = three.reshape(3, len(block), *shapes[node]).transpose(0, 1)
        self._live = live

    def _propagated(self, at: int, faces: Ints, parent: Ints) -> Generator[None, None, Values]:
        """Return activations of some faces before operation ``at``: values, derivatives, zero."""
        flow, points, rows = self._flow, len(faces), 3 * len(faces) + 1
        values = self._rows_of(parent)
        if at:
            op = self.net.ops[at - 1]
            pattern = torch.from_numpy(self.history.pattern(at - 1, faces))
            values[op.node] = self._activated(op, pattern, values, points)
        for node in self._stages[at]:
            values[node] = flow.affine(node, values, rows, points)
            for arg in node.all_input_nodes:
                if flow.last.get(arg) is node and arg in values and arg not in self._kept[at]:
                    del values[arg]
            yield
        return values

    def _rows_of(self, faces: Ints) -> Values:
        """Return what is kept of some faces as one batch: values, both derivatives, and zero."""
        assert self._live is not None
        values: Values = {}
        for node, rows in self._live.items():
            three = rows[faces].transpose(0, 1).flatten(0, 1)
            values[node] = torch.cat([three, torch.zeros_like(three[:1])])
        return values

    def _activated(self, op: PiecewiseOp, pattern: Tensor, values: Values, points: int) -> Tensor:
        """Apply an operation to a batch by the patterns on its faces."""
        flow, rows = self._flow, 3 * points + 1
        args, kwargs = flow.arguments(op.node, values, rows, slice(points))
        out = op.chosen(pattern, *args, **kwargs)
        twice = pattern.repeat(2, 1)
        slopes = flow.derivatives(op, twice, values, rows, slice(points, rows - 1))
        return torch.cat([out, slopes, torch.zeros_like(out[:1])])

    @torch.no_grad()
    def coefficients(self, at: int, faces: Ints, out: Floats) -> None:
        """Read off the pre-activations of an operation, or the outputs, on some faces."""
        if self._live is None:
            super().coefficients(at, faces, out)
            return
        values, rows = self._rows_of(faces), 3 * len(faces) + 1
        if at == len(self.net.ops):
            functions = values[self.net.program.output].reshape(rows, -1)
        else:
            op = self.net.ops[at]
            args, kwargs = self._flow.arguments(op.node, values, rows, slice(rows))
            functions = op.source(*args, **kwargs).expand(rows, -1)
        three = functions[:-1].reshape(3, len(faces), -1).numpy()
        constant = functions[-1].numpy()
        out[:, 2] = three[0]
        out[:, 0] = three[1] - constant
        out[:, 1] = three[2] - constant
        out[:, 3] = self.squares(at)


@no_grad
def radii(
    net: Piecewise, point: Float64[Tensor, "*d"], axes: Float64[Tensor, "2 *d"]
) -> Generator[None, None, list[npt.NDArray[np.float64]]]:
    """Return how large a square around a point is when the line of each unit first cuts it.

    The units are those of the point's own linear region, continued beyond it; the half sides of the
    square are the axes. So the numbers, sorted for each operation, tell how many cuts a window of
    the plane is going to have.
    """
    flow, radii = ForwardPass(net), []
    values: Values = {net.program.input: torch.stack([point, *axes, torch.zeros_like(point)])}
    for node in flow.order:
        at = flow.ops.get(node)
        if at is None:
            values[node] = flow.affine(node, values, 4, 1)
        else:
            op = net.ops[at]
            args, kwargs = flow.arguments(node, values, 4, slice(4))
            functions = op.source(*args, **kwargs).expand(4, -1)
            pattern = op.pattern(functions[:1])
            cuts = _cuts(op, functions, pattern)
            radii.append(np.sort(cuts[cuts <= 1.0].numpy()))  # others miss the plane that was asked
            args, kwargs = flow.arguments(node, values, 4, slice(1))
            out = op.chosen(pattern, *args, **kwargs)
            slopes = flow.derivatives(op, pattern.expand(2, -1), values, 4, slice(1, 3))
            values[node] = torch.cat([out, slopes, torch.zeros_like(out)])
        for arg in node.all_input_nodes:
            if flow.last.get(arg) is node and arg in values and arg is not net.program.output:
                del values[arg]
        yield
    return radii


def _cuts(
    op: PiecewiseOp, functions: Float64[Tensor, "4 m"], pattern: Tensor
) -> Float64[Tensor, " k"]:
    """Return the half side at which each kink of an operation enters a square, else infinity."""
    value, moves = functions[0], functions[1:3] - functions[3:]
    if op.windows is not None:
        chosen = op.windows.gather(1, pattern[0].long()[:, None])
        others = op.windows
        value = (value[chosen] - value[others]).flatten()
        moves = (moves[:, chosen] - moves[:, others]).flatten(1)
    reach = moves.abs().sum(0)
    size = functions.abs().amax()
    return torch.where(reach > 1e-12 * size, value.abs() / reach, float("inf"))
