"""Bytes so far and time left on stderr: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any


class Meter:
    """Show how far one transfer is; use it as a context and call ``advance``."""

    def __init__(
        self,
        label: str,
        total: int | None = None,
        done: int = 0,
        *,
        every: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.label, self.total, self.done = label, total, done
        self._stream = sys.stderr
        self._every, self._clock = every, clock
        self._first, self._begun = done, clock()
        self._shown = self._begun
        self._bar: Any = None

    def __enter__(self) -> "Meter":
        if self._stream.isatty():
            self._bar = _bar()
            self._task = self._bar.add_task(self.label, total=self.total, completed=self.done)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._shown > self._begun:
            self._stream.write(f"{self.line()}\n")

    def advance(self, count: int) -> None:
        """Add ``count`` bytes."""
        self.done += count
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done)
        elif self._clock() - self._shown >= self._every:
            self._shown = self._clock()
            self._stream.write(f"{self.line()}\n")
            self._stream.flush()

    def line(self) -> str:
        """Return the state in plain words."""
        if not self.total:
            return f"{self.label}: {self.done / 1e6:.1f} MB"
        text = f"{self.label}: {self.done / 1e6:.1f} of {self.total / 1e6:.1f} MB"
        gained = self.done - self._first
        if not gained or self.done >= self.total:
            return text
        left = (self.total - self.done) / gained * (self._clock() - self._begun)
        return f"{text}, about {_duration(left)} left"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
