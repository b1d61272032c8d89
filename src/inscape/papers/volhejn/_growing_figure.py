"""The first design as a picture: each measure against the training-set size."""

from collections.abc import Sequence

import numpy as np

from inscape.lab.experiment import Figure
from inscape.lab.store import Record
from inscape.papers.volhejn._growing import measures_in, runs, taus


def draw(records: Sequence[Record]) -> Figure:
    """Draw the mean over networks for each data set, and the mean over data sets, by size."""
    from inscape.figures.panels import panels

    names = measures_in(records)
    figure, axes = panels(len(names), columns=3)
    for ax, name in zip(axes, names, strict=True):
        lines = [_line(pairs) for pairs in runs(records, name).values()]
        for sizes, means in lines:
            ax.plot(sizes, means, lw=0.8, alpha=0.35, color="C0")
        sizes = sorted({size for line in lines for size in line[0]})
        middle = [
            np.mean([m for line in lines for s, m in zip(*line, strict=True) if s == size])
            for size in sizes
        ]
        ax.plot(sizes, middle, marker="o", ms=4, lw=1.8, color="C3")
        tau = float(np.mean(list(taus(records, name).values())))
        ax.set(xscale="log", title=f"tau {tau:.2f}", xlabel="training images")
        ax.set_xticks(sizes, [str(size) for size in sizes], rotation=45, fontsize=7)
        ax.set_ylabel(name.replace("_", " "), fontsize=7)
        ax.minorticks_off()
    figure.suptitle("Thin lines: one data set each. Thick line: their mean.", fontsize=8)
    return figure


def _line(pairs: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    sizes = sorted({size for size, _ in pairs})
    return sizes, [float(np.mean([v for s, v in pairs if s == size])) for size in sizes]
