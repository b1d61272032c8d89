"""Figures 4.2 to 4.5: boxes of a measure for each coefficient of its penalty, one point a set."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from inscape.lab.store import Record
from inscape.papers.volhejn._penalties import LOWER_BOUND, table, value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: For each coefficient, one number for each data set.
Boxes = Mapping[float, Sequence[float]]

WORDS = {
    "GN": "gradient norm",
    "PL0": "function path length",
    "PL1": "gradient path length",
    "WP": "weights product",
}


def shown(records: Sequence[Record], measure: str) -> tuple[list[str], list[str]]:
    """Return the data sets on which every run of a measure converged, and the others.

    The boxes of all coefficients hold the same data sets, as in the thesis.
    """
    runs = table(records, measure)
    sets = sorted({name for by_data in runs.values() for name in by_data})
    whole = [
        name
        for name in sets
        if all(name in some and some[name].values["converged"] for some in runs.values())
    ]
    return whole, [name for name in sets if name not in whole]


def boxes(records: Sequence[Record], measure: str) -> tuple[Boxes, Boxes]:
    """Return the measure, and what is left of it above its bound, by coefficient."""
    runs = table(records, measure)
    names, _ = shown(records, measure)
    bound = LOWER_BOUND[measure]
    plain = {c: [value(some[name], measure) for name in names] for c, some in runs.items()}
    free = plain.get(0.0, [])
    left = {
        c: [(held - bound) / (unheld - bound) for held, unheld in zip(row, free, strict=True)]
        for c, row in plain.items()
    }
    return plain, left


def draw(measure: str) -> Callable[[Sequence[Record]], "Figure"]:
    """Return the function that draws the figure of a measure from the records of table 4.4."""

    def both(records: Sequence[Record]) -> "Figure":
        from inscape.figures.panels import panels

        plain, left = boxes(records, measure)
        bound = LOWER_BOUND[measure]
        figure, axes = panels(2, columns=2, size=(3.1, 2.6))
        ratio = f"({measure} - {bound:g}) / that at 0" if bound else f"{measure} / that at 0"
        where = "on test images" if measure != "WP" else "of the weights alone"
        _boxes(axes[0], plain, title=f"(a) {where}", label=f"{WORDS[measure]} {measure}")
        _boxes(axes[1], left, title="(b) against the run without penalty", label=ratio)
        return figure

    return both


def conclude(measure: str) -> Callable[[Sequence[Record]], list[str]]:
    """Return the function that says how many data sets are shown, and which are not."""

    def said(records: Sequence[Record]) -> list[str]:
        names, gone = shown(records, measure)
        if not gone:
            return [f"Each box holds {len(names)} data sets; every run converged."]
        return [
            f"Each box holds {len(names)} data sets; left out, since a run did not converge: "
            f"{', '.join(gone)}."
        ]

    return said


def _boxes(ax: "Axes", rows: Boxes, *, title: str, label: str) -> None:
    """Draw one box for each coefficient with its points beside each other."""
    from inscape.figures.style import BLUE, FAINT, VERMILION, quiet_grid

    where = range(1, len(rows) + 1)
    grey = {"color": FAINT, "linewidth": 0.9}
    ax.boxplot(
        list(rows.values()),
        positions=where,
        widths=0.55,
        showfliers=False,
        medianprops={"color": VERMILION, "linewidth": 1.6},
        boxprops=grey,
        whiskerprops=grey,
        capprops=grey,
    )
    for place, row in zip(where, rows.values(), strict=True):
        ax.plot(_spread(place, row), row, "o", ms=3, alpha=0.55, mew=0, color=BLUE)
    if not any(rows.values()):
        ax.text(0.5, 0.5, "no data set converged", transform=ax.transAxes, ha="center")
    ax.set_xticks(where, [_power(coefficient) for coefficient in rows])
    ax.set(title=title, xlabel="coefficient of the penalty", ylabel=label)
    quiet_grid(ax)


def _spread(place: int, row: Sequence[float]) -> list[float]:
    """Return where points stand side by side within a box, in the order of their data sets."""
    middle = (len(row) - 1) / 2
    return [place + 0.36 * (k - middle) / max(len(row) - 1, 1) for k in range(len(row))]


def _power(number: float) -> str:
    """Return a coefficient as a reader writes it.

    >>> _power(3e-05), _power(1e-4), _power(0.0)
    ('3e-5', '1e-4', '0')
    """
    if number == 0:
        return "0"
    digits, _, exponent = f"{number:e}".partition("e")
    return f"{float(digits):g}e{int(exponent)}"
