"""One training of the toy lab: it goes on step by step, and every frame is exact."""

import copy
import math
from collections.abc import Generator, Iterator
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from inscape._core.anytime import finished
from inscape._core.sampling import generator
from inscape.explorer.cells import cell_arrays, cut
from inscape.explorer.planes import plane_through
from inscape.explorer.raster import raster
from inscape.explorer.session import Session
from inscape.explorer.subject import ExploredSubject
from inscape.explorer.toy import measures
from inscape.explorer.toy.network import toy_network, toy_update
from inscape.explorer.toy.points import toy_points
from inscape.explorer.toy.setup import ToySetup
from inscape.explorer.views import View
from inscape.explorer.wire import Array
from inscape.loaders import open_data
from inscape.report.look.subject import subject_of
from inscape.report.look.watch import BudgetWatch
from inscape.training.random_state import private_random_state

#: Updates between two looks at whether to stop.
UPDATES = 10
#: Regions of a frame, at most; one with more shows its middle.
REGIONS = 60_000
#: Weights beyond this are taken for a training that diverges.
LARGEST = 1e6
#: Pixels along a side of the raster of a network that is not piecewise linear.
PIXELS = 120

Facts = dict[str, Any]
Frame = tuple[Facts, dict[str, Array]]
Window = tuple[tuple[float, float], tuple[float, float]]


class ToyRun:
    """A training under way: its points, its network, and how far it has come."""

    def __init__(self, setup: ToySetup) -> None:
        self.setup = setup
        self.points = toy_points(setup)
        self.model = toy_network(setup, self.points.classes)
        self.update, self.targets = toy_update(setup, self.model, self.points)
        self.step = 0
        self.loss: float | None = None
        self._order = generator(setup.seed)
        self._batches: Iterator[Tensor | slice] = iter(())
        self._kernel = measures.kernel_of(self.model, self.points)
        self.session = Session(self._subject())

    @property
    def window(self) -> Window:
        """Return the centre of the data, and half the sides of the window around them."""
        low, high = self.points.x.amin(0), self.points.x.amax(0)
        half = max(float((high - low).max()) / 2, 1e-6) * self.setup.view
        middle = ((low + high) / 2).tolist()
        return (middle[0], middle[1]), (half, half)

    def advance(self, updates: int) -> Generator[None, None, None]:
        """Train so many updates, in small steps; a loss that is not finite raises ValueError."""
        self.model.train()
        try:
            for k in range(updates):
                with private_random_state(self.points.x.device), torch.enable_grad():
                    self._step()
                if k % UPDATES == UPDATES - 1:
                    yield
        finally:
            self.model.zero_grad(set_to_none=True)
            self.model.eval()

    def _step(self) -> None:
        rows = next(self._batches, None)
        if rows is None:
            self._batches = self._epoch()
            rows = next(self._batches)
        values = self.update(self.step, self.points.x[rows], self.targets[rows], [self.setup.lr])
        self.loss, self.step = values[0], self.step + 1
        largest = max(float(p.detach().abs().max()) for p in self.model.parameters())
        if not largest < LARGEST:
            raise ValueError(
                f"weights must stay below {LARGEST:g}, found {largest:.3g} after update "
                f"{self.step}: choose a smaller learning rate, and start anew."
            )

    def _epoch(self) -> Iterator[Tensor | slice]:
        if not self.setup.batch:
            return iter((slice(None),))
        order = torch.randperm(len(self.points.x), generator=self._order)
        return chain(torch.split(order, self.setup.batch))

    def frame(self, client: str, window: Window | None = None) -> Generator[None, None, Frame]:
        """Return the exact regions, or a raster, and all measures of the network as it is now."""
        self.session.subject = subject = self._subject()
        network, plane = subject.network(), plane_through(subject, "whole")
        centre, half = window or self.window
        yield
        facts: Facts = {
            "step": self.step, "loss": self.loss, "centre": list(centre), "half": list(half),
            "exact": network.net is not None, "refusal": network.refusal,
        }  # fmt: skip
        if network.windows is not None:
            regions = yield from cut(
                network, plane, centre=centre, half=half, regions=REGIONS, on_layer=_nothing
            )
            own, arrays = cell_arrays(subject, regions, half)
            view = View(client=client, network=network, plane=plane, regions=regions)
            facts |= {**own, "view": self.session.views.keep(view)}
            numbers = measures.geometry(regions, classes=self.points.classes)
        else:
            own, arrays = yield from raster(
                subject, network, plane, centre=centre, half=half, width=PIXELS, height=PIXELS,
                seconds=2.0,
            )  # fmt: skip
            facts, numbers = {**facts, **own}, {}
        yield
        both = {**self.measured(), **numbers}
        facts["measures"] = {name: n for name, n in both.items() if math.isfinite(n)}
        return facts, arrays

    def measured(self) -> measures.Measures:
        """Return what is measured of the function and of the weights."""
        numbers = measures.quality(self.model, self.points)
        numbers |= measures.smoothness(self.model, self.points)
        numbers["norm of weights"] = measures.weights_norm(self.model)
        now = None if self._kernel is None else measures.kernel_of(self.model, self.points)
        if now is not None and self._kernel is not None:
            numbers |= measures.kernel_change(now, self._kernel)
        return numbers

    def _subject(self) -> ExploredSubject:
        """Return the network as it is now, to be explored: a copy, which training leaves alone."""
        model, points = copy.deepcopy(self.model).eval(), self.points
        y = points.y if points.classes else points.y[:, 0]
        data = open_data(
            (points.x, y), labels="classes" if points.classes else "regression", dtype="float64"
        )
        clock = BudgetWatch(3600.0)
        subject = subject_of(model, data, clock=clock, seed=0, command=None)
        return ExploredSubject(title="toy", subject=subject, data=data, code="")


def trained(*, updates: int, **setup: Any) -> ToyRun:
    """Return a training after so many updates.

    >>> run = trained(updates=20, data="disc", hidden=(4,))
    >>> run.step, run.measured()["error"] < 2
    (20, True)

    Args:
        updates: How many.
        **setup: Fields of :class:`ToySetup`.
    """
    run = ToyRun(ToySetup(**setup))
    finished(run.advance(updates))
    return run


def _nothing(layer: str, cells: int) -> None:
    """Report nothing."""
