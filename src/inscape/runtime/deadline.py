"""Deadlines: when to stop, by a clock that a test may drive."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Clock = Callable[[], float]

_CLOCK: ContextVar[Clock] = ContextVar("clock", default=time.monotonic)


@dataclass(frozen=True)
class Deadline:
    """A moment of a clock; by default one that never comes."""

    until: float = float("inf")
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: float | None) -> "Deadline":
        """Return the moment so many seconds from now; None is never."""
        if seconds is None:
            return cls()
        if not seconds > 0:
            raise ValueError(f"seconds must be above 0, found {seconds}: raise seconds.")
        now = _CLOCK.get()
        return cls(now() + seconds, now)

    @property
    def is_never(self) -> bool:
        """Tell whether the moment never comes."""
        return self.until == float("inf")

    def left(self) -> float:
        """Return the seconds that are left, none or fewer once the moment has come."""
        return self.until - self.clock()

    def passed(self) -> bool:
        """Tell whether the moment has come."""
        return not self.is_never and self.left() <= 0

    def part(self, fraction: float) -> "Deadline":
        """Return the moment when this fraction of the time that is left will be over."""
        if self.is_never:
            return self
        now = self.clock()
        return Deadline(now + fraction * (self.until - now), self.clock)


#: The moment that never comes.
NEVER = Deadline()


def now() -> float:
    """Return the time of the clock that counts, in seconds from some moment on."""
    return _CLOCK.get()()


def clock_is_real() -> bool:
    """Tell whether that clock goes on by itself and is not one that a test drives."""
    return _CLOCK.get() in (time.monotonic, time.process_time)


@contextmanager
def clock(now: Clock) -> Iterator[None]:
    """Let deadlines that are set inside go by another clock."""
    token = _CLOCK.set(now)
    try:
        yield
    finally:
        _CLOCK.reset(token)
