"""Cut a polygon of a plane at every place where a network bends, layer by layer."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.pieces.layers import layers
from inscape._core.pieces.piecewise import Piecewise
from inscape._core.pieces.plane import kernels, merging
from inscape._core.pieces.plane.history import History
from inscape._core.pieces.plane.sources import Chain, Graph, Source
from inscape._core.pieces.plane.subdivision import (
    Lines,
    Subdivision,
    Workers,
    cut,
    dissolved,
    polygon,
)

Array = npt.NDArray[Any]

#: Values nearer to zero than this many roundings of their size are zero.
ROUNDINGS = 512

#: Lines that are put into one face at a time; more wait for the next round.
MOST_LINES = 24

#: Bytes of coefficients that are held at a time.
HELD = 2**24


@dataclass(frozen=True, eq=False, kw_only=True)
class Budget:
    """Where to stop: numbers of faces, and a time."""

    regions: int
    until: float = float("inf")

    def share(self, at: int, bends: int) -> float:
        """Return when the cutting by bend ``at`` has to stop: each takes half of what is left."""
        left = self.until - time.monotonic()
        return time.monotonic() + left / 2 if at + 1 < bends else time.monotonic() + 0.8 * left


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """A polygon cut into the cells of a network, in coordinates from -1 to 1 of its window.

    ``maps`` are the outputs on each cell: coefficients for x, for y and constant.
    """

    plane: Subdivision
    history: History
    maps: Array
    complete: bool


def cells(
    net: Piecewise,
    points: Float64[Tensor, "3 *d"],
    corners: Array,
    *,
    budget: Budget,
    threads: int = 1,
    on_round: Callable[[str, int], None] = lambda place, faces: None,
) -> Cells:
    """Return all cells of a network in a convex polygon.

    ``points`` are the inputs at (0, 0), (1, 0) and (0, 1) of the window's coordinates.
    """
    history, chained = History(), layers(net)
    source: Source = (
        Graph(net, points, history) if chained is None else Chain(chained, points, history)
    )
    workers = Workers(threads)
    try:
        work = _Cutting(net, source, history, workers, budget, polygon(corners))
        for at, bend in enumerate(net.bends):
            tolerance = _tolerance(net, points, corners, at)
            if bend.windows is None:
                work.by_signs(at, tolerance)
            else:
                work.by_maxima(at, bend.windows.numpy(), tolerance)
            on_round(bend.place, work.plane.faces)
        return Cells(plane=work.plane, history=history, maps=work.maps(), complete=work.complete)
    finally:
        workers.close()


def _tolerance(net: Piecewise, points: Float64[Tensor, "3 *d"], corners: Array, at: int) -> Array:
    """Return below which size the value of a function is rounding.

    The size of a function is the largest that it has at the corners, and at these and at the
    origin with some signs of the input turned: so a small window far from zero is judged by the
    numbers that go into its values.
    """
    at_corner = torch.from_numpy(corners).to(points)
    shape = [-1, *[1] * (points.ndim - 1)]
    u, v = (at_corner[:, k].reshape(shape) for k in range(2))
    x = points[:1] + u * (points[1:2] - points[:1]) + v * (points[2:] - points[:1])
    signs = torch.empty_like(x).bernoulli_(0.5, generator=torch.Generator().manual_seed(0))
    near = torch.cat([x, points[:1], torch.zeros_like(x[:1]), x * (2 * signs - 1)])
    size = net.functions(near, at).abs().amax(0).numpy()
    return size * ROUNDINGS * np.finfo(np.float64).eps


class _Cutting:
    """The plane so far, and how each bend cuts it further."""

    def __init__(
        self,
        net: Piecewise,
        source: Source,
        history: History,
        workers: Workers,
        budget: Budget,
        plane: Subdivision,
    ) -> None:
        self.net, self.source, self.history = net, source, history
        self.workers, self.budget, self.plane = workers, budget, plane
        self.complete = True

    def by_signs(self, at: int, tolerance: Array) -> None:
        """Cut by all units of a bend, each at the zero of its function."""
        units, until = self.source.size(at), self.budget.share(at, len(self.net.bends))
        state = _Signs(self.plane, units, tolerance, self.source.slopes(at))
        self.source.begun(at, self.plane.faces)
        active = np.arange(self.plane.faces)
        while len(active):
            state.owner = self.plane.owners(active)
            found = self._held(
                at,
                active,
                until,
                lambda faces, coef: self._listed(at, faces, coef, state),
            )
            counts, unit, coef = (np.concatenate(parts) for parts in zip(*found, strict=True))
            active = self._reached(active, len(counts), state)
            start = _starts(active, counts, self.plane.faces)
            if state.is_first_round:
                all_lists, state.is_first_round = (start, unit, coef), False
            if not len(unit):
                break
            active = self._cut(at, state, start, unit, unit, coef, len(active) == self.plane.faces)
        self.source.finished(at, *all_lists)
        self.history.add(state.on, units, state.origin)

    def by_maxima(self, at: int, windows: Array, tolerance: Array) -> None:
        """Cut by all windows of a bend, each where the largest of its functions changes."""
        until = self.budget.share(at, len(self.net.bends))
        state = _Choices(self.plane, len(windows))
        active = np.arange(self.plane.faces)
        while len(active):
            found = self._held(
                at,
                active,
                until,
                lambda faces, coef: self._contested(faces, coef, state, windows, tolerance),
            )
            counts, key, unit, coef = (np.concatenate(parts) for parts in zip(*found, strict=True))
            active = self._reached(active, len(counts), state)
            start = _starts(active, counts, self.plane.faces)
            if not len(unit):
                break
            active = self._cut(at, state, start, key, unit, coef, False)
        self._dissolve(state)
        self.history.add(state.choice, len(windows), state.origin)

    def _dissolve(self, state: "_Choices") -> None:
        """Take out edges between faces of one parent and equal choices.

        Two rivals are told apart by a line that may go on where a third one wins.
        """
        plane = self.plane
        a, b = plane.sides.T
        alike = (a >= 0) & (b >= 0)
        alike &= (state.origin[a] == state.origin[b]) & (state.choice[a] == state.choice[b]).all(1)
        if alike.any():
            root = merging.joined(plane.sides, alike, plane.faces)
            self.plane, kept = dissolved(plane, root)
            self.history.divide(kept)
            state.divide(kept)

    def maps(self) -> Array:
        """Return the coefficients of the outputs on every face."""
        bends, faces = len(self.net.bends), self.plane.faces
        out = np.empty((faces, 3, self.source.size(bends)))

        def part(begin: int, end: int) -> None:
            self.source.coefficients(bends, np.arange(begin, end), out[begin:end])

        self.workers.over(faces, part)
        return out

    def _held(
        self, at: int, active: Array, until: float, work: Callable[[Array, Array], list[Any]]
    ) -> list[Any]:
        """Call ``work`` with some faces at a time and their coefficients, as far as time allows."""
        size = self.source.size(at)
        step = max(1, HELD // (24 * size))
        found: list[Any] = []
        for begin in range(0, len(active), step):
            if begin and time.monotonic() > until:
                break
            faces = active[begin : begin + step]
            coef = np.empty((len(faces), 3, size))
            found += work(faces, coef)
        return found

    def _listed(
        self, at: int, faces: Array, coef: Array, state: "_Signs"
    ) -> list[tuple[Array, Array, Array]]:
        """Return how many functions cross each face, which, and their coefficients there."""
        plane = self.plane
        where = (plane.first, plane.halves, plane.ends)

        def signs(a: int, b: int) -> None:
            self.source.coefficients(at, faces[a:b], coef[a:b])
            kernels.marked(
                coef[a:b], faces[a:b], *where, plane.place, state.owner, state.known,
                state.tolerance, state.plus, state.minus,
            )  # fmt: skip

        def lists(a: int, b: int) -> tuple[Array, Array, Array]:
            some, over = faces[a:b], np.empty((b - a, state.plus.shape[1]), np.uint64)
            count = np.empty(b - a, np.int64)
            total = kernels.crossed(some, *where, state.plus, state.minus, state.on, over, count)
            unit, kept = np.empty(total, np.int64), np.empty((total, 4))
            more = (over, state.on, state.tolerance, state.slope, unit, kept)
            kernels.listed(coef[a:b], some, *more)
            if state.is_first_round:
                self.source.passed(at, some, coef[a:b])
            return count, unit, kept

        self.workers.over(len(faces), signs, 128)
        return self.workers.over(len(faces), lists, 128)

    def _contested(
        self, faces: Array, coef: Array, state: "_Choices", windows: Array, tolerance: Array
    ) -> list[tuple[Array, Array, Array, Array]]:
        """Return how many windows have no winner on each face, with a pair of rivals for each."""
        plane, at = self.plane, len(self.history.rows)
        where = (plane.first, plane.halves, plane.ends, plane.place)

        def rivals(a: int, b: int) -> tuple[Array, Array, Array, Array]:
            some, room = faces[a:b], (b - a) * min(MOST_LINES, len(windows))
            self.source.coefficients(at, some, coef[a:b])
            count, kept = np.empty(b - a, np.int64), np.empty((room, 4))
            key, unit = np.empty(room, np.int64), np.empty(room, np.int64)
            total = kernels.contested(
                coef[a:b], some, *where, windows, tolerance, MOST_LINES, state.choice,
                count, key, unit, kept,
            )  # fmt: skip
            return count, key[:total], unit[:total], kept[:total]

        return self.workers.over(len(faces), rivals, 32)

    def _reached(self, active: Array, number: int, state: "_State") -> Array:
        """Leave out the faces that there was no time for, and those above the budget."""
        last = self.plane.faces if number == len(active) else int(active[number - 1]) + 1
        last = min(last, self.budget.regions)
        if last < self.plane.faces:
            self._truncate(last, state)
        return active[:number]

    def _truncate(self, faces: int, state: "_State") -> None:
        """Leave out all but the first faces."""
        self.complete = False
        self.plane = self.plane.truncated(faces)
        state.divide(np.arange(faces))
        self.history.divide(np.arange(faces))

    def _cut(
        self,
        at: int,
        state: "_State",
        start: Array,
        key: Array,
        unit: Array,
        coef: Array,
        alike: bool,
    ) -> Array:
        """Cut the faces by some of their lines; return those that have to be asked again."""
        start, chosen, waiting = _some(start)
        plus, minus, on = state.signs()
        lines = Lines(
            start=start, key=key[chosen], unit=unit[chosen], coef=coef[chosen],
            plus=plus, minus=minus, on=on, alike=alike and not waiting.any(),
        )  # fmt: skip
        before = self.plane.faces
        self.plane, parent, on = cut(self.plane, lines, at, self.workers, self.budget.regions)
        self.complete = self.complete and bool(parent[-1] == before - 1)
        self.history.divide(parent)
        state.divided(parent, on, len(self.plane.place))
        if self.plane.faces > self.budget.regions:
            self._truncate(self.budget.regions, state)
            parent = parent[: self.plane.faces]
        again = np.diff(start) > 0 if isinstance(state, _Choices) else waiting
        return np.flatnonzero(again[parent])


class _State:
    """What is known of the faces while one bend cuts them."""

    origin: Array

    def divide(self, parent: Array) -> None:
        """Follow the faces when they are cut or left out."""
        self.origin = self.origin[parent]

    def divided(self, parent: Array, on: Array, vertices: int) -> None:
        """Take the signs of the parts, and make room for new vertices."""
        self.divide(parent)

    def signs(self) -> tuple[Array, Array, Array]:
        """Return the signs at the vertices, none, and those of the faces."""
        none = np.empty((0, 1), np.uint64)
        return none, none, np.zeros((len(self.origin), 1), np.uint64)


class _Signs(_State):
    def __init__(self, plane: Subdivision, units: int, tolerance: Array, slope: Array) -> None:
        words = (units + 63) // 64
        self.tolerance, self.slope, self.known = tolerance, slope, 0
        self.owner, self.is_first_round = np.empty(0, np.int64), True
        self.origin = np.arange(plane.faces)
        self.on = np.zeros((plane.faces, words), np.uint64)
        self.plus = np.zeros((len(plane.place), words), np.uint64)
        self.minus = np.zeros_like(self.plus)

    def divide(self, parent: Array) -> None:
        super().divide(parent)
        self.on = self.on[parent]

    def divided(self, parent: Array, on: Array, vertices: int) -> None:
        super().divide(parent)
        self.on, self.known = on, len(self.plus)
        more = np.zeros((vertices - self.known, self.plus.shape[1]), np.uint64)
        self.plus = np.concatenate([self.plus, more])
        self.minus = np.concatenate([self.minus, more])

    def signs(self) -> tuple[Array, Array, Array]:
        return self.plus, self.minus, self.on


class _Choices(_State):
    def __init__(self, plane: Subdivision, units: int) -> None:
        self.origin = np.arange(plane.faces)
        self.choice = np.zeros((plane.faces, units), np.uint8)

    def divide(self, parent: Array) -> None:
        super().divide(parent)
        self.choice = self.choice[parent]

    def divided(self, parent: Array, on: Array, vertices: int) -> None:
        self.divide(parent)


def _starts(active: Array, counts: Array, faces: int) -> Array:
    """Return where the list of each face begins, from the counts of the active ones."""
    spread = np.zeros(faces, np.int64)
    kept = active < faces
    spread[active[kept]] = counts[kept]
    return np.concatenate([[0], np.cumsum(spread)])


def _some(start: Array) -> tuple[Array, Array | slice, Array]:
    """Choose the first lines of each face; return which, and where more are waiting."""
    counts = np.diff(start)
    waiting = counts > MOST_LINES
    if not waiting.any():
        return start, slice(0, start[-1]), waiting
    fewer = np.minimum(counts, MOST_LINES)
    begin = np.concatenate([[0], np.cumsum(fewer)])
    chosen = np.arange(begin[-1]) - np.repeat(begin[:-1] - start[:-1], fewer)
    return begin, chosen, waiting
