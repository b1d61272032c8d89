"""Figures of the spectra family."""

from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from inscape.figures.distribution import distribution
from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, INK, quiet_grid
from inscape.spectra import DistanceFromInit, FisherRaoNorm, SpectralNorm

#: More names than this cannot be read side by side.
NAMES = 16


@painter.register(SpectralNorm)
def spectral_norm(result: SpectralNorm, ax: Axes) -> None:
    """Draw how much each layer can stretch (above 1) or must shrink (below 1)."""
    norms = result.norms.cpu().clamp(min=1e-12).tolist()
    places = range(len(norms))
    ax.vlines(places, 1, norms, color=BLUE, linewidth=2.5, alpha=0.6)
    ax.plot(places, norms, "o", color=BLUE, markersize=6)
    ax.axhline(1, color=FAINT, linewidth=1, linestyle=(0, (5, 2)))
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    ax.set(xlim=(-0.6, len(norms) - 0.4), ylim=(min(0.8, *norms) / 1.6, max(1.25, *norms) * 1.6))
    if len(norms) <= NAMES:
        slant = 30 if max(map(len, result.layers)) > 8 else 0
        ax.set_xticks(list(places), result.layers, rotation=slant)
        for at, norm in zip(places, norms, strict=True):
            ax.annotate(f"{norm:.3g}", (at, norm), (7, 0), textcoords="offset points", va="center")
    ax.set(xlabel="layers, from the input on", ylabel="spectral norm")
    quiet_grid(ax)


@painter.register(DistanceFromInit)
def distance_from_init(result: DistanceFromInit, ax: Axes) -> None:
    """Draw how far each parameter tensor moved, beside its norm at the start."""
    order = sorted(range(len(result.names)), key=lambda k: -float(result.distances[k]))
    shown = sorted(order[:NAMES])
    places = list(range(len(shown)))
    ax.barh(places, [float(result.distances[k]) for k in shown], color=BLUE, alpha=0.6, height=0.6)
    starts = [float(result.before[k]) for k in shown]
    ax.plot(starts, places, "|", color=INK, markersize=13, markeredgewidth=1.8)
    ax.set_yticks(places, [result.names[k] for k in shown])
    ax.invert_yaxis()
    note = "" if len(shown) == len(order) else f" (the {NAMES} that moved most, of {len(order)})"
    ax.set(xlabel=f"distance from the start; tick: norm at the start{note}", xlim=(0, None))
    quiet_grid(ax, "x")


@painter.register(FisherRaoNorm)
def fisher_rao_norm(result: FisherRaoNorm, ax: Axes) -> None:
    """Draw how strongly the loss of each point depends on the size of all parameters."""
    distribution(ax, result.squares.sqrt(), result.summary(), mark="root mean square")
    ax.set(xlabel="derivative of a point's loss along the parameters (size)", ylabel="points")
