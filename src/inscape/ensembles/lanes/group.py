"""A group of networks, one in each lane of a register."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.ensembles.lanes.state import (
    LANES,
    OWN,
    RUNNING,
    Array,
    LaneRules,
    Shape,
    State,
    blank_state,
)
from inscape.ensembles.lanes.support import is_plain, rules_of
from inscape.training.options import FitOptions
from inscape.training.update import batches_per_epoch

#: Seconds between two returns of a kernel to Python.
TURN = 0.08

Kernel = Callable[[State, Shape, LaneRules, int], int]


@dataclass(eq=False, kw_only=True)
class Run:
    """A network in training."""

    index: int
    model: nn.Module
    x: Tensor
    y: Tensor
    seed: int
    epochs: int = 0
    before: int = 0  # epochs at the start of the last turn
    loss: float = float("nan")
    status: int = RUNNING
    diverged_at: int = 0
    weights: Array = field(default_factory=lambda: np.empty(0))
    orders: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random_state = generator(self.seed)

    def order(self, epoch: int) -> Array:
        """Return the order of the data ``epoch`` epochs from now, as :func:`fit` draws it."""
        while len(self.orders) <= epoch:
            self.orders.append(torch.randperm(len(self.x), generator=self._random_state).numpy())
        return self.orders[epoch]


class LaneGroup:
    """Networks on data of one size that are trained side by side, epoch by epoch."""

    def __init__(self, shape: Shape, options: FitOptions, points: int, dtype: torch.dtype) -> None:
        self.options = options
        self.points = points
        self.guests: list[LaneGroup] = []  # groups that wait to be absorbed
        self.steps_made = 0  # steps of the last turn, summed over its networks
        self._shape = shape
        self._rules = rules_of(options, points)
        self._kernel = kernel_of(shape, self._rules)
        self._runs: list[Run | None] = [None] * LANES[dtype]
        self._state = blank_state(shape, self._rules, dtype)
        self._per_epoch = batches_per_epoch(points, options.batch)
        self._turn = 1

    @property
    def live(self) -> int:
        """Number of networks in it."""
        return sum(run is not None for run in self._runs)

    @property
    def free(self) -> int:
        """Number of empty lanes."""
        return len(self._runs) - self.live

    def enter(self, run: Run) -> None:
        """Put a network that has not begun into an empty lane."""
        lane, state = self._runs.index(None), self._state
        self._runs[lane] = run
        state.weights[:, lane] = np.concatenate(
            [p.detach().numpy().reshape(-1) for p in run.model.parameters()]
        )
        state.powers[:, lane] = 1.0
        state.x[:, lane] = run.x.T.numpy().reshape(-1)
        state.y[:, lane] = targets(run.y, self._shape.outputs, run.x.dtype).T.numpy().reshape(-1)
        state.stop[:, lane] = -np.inf if self.options.stop_loss is None else self.options.stop_loss
        state.fresh[:, lane] = True

    def absorb(self, other: "LaneGroup") -> None:
        """Move all networks of another group into empty lanes of this one."""
        for source, run in enumerate(other._runs):
            if run is not None:
                lane = self._runs.index(None)
                for array, original in zip(self._state[:OWN], other._state[:OWN], strict=True):
                    array[:, lane] = original[:, source]
                self._runs[lane] = run
                other._leave(source)

    def advance(self) -> None:
        """Train for about ``TURN`` seconds, or until a network is done."""
        runs = [run for run in self._runs if run is not None]
        epochs = min(self._turn, *(self.options.epochs - run.epochs for run in runs))
        if self._rules.shuffled:
            self._draw_orders(epochs)
        start = time.perf_counter()
        done = self._kernel(self._state, self._shape, self._rules, epochs)
        elapsed = time.perf_counter() - start
        self._turn = max(1, min(int(done * TURN / elapsed), 8 * self._turn))
        self.steps_made = done * self._per_epoch * len(runs)
        for run in runs:
            run.before = run.epochs
            run.epochs += done
            del run.orders[:done]

    def finished(self) -> Iterator[Run]:
        """Yield the networks that are done, and clear their lanes."""
        for lane, run in enumerate(self._runs):
            if run is None:
                continue
            run.status = int(self._state.status[0, lane])
            if run.status != RUNNING or run.epochs == self.options.epochs:
                run.loss = float(self._state.loss[0, lane])
                run.weights = self._state.weights[:, lane].copy()
                run.diverged_at = run.before * self._per_epoch + int(self._state.step[0, lane])
                self._leave(lane)
                yield run

    def _leave(self, lane: int) -> None:
        """Clear a lane: zeros cost no time, where NaN or denormals might."""
        self._runs[lane] = None
        for array in self._state[:OWN]:
            array[:, lane] = 0
        self._state.stop[:, lane] = -np.inf

    def _draw_orders(self, epochs: int) -> None:
        if len(self._state.order) < epochs:
            order = np.zeros((epochs, *self._state.order.shape[1:]), np.int32)
            self._state = self._state._replace(order=order)
        for lane, run in enumerate(self._runs):
            if run is not None:
                for epoch in range(epochs):
                    self._state.order[epoch, :, lane] = run.order(epoch)


def kernel_of(shape: Shape, rules: LaneRules) -> Kernel:
    """Return the kernel for such networks, the same for all members."""
    if is_plain(shape, rules):
        from inscape.ensembles.lanes.shallow import shallow

        return shallow
    from inscape.ensembles.lanes.deep import deep

    return deep


def targets(y: Tensor, classes: int, dtype: torch.dtype) -> Tensor:
    """Return targets shaped as the outputs; class numbers become one-hot rows."""
    if y.is_floating_point():
        return y
    return nn.functional.one_hot(y, classes).to(dtype)
