"""Figures of the landscape family: the loss between two networks."""

from matplotlib.axes import Axes

from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, GREEN, VERMILION, quiet_grid
from inscape.landscape import Alignment, Interpolation


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
