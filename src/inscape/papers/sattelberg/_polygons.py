"""Pictures of closed regions in the plane: kinks as lines, cells by how many units are on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Panel

Array = npt.NDArray[Any]


def ring_radii(ring: Array) -> tuple[float, float]:
    """Return the distances from the origin to the nearest edge and the farthest corner.

    The nearest edge counts as negative where the origin is outside of the convex polygon.
    """
    step = np.roll(ring, -1, 0) - ring
    turned = np.column_stack([step[:, 1], -step[:, 0]]) / np.linalg.norm(step, axis=1)[:, None]
    inner = (turned * ring).sum(1).min()
    return float(inner), float(np.linalg.norm(ring, axis=1).max())


def is_convex(ring: Array) -> bool:
    """Tell whether a polygon turns the same way at all of its corners."""
    step = np.roll(ring, -1, 0) - ring
    after = np.roll(step, -1, 0)
    turns = step[:, 0] * after[:, 1] - step[:, 1] * after[:, 0]
    return bool((turns > 0).all() or (turns < 0).all())


def kinks(ax: Panel, weight: Sequence[Any], bias: Sequence[float], reach: float) -> None:
    """Draw where each unit is zero, and shade cells by how many units are on."""
    from inscape.figures.style import BLUE, GREEN, VERMILION

    ticks = np.linspace(-reach, reach, 400)
    across, up = np.meshgrid(ticks, ticks)
    inputs = np.stack([across, up], 2) @ np.asarray(weight).T + np.asarray(bias)
    levels = [-0.5, 0.5, 1.5, 2.5, 3.5]
    shades = ["#ffffff", "#e3f1e6", "#c3e2cb", "#9fcfab"]
    ax.contourf(across, up, (inputs > 0).sum(2), levels=levels, colors=shades)
    for k, colour in enumerate((VERMILION, BLUE, GREEN)):
        ax.contour(across, up, inputs[:, :, k], levels=[0.0], colors=[colour], linewidths=1.2)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])


def outline(ax: Panel, ring: Sequence[Any], **look: Any) -> None:
    """Draw a closed polygon."""
    points = np.asarray(ring, dtype=float)
    closed = np.concatenate([points, points[:1]])
    drawn: dict[str, Any] = {"color": "#1a1a1a", "lw": 2.0} | look
    ax.plot(closed[:, 0], closed[:, 1], **drawn)


def circle(ax: Panel, radius: float, **look: Any) -> None:
    """Draw a circle around the origin."""
    from matplotlib.patches import Circle

    ax.add_patch(Circle((0, 0), radius, **({"fill": False, "lw": 0.9, "ls": "--"} | look)))


def problem(ax: Panel, radii: Sequence[float]) -> None:
    """Draw the disc and the annulus as areas."""
    from inscape.figures.style import BLUE, VERMILION

    first, second, third = radii
    around = np.linspace(0, 2 * np.pi, 241)
    ring = np.stack([np.cos(around), np.sin(around)])
    both = np.concatenate([third * ring, second * ring[:, ::-1]], 1)
    ax.fill(*both, color=VERMILION, alpha=0.25, linewidth=0)
    ax.fill(*(first * ring), color=BLUE, alpha=0.25, linewidth=0)
    ax.set(aspect="equal", xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)
