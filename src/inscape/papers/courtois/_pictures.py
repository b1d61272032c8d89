"""Points of the plane, surfaces over it, and neighbours in it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Panel

Array = npt.NDArray[Any]


def scatter(ax: Panel, x: Array, y: Array, *, size: float = 4, alpha: float = 1.0) -> None:
    """Draw points in the colours of their classes."""
    from inscape.figures.style import BLUE, VERMILION

    for chosen, colour, mark in ((y > 0, BLUE, "o"), (y <= 0, VERMILION, "s")):
        across, up = x[chosen].T
        ax.scatter(across, up, s=size, c=colour, marker=mark, linewidths=0, alpha=alpha)
    ax.set_aspect("equal")


def surface(ax: Panel, values: Array, reach: float) -> Any:
    """Draw values on a square grid, with the line on which they change their sign."""
    from inscape.figures.style import INK, SIGNED

    side = round(len(values) ** 0.5)
    ticks = np.linspace(-reach, reach, side)
    heights = values.reshape(side, side).T
    top = min(float(np.abs(heights).max()), 1.5)  # labels are -1 and 1
    image = ax.pcolormesh(
        ticks, ticks, heights, cmap=SIGNED, vmin=-top, vmax=top, shading="nearest", rasterized=True
    )
    if heights.min() < 0 < heights.max():
        ax.contour(ticks, ticks, heights, levels=[0.0], colors=INK, linewidths=0.9)
    ax.set_aspect("equal")
    return image


def sides(ax: Panel, classes: Array, reach: float) -> None:
    """Draw on which side of a plane the points of a square grid lie."""
    from matplotlib.colors import ListedColormap

    from inscape.figures.style import BLUE, VERMILION

    side = round(len(classes) ** 0.5)
    ticks = np.linspace(-reach, reach, side)
    colours = ListedColormap([VERMILION, BLUE])
    heights = classes.reshape(side, side).T
    ax.pcolormesh(
        ticks, ticks, heights, cmap=colours, vmin=0, vmax=1, alpha=0.35, shading="nearest",
        linewidth=0, rasterized=True,
    )  # fmt: skip
    ax.set_aspect("equal")


def ring(ax: Panel, radius: float) -> None:
    """Draw a dotted circle around the origin."""
    from inscape.figures.style import INK

    turn = np.linspace(0, 2 * np.pi, 200)
    ax.plot(radius * np.cos(turn), radius * np.sin(turn), color=INK, lw=0.8, ls=":")


def near(ax: Panel, x: Array, y: Array, rows: Array, query: Array) -> None:
    """Draw all points faintly, the near ones in the colours of their classes, and the query."""
    from inscape.figures.style import INK, RULE

    ax.scatter(x[:, 0], x[:, 1], s=1.5, c=RULE, linewidths=0)
    scatter(ax, x[rows], y[rows], size=5)
    ax.plot(*query[:, None], "x", color=INK, ms=6, mew=1.4)
    ax.set(xticks=[], yticks=[], aspect="equal")


def both_rows(values: Any, lambdas: Any, x: Array, y: Array, u: Array) -> Any:
    """Draw neighbours by kernel (above) and by distance (below) for every lambda."""
    from inscape.figures.panels import panels

    reach = 1.05 * max(np.abs(x).max(), max(abs(value) for value in lambdas) * np.abs(u).max())
    kinds = {"by kernel": "tangent kernel", "by distance": "distance"}
    figure, axes = panels(2 * len(lambdas), columns=len(lambdas), size=(1.55, 1.7))
    for row, (key, name) in enumerate(kinds.items()):
        lists = np.asarray(values[key]).astype(int)
        for column, some in enumerate(lists):
            ax = axes[row * len(lambdas) + column]
            near(ax, x, y, some, lambdas[column] * u)
            ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
            if row == 0:
                ax.set_title(f"λ = {lambdas[column]:g}")
            if column == 0:
                ax.set_ylabel(name)
    return figure
