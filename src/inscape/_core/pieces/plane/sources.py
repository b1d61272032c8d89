"""Where the affine functions of a layer come from, for every face of a plane."""

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.pieces.layers import Layers
from inscape._core.pieces.piecewise import Piecewise
from inscape._core.pieces.plane import kernels
from inscape._core.pieces.plane.history import History

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

#: Bytes of activations that the graph may hold at a time.
MEMORY = 2**26


@runtime_checkable
class Source(Protocol):
    """Coefficients (x, y, constant) of what a bend looks at, on faces of the plane so far."""

    def size(self, at: int) -> int:
        """Return how many functions bend ``at`` looks at; after the last, the outputs."""

    def coefficients(self, at: int, faces: Ints, out: Floats) -> None:
        """Write the coefficients of the functions of bend ``at`` on these faces."""

    def slopes(self, at: int) -> Floats:
        """Return the slope below zero of every unit of bend ``at``."""

    def begun(self, at: int, faces: int) -> None:
        """Make room for the faces that bend ``at`` is going to cut."""

    def passed(self, at: int, faces: Ints, coef: Floats) -> None:
        """Take what comes out of the kinks of bend ``at`` with all crossing units off."""

    def finished(self, at: int, start: Ints, unit: Ints, coef: Floats) -> None:
        """Take the lists of the units that cross the faces which bend ``at`` has cut."""


class Graph:
    """Coefficients from the exported graph itself, run with the choices of each face."""

    def __init__(self, net: Piecewise, points: Float64[Tensor, "3 *d"], history: History) -> None:
        self.net, self.points, self.history = net, points, history
        self._sizes = [net.functions(points[:1], k).shape[1] for k in range(len(net.bends))]
        self._sizes.append(net.outputs)
        self._rows = max(1, MEMORY // (8 * 3 * (4 * max(self._sizes) + net.inputs)))

    def size(self, at: int) -> int:
        """Return how many functions bend ``at`` looks at; after the last, the outputs."""
        return self._sizes[at]

    def coefficients(self, at: int, faces: Ints, out: Floats) -> None:
        """Evaluate each face's own affine functions at three points that are not on a line."""
        last = at == len(self.net.bends)
        for begin in range(0, len(faces), self._rows):
            some = faces[begin : begin + self._rows]
            x = self.points.repeat(len(some), *[1] * (self.points.ndim - 1))
            patterns = [
                torch.from_numpy(self.history.choices(k, some)).repeat_interleave(3, 0)
                for k in range(at)
            ]
            z = self.net.values(x, patterns) if last else self.net.functions(x, at, patterns)
            three = z.reshape(len(some), 3, -1).numpy()
            part = out[begin : begin + len(some)]
            part[:, 2] = three[:, 0]
            part[:, 0] = three[:, 1] - three[:, 0]
            part[:, 1] = three[:, 2] - three[:, 0]

    def slopes(self, at: int) -> Floats:
        """Return zeros: the graph does not need what comes out of the kinks."""
        return np.zeros(self._sizes[at])

    def begun(self, at: int, faces: int) -> None:
        """Need nothing: the graph is asked anew for every face."""

    def passed(self, at: int, faces: Ints, coef: Floats) -> None:
        """Need nothing: the next layer asks the graph again."""

    def finished(self, at: int, start: Ints, unit: Ints, coef: Floats) -> None:
        """Need nothing: the next layer asks the graph again."""


class Chain:
    """Coefficients of a chain of matrices, by rank-one updates.

    Faces of one parent differ by the units that cross the parent. So the product with the next
    matrix is taken once for the parent, with these units off, and a column of the matrix is added
    for each that is on.
    """

    def __init__(self, layers: Layers, points: Float64[Tensor, "3 *d"], history: History) -> None:
        self.layers, self.history = layers, history
        three = layers.first(points)
        self._base = np.stack([three[1] - three[0], three[2] - three[0], three[0]])[None]
        self._next: Floats | None = None
        self._lists = (np.zeros(2, np.int64), np.empty(0, np.int64), np.empty((0, 4)))
        self._columns, self._gain = np.zeros((1, 1)), np.zeros(1)

    def size(self, at: int) -> int:
        """Return how many functions bend ``at`` looks at; after the last, the outputs."""
        return len(self.layers.biases[at - 1]) if at else self._base.shape[2]

    def coefficients(self, at: int, faces: Ints, out: Floats) -> None:
        """Add to what the parent has a column for each crossing unit that is on."""
        if at == 0:
            out[:] = self._base
            return
        bits, parent = self.history.rows[at - 1], self.history.origin[at - 1]
        rows = self.history.ancestor[at - 1][faces]
        more = (self._gain, self._columns, rows, out)
        kernels.expanded(self._base, parent, *self._lists, bits, *more)

    def slopes(self, at: int) -> Floats:
        """Return the slope below zero of every unit of bend ``at``."""
        return self.layers.slopes[at]

    def begun(self, at: int, faces: int) -> None:
        """Make room for the next layer on the faces that bend ``at`` is going to cut."""
        self._next = np.empty((faces, 3, len(self.layers.biases[at])))

    def passed(self, at: int, faces: Ints, coef: Floats) -> None:
        """Multiply by the next matrix."""
        weight, bias = self.layers.weights[at], self.layers.biases[at]
        assert self._next is not None
        product = coef.reshape(-1, coef.shape[2]) @ weight.T
        product = product.reshape(len(faces), 3, -1)
        product[:, 2] += bias
        self._next[faces] = product

    def finished(self, at: int, start: Ints, unit: Ints, coef: Floats) -> None:
        """Go on to the next layer."""
        assert self._next is not None
        self._base, self._next = self._next, None
        self._lists = (start, unit, coef)
        self._columns = np.ascontiguousarray(self.layers.weights[at].T)
        self._gain = 1.0 - self.layers.slopes[at]
