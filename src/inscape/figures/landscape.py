"""Figures of the landscape family: the loss between two networks, and on a plane."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, GREEN, ORANGE, VERMILION, YELLOW, quiet_grid
from inscape.landscape import Alignment, Interpolation, LossSurface

#: Losses that differ by more than this factor are drawn on a logarithmic scale.
FAR = 30.0
#: Lines of equal loss.
CONTOURS = 9


@painter.register(Interpolation)
def _interpolation(result: Interpolation, ax: Axes) -> None:
    """Draw the loss between both networks; above the line between its ends it is a barrier."""
    at, losses = result.at.numpy(), result.losses.numpy()
    ends = [0, -1]
    ax.plot(at[ends], losses[ends], color=FAINT, linewidth=0.9, linestyle=(0, (5, 2)))
    label = f"as it is; barrier: {result.barrier:.3g}"
    ax.plot(at, losses, color=VERMILION if result.barrier > 0 else BLUE, label=label)
    if result.solved is not None:
        label = f"last layer solved; barrier: {result.barrier_solved:.3g}"
        ax.plot(at, result.solved.numpy(), color=GREEN, linestyle=(0, (1, 1.5)), label=label)
    words = " (units aligned)" if result.aligned else ""
    ax.set(xlabel=f"fraction of the path to the second network{words}", ylabel=result.loss)
    quiet_grid(ax)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=7.5)


@painter.register(Alignment)
def _alignment(result: Alignment, ax: Axes) -> None:
    """Draw which unit of the second network takes which place, layer by layer."""
    for layer, order in enumerate(result.orders):
        at = layer + order.numpy() / max(1, len(order))
        places = [k / len(order) for k in range(len(order))]
        ax.plot(places, at, ".", markersize=2.5, color=BLUE if layer % 2 == 0 else GREEN)
    ax.set(xlabel="place in its layer", ylabel="layer, and place before")
    quiet_grid(ax)


@painter.register(LossSurface)
def _loss_surface(result: LossSurface, ax: Axes) -> None:
    """Draw the loss on the plane with the model, the lowest point and the networks in it."""
    columns, rows = result.columns.numpy(), result.rows_at.numpy()
    finite = result.losses[result.losses.isfinite()]
    losses = result.losses.clamp(max=float(finite.max())).numpy()
    lowest, highest = min(result.minimum_loss, float(finite.min())), float(finite.max())
    log = lowest > 0 and highest > FAR * lowest
    norm = LogNorm(lowest, highest) if log else Normalize(lowest, max(highest, lowest + 1e-300))
    mesh = ax.pcolormesh(columns, rows, losses, norm=norm, cmap="cividis", shading="gouraud")
    if highest > lowest:
        spaced = np.geomspace if log else np.linspace
        levels = spaced(lowest, highest, CONTOURS + 2)[1:-1]
        ax.contour(columns, rows, losses, levels=levels, colors="white", linewidths=0.5, alpha=0.6)
    _networks(result, ax)
    model = f"model: {result.loss_at_model:.3g}"
    ax.plot(0, 0, "o", color=VERMILION, markeredgecolor="white", markersize=8, label=model)
    words = "lowest, at the edge" if result.at_edge else "minimum in the plane"
    ax.plot(*result.minimum.tolist(), "X", color=YELLOW, markeredgecolor="#333333", markersize=9,
            label=f"{words}: {result.minimum_loss:.3g}", clip_on=False)  # fmt: skip
    unit = "filter norms" if result.kind == "random directions" else "distance"
    ax.set(xlabel=f"first direction ({unit})", ylabel="second direction")
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.colorbar(mesh, ax=ax, label=result.loss.replace("_", " "), pad=0.02)
    ax.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=7, title=_sharpness_title(result),
        title_fontsize=7, alignment="left",
    )  # fmt: skip


def _networks(result: LossSurface, ax: Axes) -> None:
    """Draw the checkpoints of a training as a path, or three networks as points."""
    if not len(result.networks):
        return
    places = result.networks.numpy()
    if result.kind == "three networks":
        label = f"other networks: {float(result.own_losses[1:].min()):.3g}"
        label += f" and {float(result.own_losses[1:].max()):.3g}"
        ax.plot(places[1:, 0], places[1:, 1], "s", color=GREEN, markeredgecolor="white",
                markersize=7, label=label)  # fmt: skip
        return
    label = f"training, {result.off_fraction:.1%} of it off the plane"
    ax.plot(places[:, 0], places[:, 1], ".-", color=ORANGE, markersize=4, linewidth=1.2,
            label=label)  # fmt: skip


def _sharpness_title(result: LossSurface) -> str:
    """Return the sharpest curvature of the plane beside that of all directions."""
    plane, space = (
        float(values[values.abs().argmax()])
        for values in (result.plane_curvatures, result.curvatures)
    )
    return f"sharpest curvature: {plane:.2g} here, {space:.2g} in all"
