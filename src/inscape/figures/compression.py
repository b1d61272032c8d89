"""Figures of the compression family: accuracy with few local maps, and regions that are shared."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from inscape.compression import MapCompression, RegionSharing
from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, ORANGE, quiet_grid


@painter.register(MapCompression)
def _map_compression(result: MapCompression, ax: Axes) -> None:
    """Draw the accuracy with so many clusters of local maps, beside that of the network."""
    counts, accuracies = result.clusters.numpy(), result.accuracies.numpy()
    ends = np.abs(result.ends.numpy().T - accuracies)
    name = "maps of all outputs together" if result.joint else "maps of each output"
    ax.errorbar(counts, accuracies, ends, color=BLUE, marker="o", markersize=4, label=name)
    name = "the network" if result.labels is not None else "the network's own classes"
    ax.axhline(result.own_accuracy, color=ORANGE, linestyle="--", label=name)
    if result.enough is not None:
        ax.axvline(result.enough, color=FAINT, linewidth=0.8, label=f"{result.enough} are enough")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set(xlabel="clusters of local maps", ylabel="accuracy")
    quiet_grid(ax)
    ax.legend(fontsize=7.5)


@painter.register(RegionSharing)
def _region_sharing(result: RegionSharing, ax: Axes) -> None:
    """Draw how many points the fullest linear regions hold, in order."""
    sizes = np.sort(np.bincount(result.regions.numpy()))[::-1]
    ax.step(np.arange(1, len(sizes) + 1), sizes, where="mid", color=BLUE)
    ax.set(xlabel="linear regions, fullest first", ylabel="points in it", ylim=(0, None))
    ax.set(xscale="log", xlim=(0.9, 1.1 * len(sizes)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    fraction = float(result.shared.double().mean())
    ax.set_title(f"{fraction:.1%} of {len(result.regions)} points lie with others in a region")
    quiet_grid(ax)
