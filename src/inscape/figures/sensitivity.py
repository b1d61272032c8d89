"""Figures of the sensitivity family: attributions of a point, and outputs along directions."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, ORANGE, RULE, SIGNED, quiet_grid
from inscape.sensitivity import ActiveSubspace, Saliency

#: More inputs than this are drawn as a line.
MARKS = 60


@painter.register(Saliency)
def _saliency(result: Saliency, ax: Axes) -> None:
    """Draw what each input contributes to an output at the first point: integrated gradients."""
    difference = f"{float(result.values[0] - result.baseline_values[0]):.3g} over the baseline"
    name = f"output {int(result.outputs[0])}: {difference}, {float(result.residuals[0]):+.0e}"
    ax.set_title(f"{name} not attributed")
    if len(result.shape) >= 2:
        image = result.images()[0].reshape(-1, *result.shape[-2:]).sum(0)
        high = float(image.abs().max()) or 1.0
        limits: dict[str, Any] = {"vmin": -high, "vmax": high}
        shown = ax.imshow(image.numpy(), cmap=SIGNED, interpolation="nearest", **limits)
        ax.set_axis_off()
        figure = ax.get_figure(root=True)
        if figure is not None:
            figure.colorbar(shown, ax=ax, shrink=0.7, pad=0.02)
        return
    times_input = result.attributions("gradient_times_input")[0].numpy()
    integrated, few = result.integrated[0].numpy(), len(result.baseline) <= MARKS
    marks: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4}
    marks = marks if few else {"linewidth": 0.8}
    ax.axhline(0, color=RULE, linewidth=0.7)
    ax.plot(times_input, color=ORANGE, label="gradient times input", **marks)
    ax.plot(integrated, color=BLUE, label="integrated gradient", **marks)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="input", ylabel="contribution to the output")
    quiet_grid(ax)
    ax.legend(fontsize=7.5)


@painter.register(ActiveSubspace)
def _active_subspace(result: ActiveSubspace, ax: Axes) -> None:
    """Draw the first output against the projection on its leading direction: the summary plot."""
    is_test, u = result.held_out.numpy(), result.projections[:, 0].numpy()
    values, fitted = result.values[:, 0].numpy(), result.fitted[:, 0].numpy()
    look: dict[str, Any] = {"linestyle": "", "marker": ".", "markersize": 3.5}
    ax.plot(u[~is_test], values[~is_test], color=FAINT, alpha=0.5, label="fitted on", **look)
    ax.plot(u[is_test], values[is_test], color=BLUE, label="held out", **look)
    order = u.argsort()
    ax.plot(u[order], fitted[order], color=ORANGE, label="smooth function of the projection")
    name = "largest output" if result.outputs[0] < 0 else f"output {result.outputs[0]}"
    ax.set(xlabel="projection on the leading direction", ylabel=name)
    quiet_grid(ax)
    ax.set_title("too few points are held out")
    if result.explained is not None:
        shares = [f"{share:.2f}" for share in result.explained[0].tolist()]
        counts = ", ".join(["1", "2", "3"][: len(shares)])
        ax.set_title(f"directions {counts} explain {', '.join(shares)} of held-out variance")
    ax.legend(fontsize=7.5, loc="best")
    if len(result.shape) >= 2:
        _direction(result, ax)


def _direction(result: ActiveSubspace, ax: Axes) -> None:
    """Draw the leading direction as an image beside the plot, channels added up."""
    image = result.images[0, 0].reshape(-1, *result.shape[-2:]).sum(0)
    high = float(image.abs().max()) or 1.0
    inset = ax.inset_axes((1.03, 0.55, 0.3, 0.4))
    limits: dict[str, Any] = {"vmin": -high, "vmax": high}
    inset.imshow(image.numpy(), cmap=SIGNED, interpolation="nearest", **limits)
    inset.set_axis_off()
    inset.set_title("direction", fontsize=7.5)
