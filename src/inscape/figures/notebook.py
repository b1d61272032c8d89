"""Figures below the cells of a notebook."""

from typing import Any

from matplotlib.axes import Axes

from inscape.figures.drawing import rendered
from inscape.runtime.notebook import is_notebook


def show(axes: Axes) -> None:
    """Show the figure of axes below the cell of a notebook; elsewhere nothing happens.

    The axes themselves are then not printed where they are the value of the cell.
    """
    if not is_notebook():
        return
    from IPython import display

    shown: Any = display
    shown.display(shown.Image(rendered(axes, ".png"), width=_width(axes)))
    vars(axes)["_ipython_display_"] = lambda: None


def _width(axes: Axes) -> int:
    """Return the pixels of a figure at 96 to the inch; it is drawn with more of them."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return int(96 * figure.get_figwidth())
