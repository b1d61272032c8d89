"""Notebooks: pictures where they are drawn, and progress on one line."""

import html
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def is_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook, without importing IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def show(axes: "Axes") -> None:
    """Show the figure of axes below the cell of a notebook; elsewhere nothing happens.

    The axes themselves are then not printed where they are the value of the cell.
    """
    if not is_notebook():
        return
    from inscape.figures import rendered

    shown = _display()
    shown.display(shown.Image(rendered(axes, ".png"), width=_width(axes)))
    vars(axes)["_ipython_display_"] = lambda: None


def _width(axes: "Axes") -> int:
    """Return the pixels of a figure at 96 to the inch; it is drawn with more of them."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return int(96 * figure.get_figwidth())


class Line:
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
