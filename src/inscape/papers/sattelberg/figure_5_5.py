"""Figure 5.5: a hundred networks that learned sine, as lines and as clouds of slopes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log, pi, sin
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Estimate, Experiment, Trend
from inscape.lab.statistics import bootstrap_estimate, kendall_tau, mean_estimate
from inscape.lab.store import Record
from inscape.papers.sattelberg._counts import Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Fits = Mapping[Size, Sequence[Mapping[str, Any]]]
#: Slopes and intercepts beyond this are left out of a cloud; those of sine end at 1 and pi.
SPAN = (1.6, 3.6)


def fits(records: Sequence[Record]) -> Fits:
    """Return the networks that were trained on, by width and depth."""
    return {
        (record.settings["width"], record.settings["depth"]): record.values["fits"]
        for record in records
        if record.values["fits"]
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how regions grow along width and depth, and which half of sine is fitted worse."""
    shown = fits(records)
    regions = {size: _mean_regions(some) for size, some in shown.items()}
    found = {f"along {name}": _growth(regions, k) for k, name in enumerate(("width", "depth"))}
    wide = [fit for (w, d), some in shown.items() if w == 10 and d >= 6 for fit in some]
    worse = [log(fit["mse_negative"] / fit["mse_positive"]) for fit in wide]
    if worse:
        found["negative half"] = mean_estimate(worse)
    return {name: one for name, one in found.items() if one.value == one.value}


def _mean_regions(some: Sequence[Mapping[str, Any]]) -> float:
    return sum(len(fit["slopes"]) for fit in some) / len(some)


def _growth(regions: Mapping[Size, float], along: int) -> Estimate:
    """Return tau of the number of regions along one side of the grid, mean over the other."""
    lines: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for size, count in regions.items():
        lines[size[1 - along]].append((size[along], count))
    taus = [kendall_tau(*zip(*pairs, strict=True)) for pairs in lines.values()]
    known = [tau for tau in taus if tau == tau]
    return bootstrap_estimate(known or [float("nan")])


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how many pieces there are at the corners of the grid."""
    shown = fits(records)
    widths, depths = (sorted({size[k] for size in shown}) for k in (0, 1))
    said = [
        f"width {w}, depth {d}: {_mean_regions(shown[w, d]):.1f}"
        for w in (widths[0], widths[-1])
        for d in (depths[0], depths[-1])
        if (w, d) in shown
    ]
    return [f"Mean number of pieces on the interval: {'; '.join(said)}."]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the first network of every size; each panel is a box of one pair of axes."""
    from inscape.figures.panels import panels

    shown = fits(records)
    figure, (left, right) = panels(2, columns=2, size=(6.2, 6.4))
    for (width, depth), some in shown.items():
        _panel(left, right, width, depth, some[0])
    widths, depths = (sorted({size[k] for size in shown}) for k in (0, 1))
    for ax in (left, right):
        ax.set(xlabel="depth", ylabel="width", xlim=(min(depths) - 0.6, max(depths) + 0.6))
        ax.set_ylim(max(widths) + 0.6, min(widths) - 0.6)
        ax.set_xticks(depths)
        ax.set_yticks(widths)
    left.set_title("fits of sine, and their mean squared error")
    right.set_title("slope (across) and intercept (up) of every piece, and their number")
    return figure


def _panel(left: "Axes", right: "Axes", width: int, depth: int, fit: Mapping[str, Any]) -> None:
    from inscape.figures.style import BLUE, FAINT, RULE, VERMILION

    grid = [-pi + 2 * pi * k / 60 for k in range(61)]

    def there(x: float, y: float, spans: tuple[float, float]) -> tuple[float, float]:
        """Place a point in its box: a unit wide, and upward on an axis that points down."""
        return depth + 0.42 * x / spans[0], width - 0.36 * y / spans[1]

    sine = [there(x, sin(x), (pi, 1.3)) for x in grid]
    left.plot(*zip(*sine, strict=True), color=RULE, lw=1.0)
    ends = zip(fit["knots"], fit["values"], strict=True)
    left.plot(*zip(*(there(x, y, (pi, 1.3)) for x, y in ends), strict=True), color=BLUE, lw=0.8)
    left.text(depth + 0.42, width + 0.4, f"{fit['mse']:.2g}", fontsize=4.5, ha="right", color=FAINT)
    tangents = [there(*tangent(x), SPAN) for x in grid]
    right.plot(*zip(*tangents, strict=True), color=RULE, lw=1.0)
    pieces = zip(fit["slopes"], fit["intercepts"], strict=True)
    inside = [there(a, b, SPAN) for a, b in pieces if abs(a) < SPAN[0] and abs(b) < SPAN[1]]
    if inside:
        right.plot(*zip(*inside, strict=True), ".", color=VERMILION, ms=2, mew=0)
    count = str(len(fit["slopes"]))
    right.text(depth + 0.42, width + 0.4, count, fontsize=4.5, ha="right", color=FAINT)


def tangent(x: float) -> tuple[float, float]:
    """Return slope and intercept of the tangent of sine at ``x``."""
    from math import cos

    return cos(x), sin(x) - x * cos(x)


EXPERIMENT = Experiment(
    shows="Figure 5.5",
    title="Fits of sine and the slopes and intercepts of their pieces, for widths and depths 1-10",
    same_as="table-5.1",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="regions-grow-with-width",
            says="The number of linear regions increases in width.",
            of="along width",
            side="above",
            test="Kendall's tau within a depth, bootstrap over depths",
            source="section 5.3",
        ),
        Trend(
            name="regions-grow-with-depth",
            says="The number of linear regions increases in depth.",
            of="along depth",
            side="above",
            test="Kendall's tau within a width, bootstrap over widths",
            source="section 5.3",
        ),
        Trend(
            name="negative-half-worse",
            says="Deep networks of width 10 approximate the negative portion of sine less well.",
            of="negative half",
            side="above",
            test="log of the ratio of errors, t interval over networks of depths 6 to 10",
            source="section 5.3",
        ),
    ),
    errata=("S26",),
    notes=(
        "Pieces are exact: the network is cut at every bend, and pieces of equal slope are one.",
        "The law of initial weights does not change when the input and the output change sign "
        "together, and sine does not either: on average neither half can be fitted worse.",
    ),
)
