"""The units around a point, with the patterns of its cell fixed: how near their kinks are."""

from collections.abc import Generator, Iterator

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, fx

from inscape._core.functional import MEMORY
from inscape._core.inference import no_grad
from inscape._core.pieces.line_sizes import NOISE, Values, largest, sizes_after, summands
from inscape._core.pieces.piecewise import Piecewise
from inscape._core.sampling import generator
from inscape.regions._faces import CONSTANT, Array, Faces, Whole, rows_of, sizes_of
from inscape.regions._probing import COPIES

#: Corners of the unit cube at which slopes and sizes are looked at before any is known exactly.
CORNERS = 4

#: Units whose gradients are taken at a time.
TOGETHER = 8


class Units:
    """All half-spaces that units make around a point: where, how far about, and their gradients.

    ``names`` has the columns bend, unit and rival, in the order of the half-spaces; ``distances``
    are rough until the gradients are known: from differences along random directions.
    """

    def __init__(self, net: Piecewise, point: Float64[Tensor, "*d"]) -> None:
        self.net, self.point = net, point
        self.patterns: list[Tensor] = []
        self._zero: list[Tensor] = []
        self._here: list[Tensor] = []
        self._sizes: list[Tensor] = []
        self.names: Whole = np.zeros((0, 3), np.int64)
        self._slacks: Array = np.zeros(0)
        self._noise: Array = np.zeros(0)
        self._far: Array = np.zeros(0)

    @no_grad
    def look(self) -> Iterator[None]:
        """Send the point, zero and some corners through the network once, with its patterns."""
        net, program = self.net, self.net.program
        draw = torch.randn(CORNERS, *self.point.shape, generator=generator(0), dtype=torch.float64)
        x = torch.cat([torch.zeros_like(self.point)[None], self.point[None], draw.sign()])
        whole, last = torch.zeros(len(x), dtype=torch.int64), net._last_use([program.output])
        values: Values = {**program.constants, program.input: x}
        sized: Values = {program.input: largest(x, whole)}
        bends = {bend.node: bend for bend in net.bends}
        far, slacks, names = [], [], []
        for node in program.nodes:
            if node not in last:
                continue
            if (bend := bends.get(node)) is None:
                values[node] = program.step(node, values)
                if any(arg in sized for arg in node.all_input_nodes):
                    sized[node] = sizes_after(node, values, sized)
            else:
                at = len(self.patterns)
                args = fx.node.map_arg(node.args, values.__getitem__)
                kwargs = fx.node.map_arg(node.kwargs, values.__getitem__)
                functions = bend.source(*args, **kwargs).expand(len(x), -1)
                self._sizes.append(summands(net, at, values, sized)[0])
                self.patterns.append(bend.pattern(functions[1:2]))
                self._zero.append(functions[0])
                self._here.append(functions[1])
                along = (functions[2:] - functions[0]).T
                rows, slack, units = rows_of(bend, self.patterns[at][0], along, functions[1])
                far.append(np.linalg.norm(rows, axis=1) / CORNERS**0.5)
                slacks.append(slack)
                names.append(np.insert(units, 0, at, axis=1))
                values[node] = bend.chosen(self.patterns[at].expand(len(x), -1), *args, **kwargs)
                sized[node] = largest(values[node], whole)
            for arg in node.all_input_nodes:
                if last[arg] is node and arg not in program.constants:
                    values.pop(arg, None)
                    sized.pop(arg, None)
            yield
        self.names = np.concatenate([np.zeros((0, 3), np.int64), *names])
        self._slacks = np.concatenate([np.zeros(0), *slacks])
        self._noise = np.concatenate([np.zeros(0), *map(self._noise_of, range(len(net.bends)))])
        steep = np.concatenate([np.zeros(0), *far])
        moves = (steep > CONSTANT * np.abs(self._slacks)) & (steep > self._noise)
        self._far = np.full(len(steep), np.inf)
        self._far[moves] = np.maximum(self._slacks[moves], 0.0) / steep[moves]

    def _noise_of(self, at: int) -> Array:
        bend = self.net.bends[at]
        names = self.names[self.names[:, 0] == at, 1:]
        return NOISE * sizes_of(bend, names, self._sizes[at])

    @property
    def number(self) -> int:
        """Return how many half-spaces there are."""
        return len(self.names)

    def nearest(self) -> Whole:
        """Return the half-spaces that move in the cell, those first that seem the nearest."""
        order = np.argsort(self._far, kind="stable")
        return order[np.isfinite(self._far[order])]

    def faces(self, some: Whole, normals: Array) -> Faces:
        """Return half-spaces with their gradients as faces; those that do not move are constant."""
        length = np.linalg.norm(normals, axis=1)
        slack = self._slacks[some]
        moves = (length > CONSTANT * np.abs(slack)) & (length > self._noise[some])
        kept = some[moves]
        return Faces(
            normals=normals[moves] / length[moves, None],
            distances=np.maximum(slack[moves] / length[moves], 0.0),
            makers=np.insert(self.names[kept], 0, np.arange(len(kept)), axis=1),
            constant=int((~moves).sum()),
        )

    def gradients(self, some: Whole) -> Generator[None, None, Array]:
        """Return the gradients of some half-spaces, one row each, by backward passes."""
        out = np.empty((len(some), self.net.inputs))
        for begin in range(0, len(some), TOGETHER):
            part = some[begin : begin + TOGETHER]
            out[begin : begin + len(part)] = yield from self._backward(part)
        return out

    def _backward(self, some: Whole) -> Generator[None, None, Array]:
        with torch.enable_grad():
            x = self.point[None].repeat(len(some), *[1] * self.point.ndim).requires_grad_()
        fixed = [pattern.expand(len(some), -1) for pattern in self.patterns]
        total, at = torch.zeros((), dtype=torch.float64), 0
        bend, unit, rival = torch.from_numpy(self.names[some]).T
        steps = self.net.traced_in_turn(x, fixed)
        while at <= int(bend.max()):
            with torch.enable_grad():
                functions = next(steps)
                if functions is not None:
                    rows = (bend == at).nonzero()[:, 0]
                    if len(rows):
                        total = total + self._outward(at, functions, rows, unit, rival)
                    at += 1
            yield
        (slopes,) = torch.autograd.grad(total, x)
        return slopes.flatten(1).numpy()

    def _outward(
        self, at: int, functions: Tensor, rows: Tensor, unit: Tensor, rival: Tensor
    ) -> Tensor:
        """Return the sum of what grows towards the kinks of some units."""
        one, pattern = self.net.bends[at], self.patterns[at][0]
        if one.windows is None:
            sign = torch.where(pattern[unit[rows]].bool(), -1.0, 1.0).double()
            return (sign * functions[rows, unit[rows]]).sum()
        winner = one.windows[unit[rows]].gather(1, pattern[unit[rows]].long()[:, None])[:, 0]
        return (functions[rows, rival[rows]] - functions[rows, winner]).sum()

    @no_grad
    def all_faces(self, memory: int) -> Generator[None, None, Faces]:
        """Return all half-spaces, from differences between unit vectors and zero."""
        d, shape, found = self.net.inputs, self.net.input_shape, []
        slopes = [torch.empty(len(zero), d, dtype=torch.float64) for zero in self._zero]
        widest = max([d, *map(len, slopes)])
        rows = max(1, min(d, min(MEMORY, memory) // (8 * COPIES * widest)))
        for start in range(0, d, rows):
            count = min(rows, d - start)
            steps = torch.zeros(count, d, dtype=torch.float64)
            steps[torch.arange(count), start + torch.arange(count)] = 1.0
            fixed, at = [pattern.expand(count, -1) for pattern in self.patterns], 0
            for functions in self.net.in_turn(steps.reshape(-1, *shape), fixed):
                if functions is not None and at < len(slopes):
                    slopes[at][:, start : start + count] = (functions - self._zero[at]).T
                    at += 1
                yield
        for at, bend in enumerate(self.net.bends):
            noise = 1e-14 * (self._zero[at].abs() + slopes[at].abs().amax(1))
            slopes[at][slopes[at].abs() <= noise[:, None]] = 0.0
            found.append(rows_of(bend, self.patterns[at][0], slopes[at], self._here[at])[0])
            yield
        normals = np.concatenate([np.zeros((0, d)), *found])
        return self.faces(np.arange(self.number), normals)

    def map(self) -> Generator[None, None, tuple[Tensor, Tensor]]:
        """Return the slopes and constants of the affine map of the cell, by backward passes."""
        c, d = self.net.outputs, self.net.inputs
        slopes, values = torch.empty(c, d, dtype=torch.float64), torch.empty(c, dtype=torch.float64)
        for begin in range(0, c, TOGETHER):
            some = torch.arange(begin, min(begin + TOGETHER, c))
            with torch.enable_grad():
                x = self.point[None].repeat(len(some), *[1] * self.point.ndim).requires_grad_()
            fixed = [pattern.expand(len(some), -1) for pattern in self.patterns]
            outputs = yield from self._outputs(x, fixed)
            with torch.enable_grad():
                total = outputs[torch.arange(len(some)), some].sum()
            (slope,) = torch.autograd.grad(total, x)
            slopes[some] = slope.flatten(1)
            values[some] = outputs.detach()[0, some]
        return slopes, values - slopes @ self.point.flatten()

    def _outputs(self, x: Tensor, fixed: list[Tensor]) -> Generator[None, None, Tensor]:
        """Return the outputs of the affine map so that autograd can follow, in small steps."""
        steps, outputs = self.net.traced_in_turn(x, fixed), x
        for _ in range(len(self.net.bends) + 1):
            functions = None
            while functions is None:
                with torch.enable_grad():
                    functions = next(steps)
                yield
            outputs = functions
        return outputs
