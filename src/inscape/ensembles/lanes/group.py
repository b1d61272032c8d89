"""A group: as many networks as a register has lanes, each in its own."""

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
    Rules,
    Shape,
    State,
    blank_state,
)
from inscape.ensembles.lanes.support import is_plain, rules_of
from inscape.training.trajectory import Settings
from inscape.training.update import batches_per_epoch

#: Seconds that a kernel runs before Python looks up again.
TURN = 0.08

Kernel = Callable[[State, Shape, Rules, int], int]


@dataclass(eq=False, kw_only=True)
class Run:
    """A network on its way through its epochs."""

    index: int
    model: nn.Module
    x: Tensor
    y: Tensor
    seed: int
    epochs: int = 0
    before: int = 0  # epochs at the start of the last turn
    loss: float = float("nan")
    verdict: int = RUNNING
    diverged_at: int = 0
    weights: Array = field(default_factory=lambda: np.empty(0))
    orders: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._dice = generator(self.seed)

    def order(self, epoch: int) -> Array:
        """Return the order of the data ``epoch`` epochs from now, drawn as :func:`fit` draws it."""
        while len(self.orders) <= epoch:
            self.orders.append(torch.randperm(len(self.x), generator=self._dice).numpy())
        return self.orders[epoch]


class Group:
    """Networks on data of one size that walk through their epochs in step."""

    def __init__(self, shape: Shape, settings: Settings, points: int, dtype: torch.dtype) -> None:
        self.settings = settings
        self.points = points
        self.guests: list[Group] = []  # groups that wait to be absorbed
        self.walked = 0  # steps of the last turn, of all networks together
        self._shape = shape
        self._rules = rules_of(settings, points)
        self._kernel = kernel_of(shape, self._rules)
        self._runs: list[Run | None] = [None] * LANES[dtype]
        self._state = blank_state(shape, self._rules, dtype)
        self._per_epoch = batches_per_epoch(points, settings.batch)
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
        state.stop[:, lane] = (
            -np.inf if self.settings.stop_loss is None else self.settings.stop_loss
        )
        state.fresh[:, lane] = True

    def absorb(self, other: "Group") -> None:
        """Take over all networks of another group, which must be no more than there are lanes."""
        for there, run in enumerate(other._runs):
            if run is not None:
                here = self._runs.index(None)
                for mine, theirs in zip(self._state[:OWN], other._state[:OWN], strict=True):
                    mine[:, here] = theirs[:, there]
                self._runs[here] = run
                other._leave(there)

    def advance(self) -> None:
        """Run for about a turn, or until some network is done."""
        runs = [run for run in self._runs if run is not None]
        epochs = min(self._turn, *(self.settings.epochs - run.epochs for run in runs))
        if self._rules.shuffled:
            self._draw_orders(epochs)
        start = time.perf_counter()
        done = self._kernel(self._state, self._shape, self._rules, epochs)
        taken = time.perf_counter() - start
        self._turn = max(1, min(int(done * TURN / taken), 8 * self._turn))
        self.walked = done * self._per_epoch * len(runs)
        for run in runs:
            run.before = run.epochs
            run.epochs += done
            del run.orders[:done]

    def finished(self) -> Iterator[Run]:
        """Yield the networks that are done, and clear their lanes."""
        for lane, run in enumerate(self._runs):
            if run is None:
                continue
            run.verdict = int(self._state.verdict[0, lane])
            if run.verdict != RUNNING or run.epochs == self.settings.epochs:
                run.loss = float(self._state.loss[0, lane])
                run.weights = self._state.weights[:, lane].copy()
                run.diverged_at = run.before * self._per_epoch + int(self._state.step[0, lane])
                self._leave(lane)
                yield run

    def _leave(self, lane: int) -> None:
        """Clear a lane: zeros cost no time, where numbers that run wild might."""
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


def kernel_of(shape: Shape, rules: Rules) -> Kernel:
    """Return the kernel for such networks; it depends on nothing that differs between members."""
    if is_plain(shape, rules):
        from inscape.ensembles.lanes.shallow import shallow

        return shallow
    from inscape.ensembles.lanes.deep import deep

    return deep


def targets(y: Tensor, classes: int, dtype: torch.dtype) -> Tensor:
    """Return targets shaped as the outputs: a class number becomes a row with a one in it."""
    if y.is_floating_point():
        return y
    return nn.functional.one_hot(y, classes).to(dtype)
