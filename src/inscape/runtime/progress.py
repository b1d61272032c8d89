"""Progress with time left: a bar in a terminal or notebook, a line on stderr elsewhere.

Nothing is shown for work that ends within two seconds, and rich is imported only when a bar is
first drawn. Of nested bars the one that was first shown stays, the others keep silent.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

from inscape.escaping import visible_line
from inscape.runtime.notebook import NotebookLine, is_notebook

QUIET = "INSCAPE_QUIET"
PATIENCE = 2.0  # seconds before anything is shown
BETWEEN_LINES = 10.0
BETWEEN_FRAMES = 0.1

_on_screen: list["Bar"] = []  # at most one
#: Whether whoever called wants no bars, in this thread.
_SILENT: ContextVar[bool] = ContextVar("no bars", default=False)


@contextmanager
def silence(quiet: bool | None = True) -> Iterator[None]:
    """Show no bars while the block runs, in this thread, where quiet is wanted."""
    token = _SILENT.set(bool(quiet) or _SILENT.get())
    try:
        yield
    finally:
        _SILENT.reset(token)


@contextmanager
def progress(
    total: int, *, label: str, done: int = 0, in_bytes: bool = False, quiet: bool | None = None
) -> Iterator["Bar"]:
    """Show how far ``total`` steps of work have come, while the block runs.

    Args:
        total: Number of steps; 0 where nobody knows it.
        label: What is being done, in a word or two.
        done: Steps that an earlier run has done; they do not count for the time left.
        in_bytes: Whether the steps are bytes, to be shown as MB.
        quiet: True shows nothing, False shows it in any case; None asks the environment variable
            ``INSCAPE_QUIET`` (set, and not 0, means quiet).
    """
    if quiet is None:
        quiet = _SILENT.get() or is_quiet()
    bar = Bar(total, label, done=done, in_bytes=in_bytes, quiet=quiet)
    try:
        yield bar
    finally:
        bar.close()


class Bar:
    """How far the work has come; ``advance`` costs a clock reading when nothing is to be shown.

    ``effort``, where somebody sets it, are the seconds that were foreseen for the steps done and
    for those to come: steps that take longer than others then count for more in the time left.
    """

    def __init__(
        self, total: int, label: str, *, done: int = 0, in_bytes: bool = False, quiet: bool
    ) -> None:
        self.total = total
        self.label = visible_line(label)
        self.done = self._before = done
        self._in_bytes = in_bytes
        self.note = ""
        self.effort: tuple[float, float] | None = None
        self._start = monotonic()
        self._due = float("inf") if quiet else self._start + PATIENCE
        self._surface: _Lines | _Terminal | NotebookLine | None = None

    def advance(self, n: int = 1, note: str = "") -> None:
        """Count ``n`` steps as done; a note, such as the loss, stays until the next one."""
        self.done += n
        if note:
            self.note = note
        if monotonic() >= self._due:
            self._show()

    def close(self) -> None:
        """Take the bar off the screen, or write the last line, if anything was shown."""
        if self._surface is not None:
            self._surface.close(
                f"{self._head()} in {clock(monotonic() - self._start)}{self._tail()}"
            )
            _on_screen.remove(self)
            self._surface = None
        self._due = float("inf")

    def line(self) -> str:
        """Return what there is to say: ``label 340/1000 (34%), 0:12 left, loss 3.1e-3``."""
        return f"{self._head()}{self._time_left()}{self._tail()}"

    def _time_left(self) -> str:
        if not self.total:
            return ""
        new, passed = self.done - self._before, monotonic() - self._start
        done, to_come = self.effort or (new, self.total - self.done)
        remaining = clock(passed / done * to_come) if new and done else "?"
        return f", {remaining} left"

    def _head(self) -> str:
        done, total = (
            f"{n / 1e6:.1f} MB" if self._in_bytes else str(n) for n in (self.done, self.total)
        )
        if not self.total:
            return f"{self.label} {done}"
        return f"{self.label} {done.removesuffix(' MB')}/{total} ({self.done / self.total:.0%})"

    def _tail(self) -> str:
        return f", {self.note}" if self.note else ""

    def _show(self) -> None:
        if self._surface is None and not _on_screen:
            _on_screen.append(self)
            self._surface = _surface(self.total or None)
        if self._surface is None:
            self._due = monotonic() + PATIENCE
            return
        self._surface.draw(self.done, self.line())
        self._due = monotonic() + self._surface.pause


def _surface(total: int | None) -> "_Lines | _Terminal | NotebookLine":
    """Return where progress is shown."""
    if is_notebook():
        return NotebookLine(total)
    return _Terminal(total) if _in_terminal() else _Lines()


class _Lines:
    """Plain lines, for logs and pipes."""

    pause = BETWEEN_LINES

    def draw(self, done: int, line: str) -> None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def close(self, line: str) -> None:
        self.draw(0, line)


class _Terminal:
    """A bar of rich that goes away at the end."""

    pause = BETWEEN_FRAMES

    def __init__(self, total: int | None) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, Progress, TextColumn

        self._escape: Callable[[str], str] = escape
        self._progress = Progress(
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task("", total=total)
        self._progress.start()

    def draw(self, done: int, line: str) -> None:
        self._progress.update(self._task, completed=done, description=self._escape(line))
        self._progress.refresh()

    def close(self, line: str) -> None:
        self._progress.stop()


def shown(text: str) -> str:
    """Return text as one visible line, as it is safe to write to a terminal."""
    return visible_line(text)


def is_quiet() -> bool:
    """Return whether INSCAPE_QUIET asks for silence."""
    return os.environ.get(QUIET, "0") not in ("", "0")


def clock(seconds: float) -> str:
    """Return a duration as ``m:ss`` or ``h:mm:ss``."""
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _in_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
