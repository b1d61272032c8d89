"""The drawing that figures 6.5, 6.6 and 7.2 share: what a deep network makes of the square."""

from collections.abc import Mapping
from typing import Any

from inscape.lab.experiment import Figure


def structure(values: Mapping[str, Any], layers: int) -> Figure:
    """Draw classes, regions and coefficients above, and the lines of each hidden layer below."""
    import numpy as np

    from inscape.figures.panels import panels
    from inscape.papers.sattelberg._planes import Cells, bends, class_lines, dual, signs, tiles

    cells = Cells.of(values, "cells/")
    figure, axes = panels(3 + layers, columns=3, size=(2.2, 2.3))
    signs(axes[0], cells)
    class_lines(axes[0], cells, "black")
    axes[0].set_title("classes")
    tiles(axes[1], cells)
    class_lines(axes[1], cells)
    axes[1].set_title(f"{values['regions']} regions")
    dual(axes[2], np.asarray(values["maps"]))
    axes[2].set_title("coefficients")
    for layer, ax in enumerate(axes[3:]):
        tiles(ax, cells, np.full((len(cells), 3), 0.97))
        bends(ax, cells, layer)
        ax.set_title(f"lines of layer {layer + 1}")
    return figure
