"""Table 4.1 as a picture: each measure against the number of points, networks and polynomials."""

from collections.abc import Sequence

import numpy as np

from inscape.lab.experiment import Figure
from inscape.lab.store import Record
from inscape.papers.volhejn._measures import THESIS
from inscape.papers.volhejn._one_dimension import Rows, rows, taus
from inscape.papers.volhejn.penalties import WORDS


def draw(records: Sequence[Record]) -> Figure:
    """Draw the median over data sets by size, and a band that holds half of them."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, ORANGE

    nets, curves = rows(records, "network"), rows(records, "polynomial")
    figure, axes = panels(len(THESIS), columns=2, size=(3.2, 2.4))
    for ax, measure in zip(axes, THESIS, strict=True):
        for runs, colour, mark, what in (
            (nets, BLUE, "o", "networks"),
            (curves, ORANGE, "s", "polynomials"),
        ):
            sizes, low, middle, high = _band(runs, measure)
            tau = float(np.nanmean(list(taus(runs, measure).values())))
            ax.fill_between(sizes, low, high, color=colour, alpha=0.18, lw=0)
            ax.plot(sizes, middle, marker=mark, ms=4, color=colour, label=f"{what}, tau {tau:.2f}")
        ax.set(xlabel="training points", ylabel=f"{WORDS[measure]} {measure}")
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, fontsize=7)
    figure.suptitle("Lines: median over data sets. Bands: the middle half of them.", fontsize=8)
    return figure


def _band(runs: Rows, measure: str) -> tuple[list[int], list[float], list[float], list[float]]:
    sizes = sorted({size for pairs in runs.values() for size, _ in pairs})
    lines = []
    for size in sizes:
        means = [
            float(np.mean(values))
            for pairs in runs.values()
            if (values := [row[measure] for s, row in pairs if s == size])
        ]
        lines.append(np.quantile(means, [0.25, 0.5, 0.75]).tolist())
    low, middle, high = (list(line) for line in zip(*lines, strict=True))
    return sizes, low, middle, high
