"""Work in small steps: when to yield the best result so far, and when the time is over."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from math import inf, isfinite
from typing import Any, TypeVar

from inscape._core.anytime import patience, stoppable
from inscape.errors import BudgetError
from inscape.runtime.deadline import NEVER, Deadline

R = TypeVar("R")

#: Seconds of a step where the caller has set no time for it.
STEP = 0.5


def step_seconds() -> float:
    """Return the seconds that the present step may take; infinite without a time limit."""
    seconds = patience()
    return seconds if isfinite(seconds) else STEP if stoppable() else inf


def within(
    context: Callable[[], AbstractContextManager[Any]], steps: Generator[None, None, R]
) -> Generator[None, None, R]:
    """Run each step inside a context manager that is left between the steps."""
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


class StepClock:
    """The clock of an anytime computation: the present step, and the deadline of all steps."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds, self.deadline = seconds, Deadline.after(seconds)
        self._begun = self.deadline.clock()
        self._export: float | None = None
        self.interrupted = False  # by the user
        self._step = NEVER
        self.begin()

    def begin(self) -> None:
        """Begin another step, after an intermediate result was yielded."""
        seconds = step_seconds()
        self._step = Deadline.after(max(seconds, 1e-9)) if isfinite(seconds) else NEVER

    def exported(self) -> None:
        """Record that the network is exported, so that an error can say how long that took."""
        self._export = self.deadline.clock() - self._begun

    @property
    def is_watched(self) -> bool:
        """Tell whether there is a time limit, for the step or for the call."""
        return not (self.deadline.is_never and self._step.is_never)

    def is_over(self) -> bool:
        """Tell whether the time of the step is over."""
        return self._step.passed()

    def spent(self, least: str, instead: str) -> BudgetError:
        """Return the error for a call whose time is over before there is any result."""
        export = "" if self._export is None else f", {self._export:.2g} s of it to read the network"
        return BudgetError(
            f"the time must do for {least}, but {self.seconds:g} s are over{export}: raise seconds "
            f"(a network of the same structure is not exported again), or {instead}."
        )
