"""Figures of several panels, in the style of the house."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: Inches of one panel.
PANEL = (2.5, 2.1)


def panels(
    count: int, *, columns: int = 3, size: tuple[float, float] = PANEL
) -> tuple[Figure, list[Axes]]:
    """Return a figure that pyplot knows nothing of, and its ``count`` axes in reading order.

    Where part of a grid leaves nothing to draw there is one axes that says so, and is not returned.
    """
    if not count:
        figure, (empty,) = panels(1, size=size)
        empty.text(0.5, 0.5, "nothing to draw", ha="center", va="center")
        empty.set_axis_off()
        return figure, []
    columns = min(count, columns)
    rows = -(-count // columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    return figure, [figure.add_subplot(rows, columns, 1 + k) for k in range(count)]
