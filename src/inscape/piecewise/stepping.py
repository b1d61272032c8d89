"""Work in small steps: when to show the best answer so far, and when the time is over."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from math import inf, isfinite
from typing import Any, TypeVar

from inscape._core.anytime import patience, stoppable
from inscape._core.deadline import NEVER, Deadline
from inscape.errors import BudgetError

R = TypeVar("R")

#: Seconds of a step where whoever consumes it has not said how long they wait.
STEP = 0.5


def step_seconds() -> float:
    """Return how long the present step may take; infinite where nobody waits for it."""
    seconds = patience()
    return seconds if isfinite(seconds) else STEP if stoppable() else inf


def within(
    context: Callable[[], AbstractContextManager[Any]], steps: Generator[None, None, R]
) -> Generator[None, None, R]:
    """Make each step in a context, which is left between the steps."""
    try:
        while True:
            with context():
                try:
                    next(steps)
                except StopIteration as end:
                    result: R = end.value
                    return result
            yield
    finally:
        steps.close()


class Turn:
    """The present step of whoever consumes ever better answers, and the time for all of them."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds, self.deadline = seconds, Deadline.after(seconds)
        self._begun = self.deadline.clock()
        self._export: float | None = None
        self._step = NEVER
        self.begin()

    def begin(self) -> None:
        """Begin another step, after an answer was shown."""
        seconds = step_seconds()
        self._step = Deadline.after(max(seconds, 1e-9)) if isfinite(seconds) else NEVER

    def exported(self) -> None:
        """Take note that the network was read, so that an error can say how long that took."""
        self._export = self.deadline.clock() - self._begun

    @property
    def is_watched(self) -> bool:
        """Tell whether anybody looks at the clock."""
        return not (self.deadline.is_never and self._step.is_never)

    def is_over(self) -> bool:
        """Tell whether the step has taken its time."""
        return self._step.passed()

    def spent(self, least: str, instead: str) -> BudgetError:
        """Return the error of a call whose time is over before there is any answer."""
        export = "" if self._export is None else f", {self._export:.2g} s of it to read the network"
        return BudgetError(
            f"the time must do for {least}, but {self.seconds:g} s are over{export}: raise seconds "
            f"(a network of the same structure is not exported again), or {instead}."
        )
