"""Notebooks: whether this process is one, and progress on one line below a cell."""

import html
import sys
from typing import Any


def is_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook, without importing IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class NotebookLine:
    """A line of progress below a cell, written anew as the work goes on."""

    pause = 0.25

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._handle = _display().display(_bar(0, total, ""), display_id=True)

    def draw(self, done: int, line: str) -> None:
        """Show how far the work has come."""
        self._handle.update(_bar(done, self._total, line))

    def close(self, line: str) -> None:
        """Leave the last line."""
        self._handle.update(_bar(0, None, line))


def _bar(done: int, total: int | None, line: str) -> Any:
    """Return a bar, where the end is known, and a line beside it."""
    bar = f'<progress value="{done}" max="{total}"></progress> ' if total else ""
    return _display().HTML(f"<span>{bar}{html.escape(line)}</span>")


def _display() -> Any:
    from IPython import display

    return display
