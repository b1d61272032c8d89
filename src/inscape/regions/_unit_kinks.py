"""The kinks of all units around a point, with the activation pattern of its cell fixed."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, fx

from inscape._core.inference import no_grad
from inscape._core.sampling import generator
from inscape.functional.jacobians import MEMORY
from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.graph.piecewise_ops import PiecewiseOp
from inscape.piecewise.lines.rounding import NOISE, Values, largest, sizes_after, summands
from inscape.regions._affine_values import COPIES
from inscape.regions._faces import CONSTANT, Array, Faces, Whole, rows_of, sizes_of

#: Corners of the unit cube at which slopes and sizes are estimated before they are computed.
CORNERS = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class _Kinks:
    """The half-spaces of one operation: approximate distances, and the noise of their gradients.

    ``pairs`` has unit and successor of each where the operation has windows; else each unit has
    one.
    """

    pairs: Whole | None
    slacks: Array
    noise: Array
    far: Array


class Units:
    """All half-spaces of units around a point: approximate distances, and gradients.

    They are numbered from the first operation on. Distances are rough until the gradients are
    known: from differences along random directions.
    """

    def __init__(self, net: Piecewise, point: Float64[Tensor, "*d"]) -> None:
        self.net, self.point = net, point
        self.patterns: list[Tensor] = []
        self._kinks: list[_Kinks] = []
        self._start, self._functions = point, list[Tensor]()
        self._trace: Iterator[Tensor | None] | None = None

    @no_grad
    def look(self) -> Iterator[None]:
        """Evaluate the point, zero and some corners in one forward pass, with fixed patterns."""
        net, program = self.net, self.net.program
        draw = torch.randn(CORNERS, *self.point.shape, generator=generator(0), dtype=torch.float64)
        x = torch.cat([torch.zeros_like(self.point)[None], self.point[None], draw.sign()])
        group, last = torch.zeros(len(x), dtype=torch.int64), net._last_use([program.output])
        values: Values = {**program.constants, program.input: x}
        sized: Values = {program.input: largest(x, group)}
        ops = {op.node: op for op in net.ops}
        for node in program.nodes:
            if node not in last:
                continue
            if (op := ops.get(node)) is None:
                values[node] = program.step(node, values)
                if any(arg in sized for arg in node.all_input_nodes):
                    sized[node] = sizes_after(node, values, sized)
            else:
                args = fx.node.map_arg(node.args, values.__getitem__)
                kwargs = fx.node.map_arg(node.kwargs, values.__getitem__)
                functions = op.source(*args, **kwargs).expand(len(x), -1)
                self.patterns.append(pattern := op.pattern(functions[1:2]))
                sizes = summands(net, len(self._kinks), values, sized)[0]
                self._kinks.append(_kinks(op, pattern[0], functions, sizes))
                values[node] = op.chosen(pattern.expand(len(x), -1), *args, **kwargs)
                sized[node] = largest(values[node], group)
            for arg in node.all_input_nodes:
                if last[arg] is node and arg not in program.constants:
                    values.pop(arg, None)
                    sized.pop(arg, None)
            yield

    @property
    def _first(self) -> Whole:
        """Return the number of the first half-space of each operation, and the total."""
        return np.cumsum([0, *(len(kinks.slacks) for kinks in self._kinks)])

    @property
    def number(self) -> int:
        """Return how many half-spaces there are."""
        return int(self._first[-1])

    def names(self, numbers: Whole) -> Whole:
        """Return operation, unit and successor of some half-spaces."""
        first = self._first
        op = np.searchsorted(first, numbers, side="right") - 1
        names = np.stack([op, numbers - first[op], np.full(len(numbers), -1)], 1)
        for at in np.unique(op):
            if (pairs := self._kinks[at].pairs) is not None:
                names[op == at, 1:] = pairs[names[op == at, 1]]
        return names

    def nearest(self, most: int) -> tuple[Whole, int]:
        """Return the half-spaces that seem the nearest, in order, and how many move in the cell."""
        far = np.concatenate([np.zeros(0), *(kinks.far for kinks in self._kinks)])
        moving = int(np.isfinite(far).sum())
        candidates = np.arange(len(far))
        if 0 < most < moving:
            candidates = np.flatnonzero(far <= np.partition(far, most - 1)[most - 1])
        order = candidates[np.argsort(far[candidates], kind="stable")]
        return order[: min(most, moving)], moving

    def faces(self, numbers: Whole, normals: Array) -> Faces:
        """Return half-spaces with their gradients as faces; those that do not move are constant."""
        length = np.linalg.norm(normals, axis=1)
        names, (slack, noise) = self.names(numbers), self._given(numbers)
        moves = (length > CONSTANT * np.abs(slack)) & (length > noise)
        return Faces(
            normals=normals[moves] / length[moves, None],
            distances=np.maximum(slack[moves] / length[moves], 0.0),
            switching_units=np.insert(names[moves], 0, np.arange(int(moves.sum())), axis=1),
            constant=int((~moves).sum()),
        )

    def _given(self, numbers: Whole) -> tuple[Array, Array]:
        """Return slacks and noise of some half-spaces."""
        first, out = self._first, np.empty((2, len(numbers)))
        op = np.searchsorted(first, numbers, side="right") - 1
        for at in np.unique(op):
            of_op = op == at
            local, kinks = numbers[of_op] - first[at], self._kinks[at]
            out[:, of_op] = kinks.slacks[local], kinks.noise[local]
        return out[0], out[1]

    def gradients(self, numbers: Whole) -> Generator[None, None, Array]:
        """Return the gradients of some half-spaces, one row each, by a backward pass for each.

        The passes share one forward pass, and go back from the operation of the unit alone.
        """
        out = np.empty((len(numbers), self.net.inputs))
        for k, (at, unit, successor) in enumerate(self.names(numbers).tolist()):
            yield from self._traced(at)
            with torch.enable_grad():
                total = self._outward(at, unit, successor)
            out[k] = self._slopes(total)
            yield
        return out

    def _traced(self, at: int) -> Iterator[None]:
        """Record autograd's graph up to an operation, or to the outputs, with fixed patterns."""
        if self._trace is None:
            with torch.enable_grad():
                self._start = self.point[None].clone().requires_grad_()
            self._trace = self.net.traced_in_turn(self._start, self.patterns)
        while len(self._functions) <= at:
            with torch.enable_grad():
                functions = next(self._trace)
                if functions is not None:
                    self._functions.append(functions[0])
            yield

    def _slopes(self, total: Tensor) -> Array:
        (slopes,) = torch.autograd.grad(total, self._start, retain_graph=True)
        return slopes.flatten().numpy()

    def _untraced(self) -> None:
        """Free the graph of autograd."""
        self._trace, self._start = None, self.point
        self._functions.clear()

    def _outward(self, at: int, unit: int, successor: int) -> Tensor:
        """Return the function that grows towards the kink of a unit and is zero there."""
        op, functions = self.net.ops[at], self._functions[at]
        chosen = int(self.patterns[at][0, unit])
        if op.windows is None:
            return -functions[unit] if chosen else functions[unit]
        return functions[successor] - functions[int(op.windows[unit, chosen])]

    @no_grad
    def all_faces(self, memory: int) -> Generator[None, None, Faces]:
        """Return all half-spaces, from differences between unit vectors and zero."""
        self._untraced()
        d, shape, rows_of_ops = self.net.inputs, self.net.input_shape, []
        zero = list[Tensor]()
        for functions in self.net.in_turn(torch.zeros_like(self.point)[None], self.patterns):
            zero += [] if functions is None else [functions[0]]
            yield
        slopes = [torch.empty(len(row), d, dtype=torch.float64) for row in zero[:-1]]
        widest = max([d, *map(len, slopes)])
        rows = max(1, min(d, min(MEMORY, memory) // (8 * COPIES * widest)))
        for start in range(0, d, rows):
            count = min(rows, d - start)
            steps = torch.zeros(count, d, dtype=torch.float64)
            steps[torch.arange(count), start + torch.arange(count)] = 1.0
            fixed, at = [pattern.expand(count, -1) for pattern in self.patterns], 0
            for functions in self.net.in_turn(steps.reshape(-1, *shape), fixed):
                if functions is not None and at < len(slopes):
                    slopes[at][:, start : start + count] = (functions - zero[at]).T
                    at += 1
                yield
        for at, op in enumerate(self.net.ops):
            noise = 1e-14 * (zero[at].abs() + slopes[at].abs().amax(1))
            slopes[at][slopes[at].abs() <= noise[:, None]] = 0.0
            rows_of_ops.append(rows_of(op, self.patterns[at][0], slopes[at], zero[at])[0])
            yield
        normals = np.concatenate([np.zeros((0, d)), *rows_of_ops])
        return self.faces(np.arange(self.number), normals)

    def map(self) -> Generator[None, None, tuple[Tensor, Tensor]]:
        """Return Jacobian and constant of the affine map of the cell, by backward passes."""
        c, d = self.net.outputs, self.net.inputs
        slopes = np.empty((c, d))
        yield from self._traced(len(self.net.ops))
        values = self._functions[-1]
        for k in range(c):
            with torch.enable_grad():
                total = values[k]
            slopes[k] = self._slopes(total)
            yield
        matrix = torch.from_numpy(slopes)
        return matrix, values.detach() - matrix @ self.point.flatten()


def _kinks(op: PiecewiseOp, pattern: Tensor, functions: Tensor, sizes: Tensor) -> _Kinks:
    """Return the half-spaces of an operation from its values at zero, the point and corners."""
    along = (functions[2:] - functions[0]).T
    rows, slacks, pairs = rows_of(op, pattern, along, functions[1])
    steep = np.linalg.norm(rows, axis=1) / CORNERS**0.5
    noise = NOISE * sizes_of(op, pairs, sizes)
    moves = (steep > CONSTANT * np.abs(slacks)) & (steep > noise)
    far = np.full(len(steep), np.inf)
    far[moves] = np.maximum(slacks[moves], 0.0) / steep[moves]
    candidates = None if op.windows is None else pairs
    return _Kinks(pairs=candidates, slacks=slacks, noise=noise, far=far)
