"""Figures of the spectra family."""

import torch
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from inscape.figures.distribution import distribution
from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, INK, quiet_grid
from inscape.spectra import (
    ConvSpectrum,
    DistanceFromInit,
    EffectiveRank,
    FisherRaoNorm,
    ParameterNorm,
    SpectralNorm,
)

#: More names than this cannot be read side by side.
NAMES = 16
#: Curves that can be told apart.
CURVES = 8


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
    _layer_names(ax, result.layers)
    if len(norms) <= NAMES:
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


@painter.register(EffectiveRank)
def effective_rank(result: EffectiveRank, ax: Axes) -> None:
    """Draw the effective rank of each layer, below a tick at the largest one possible."""
    ranks, places = result.ranks.tolist(), list(range(len(result.layers)))
    most = result.singular_values.double().sqrt().tolist()
    ax.vlines(places, 1, ranks, color=BLUE, linewidth=2.5, alpha=0.6)
    ax.plot(places, ranks, "o", color=BLUE, markersize=5)
    ax.plot(places, most, "_", color=INK, markersize=11, markeredgewidth=1.6)
    ax.set_yscale("log")
    for axis in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
        axis(LogFormatter(minor_thresholds=(2, 0.5)))
    ax.set(xlim=(-0.6, len(places) - 0.4), ylim=(0.8, 1.4 * max(most)))
    _layer_names(ax, result.layers)
    ax.set(xlabel="layers, in the order of the model", ylabel="effective rank; tick: the most")
    quiet_grid(ax)


@painter.register(ConvSpectrum)
def conv_spectrum(result: ConvSpectrum, ax: Axes) -> None:
    """Draw the singular values of each layer, from the largest on, as fractions of all."""
    shown = result.largest.argsort(descending=True)[:CURVES].sort().values.tolist()
    for k in shown:
        part = slice(int(result.offsets[k]), int(result.offsets[k + 1]))
        values, counts = result.values[part], result.counts[part].double()
        after = counts.cumsum(0)
        edges = torch.stack([after - counts, after], 1).flatten() / after[-1]
        ax.plot(edges.tolist(), values.repeat_interleave(2).tolist(), label=result.layers[k])
    note = "" if len(shown) == len(result.layers) else f", the {CURVES} layers with the largest"
    ax.set(xlim=(0, 1), ylim=(0, None))
    ax.set(xlabel=f"fraction of the singular values{note}", ylabel="singular value")
    ax.legend()
    quiet_grid(ax)


def _layer_names(ax: Axes, layers: tuple[str, ...]) -> None:
    """Write the names of layers below their places, if they can be read side by side."""
    if len(layers) <= NAMES:
        slant = 30 if max(map(len, layers)) > 8 else 0
        ax.set_xticks(range(len(layers)), layers, rotation=slant)


@painter.register(ParameterNorm)
def parameter_norm(result: ParameterNorm, ax: Axes) -> None:
    """Draw the norm of each layer; over training, that of all parameters and the path norm."""
    if len(result.steps) == 1:
        norms, places = result.norms[0].tolist(), range(len(result.layers))
        ax.bar(places, norms, color=BLUE, alpha=0.6, width=0.6)
        _layer_names(ax, result.layers)
        ax.set(xlabel="layers, in the order of the model", ylabel="norm of the parameters")
        quiet_grid(ax)
        return
    steps = result.steps.tolist()
    ax.plot(steps, result.totals.tolist(), color=BLUE, label="all parameters")
    if not result.reason:
        ax.plot(steps, result.path_norms.tolist(), color=INK, label="path norm")
    ax.set(xlabel="step of the training", ylabel="norm", yscale="log")
    ax.legend()
    quiet_grid(ax)
