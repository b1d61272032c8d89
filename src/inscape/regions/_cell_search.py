"""The search for the faces of a point's cell, the nearest first."""

from collections.abc import Generator, Iterator
from math import isnan
from typing import Literal

import numpy as np
from jaxtyping import Float64
from torch import Tensor

from inscape._core import BudgetError
from inscape._core.anytime import stoppable
from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.stepping import StepClock
from inscape.regions._faces import PROGRAMME, Array, Faces, Whole, merged, sides, together
from inscape.regions._unit_kinks import Units
from inscape.regions.polytope import (
    Flags,
    ProgrammeBudget,
    coordinates,
    deciding,
    facet_distance,
    is_bounded,
    largest_ball,
)
from inscape.runtime.progress import progress

#: What ended a search: a budget, or that nothing was left to find.
Ending = Literal["complete", "seconds", "memory", "programmes"]

#: Relative to the point: what is nearer than this to a face lies on it.
ON = 1e-12

#: Bytes for each entry of half-spaces without a linear programme: some copies of them.
NORMAL = 48

#: Half-spaces of the first result.
NEAREST = 16

#: How many times as many half-spaces the next result has.
MORE = 1.25

#: Fraction of the time that all half-spaces may take; if they need more, the nearest are taken.
ALL = 0.5


class CellSearch:
    """The faces of a cell found so far, which of them are proven, and its ball and affine map.

    ``examined`` of ``constraints`` half-spaces were computed. ``ball`` is the largest inside, from
    the point, with radius NaN while it is not known.
    """

    def __init__(
        self,
        net: Piecewise,
        point: Float64[Tensor, "*d"],
        budget: ProgrammeBudget,
        memory: int,
        *,
        box: tuple[Array, Array] | None,
        remove: bool,
        facets: bool,
    ) -> None:
        self.point, self.budget, self._memory = point, budget, memory
        self._units, self._box = Units(net, point), box
        self._remove, self._wants_facets = remove, facets
        d = net.inputs
        self.faces = Faces(normals=np.zeros((0, d)), distances=np.zeros(0),
                           switching_units=np.zeros((0, 4), np.int64))  # fmt: skip
        self.proven: Flags = np.zeros(0, bool)
        self.ball: tuple[Array, float] = (np.zeros(d), float("nan"))
        self.bounded: bool | None = None
        self.facets: Array | None = None
        self.map: tuple[Tensor | None, Tensor | None] = (None, None)
        self.constraints = self.examined = self._distinct = 0
        self._given: Faces | None = None
        self._order: Whole | None = None
        self._moving = 0
        self.is_begun = False
        self.stage = 0  # grows where there is more to be shown

    @property
    def ended_by(self) -> Ending:
        """Return the budget that was spent, of those that left something open."""
        if self.examined < self.constraints:
            return "memory" if self.examined >= self._fitting else "seconds"
        is_open = isnan(self.ball[1]) or (self._remove and not bool(self.proven.all()))
        if not is_open or self.ball[1] <= 0.0:
            return "complete"
        return "programmes" if self.budget.spent >= self.budget.programmes else "seconds"

    def steps(self) -> Iterator[None]:
        """Compute the nearest half-spaces, then all, then decide which are faces."""
        deadline = self.budget.deadline
        begin = deadline.clock()
        yield from self._units.look()
        row = (deadline.clock() - begin) / 6  # six points went through the network
        inputs, number = self._units.net.inputs, self._units.number
        self.constraints = number
        fits = PROGRAMME * number * inputs <= self._memory
        if NORMAL * inputs > self._memory and number:
            raise self._too_large()
        is_late = not stoppable() and 0 < ALL * deadline.left() < row * inputs
        if stoppable() or is_late or not fits:
            # the map takes as many passes as there are outputs: so many faces come before it
            yield from self._nearest(max(NEAREST, self._units.net.outputs))
        yield from self._mapped()
        if not fits or is_late:
            if self.examined < self.constraints:
                yield from self._nearest(self._fitting)
            return
        faces = yield from self._units.all_faces(self._memory)
        self._take(faces, number)
        self.examined = self.constraints = self._distinct
        self.stage += 1
        yield
        yield from self._reduced()

    def _too_large(self) -> BudgetError:
        number, inputs = self._units.number, self._units.net.inputs
        size = PROGRAMME * number * inputs
        return BudgetError(
            f"the half-spaces must fit into {self._memory / 2**30:.2g} GiB, but {number} of them "
            f"in {inputs} dimensions take {size / 2**30:.2g} GiB, and one of them does not fit: "
            "raise memory, or cut the cell by a line or a plane (line_regions, plane_regions)."
        )

    @property
    def _fitting(self) -> int:
        """Return how many half-spaces fit into the memory."""
        return self._memory // (NORMAL * self._units.net.inputs)

    def _nearest(self, most: int) -> Iterator[None]:
        """Compute the gradients of more and more units, the apparently nearest first."""
        if self._order is None:
            self._order, self._moving = self._units.nearest(self._fitting)
            yield
        order, stop = self._order, min(most, len(self._order))
        if not self._moving:
            self._take(self._units.faces(order, np.zeros((0, self._units.net.inputs))), 0)
        while self.examined < stop:
            count = max(1, int((MORE - 1) * self.examined))
            block = order[self.examined : min(self.examined + count, stop)]
            normals = yield from self._units.gradients(block)
            self._add(block, normals)
            self.stage += 1
            yield
        if self.examined >= self._moving:  # all others are constant
            self.examined = self.constraints = self._distinct

    def _add(self, numbers: Whole, normals: Array) -> None:
        """Add half-spaces to those that are known."""
        more = self._units.faces(numbers, normals)
        self._given = more if self._given is None else together(self._given, more)
        self._take(self._given, self.examined + len(numbers))

    def _take(self, half_spaces: Faces, examined: int) -> None:
        """Set the half-spaces, with the sides of the box, without duplicates."""
        flat = self.point.flatten().numpy()
        if self._box is not None:
            half_spaces = together(half_spaces, sides(self._box, flat))
        self.faces = merged(half_spaces, 1.0 + float(np.abs(flat).max()))
        self.examined, self._distinct = examined, len(half_spaces.distances)
        self.proven = np.zeros(len(self.faces.distances), bool)
        self.is_begun = True

    def _mapped(self) -> Iterator[None]:
        """Compute the affine map of the cell, unless it does not fit into the memory."""
        net = self._units.net
        if 8 * net.outputs * net.inputs <= self._memory:
            self.map = yield from self._units.map()
            self.stage += 1

    def _reduced(self) -> Iterator[None]:
        """Remove redundant half-spaces, and find the largest ball inside.

        Rays cannot start at a point on a face: they start at the centre of the ball then.
        """
        faces, remove = self.faces, self._remove
        if not len(faces.distances):
            self.ball, self.bounded = (np.zeros(faces.normals.shape[1]), float("inf")), False
            self.facets = np.zeros(0) if self._wants_facets else None
            self._enclosed()
            return
        inner, basis = coordinates(faces.normals)
        start = np.zeros(len(basis))
        if faces.distances.min() <= ON:
            start, radius = largest_ball(inner, faces.distances, self.budget)
            yield
            remove = remove and radius > 0.0
        if remove:
            yield from self._decided(inner, start)
            inner, basis = coordinates(self.faces.normals)
        centre, radius = largest_ball(inner, self.faces.distances, self.budget)
        self.ball = (centre if np.isfinite(radius) else 0.0 * centre) @ basis, radius
        yield
        self._enclosed()
        yield
        if self._wants_facets and bool(self.proven.all()):
            yield from self._measured(inner)

    def _enclosed(self) -> None:
        faces = self.faces
        known = is_bounded(faces.normals, self.budget) if len(faces.distances) else False
        self.bounded = True if self._box is not None else known

    def _decided(self, inner: Array, start: Array) -> Generator[None, None, None]:
        """Remove the half-spaces that are no faces, as they are decided."""
        all_faces, steps = self.faces, deciding(inner, self.faces.distances, start, self.budget)
        is_done, shown = False, 1
        while not is_done:
            try:
                keeps, sure = next(steps)
            except StopIteration as end:
                (keeps, sure), is_done = end.value, True
            numbers = np.flatnonzero(keeps)
            self.faces, self.proven = all_faces.chosen(numbers), sure[numbers]
            if int(sure.sum()) >= 2 * shown:
                self.stage, shown = self.stage + 1, int(sure.sum())
            yield

    def _measured(self, inner: Array) -> Iterator[None]:
        """Measure the distances to the faces themselves; NaN once the time is up."""
        self.facets = np.full(len(inner), np.nan)
        with progress(len(inner), label="distances to faces") as bar:
            for k in range(len(inner)):
                if self.budget.in_time():
                    self.facets[k] = facet_distance(k, inner, self.faces.distances)
                    yield
                bar.advance()


def in_turns(search: CellSearch, turn: StepClock) -> Iterator[bool]:
    """Run the search; yield True where there is a new result, False where only a step is over.

    The results do not depend on how long they took.
    """
    shows, shown = stoppable(), -1
    for _ in search.steps():
        if turn.deadline.passed():
            if not search.is_begun:
                raise turn.spent("one face", "cut the cell by a line with line_regions")
            if search.examined < search.constraints or search.map[0] is None:
                break
        if shows and search.stage > shown and search.is_begun:
            shown = search.stage
            yield True
            turn.begin()
        elif shows and turn.is_over():
            yield False
            turn.begin()
    yield True
