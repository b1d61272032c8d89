"""Section 5.3: how many initialisations networks need to learn sine, and what they make of it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log, pi, sin
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape._core.result import CORRELATION
from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel
from inscape.lab.grids import grid
from inscape.lab.published import printed as rows_printed
from inscape.lab.records import Record
from inscape.lab.statistics import (
    bootstrap_estimate,
    kendall_tau,
    mean_estimate,
    proportion_estimate,
)
from inscape.papers.sattelberg._sine import POINTS, cell, seconds

Size = tuple[int, int]  # width, depth
MOST = 1000
#: Table 5.1: rows are widths, columns depths; None is more than 1000.
PRINTED = [list(row.values())[1:] for row in rows_printed("sattelberg", "table-5.1")]
SHALLOW, DEEP = range(1, 6), range(6, 11)


def printed(width: int, depth: int) -> int | None:
    """Return the printed count of a size."""
    count: int | None = PRINTED[width - 1][depth - 1]
    return count


def printed_level(depth: int) -> float:
    """Return the mean of log10 of the printed counts over widths; more than 1000 is 1000."""
    logs = [np.log10(printed(width, depth) or MOST) for width in range(1, 11)]
    return round(float(np.mean(logs)), 3)  # claims are hashed: no digit may depend on a machine


def printed_probability(depths: Sequence[int]) -> float:
    """Return the likeliest probability of success if it were the same for all these sizes."""
    counts = [printed(width, depth) for width in range(1, 11) for depth in depths]
    found = sum(count is not None for count in counts)
    return round(found / sum(count or MOST for count in counts), 3)


def beyond(successes: int, trials: int, count: int) -> float:
    r"""Return the probability that more than ``count`` initialisations are needed.

    The probability of success is unknown; its law after so many successes is Jeffreys' beta law
    :math:`B(a, b)`, so this is :math:`E[(1 - p)^{count}] = B(a, b + count) / B(a, b)`.
    """
    from scipy.special import betaln

    a, b = successes + 0.5, trials - successes + 0.5
    return float(np.exp(betaln(a, b + count) - betaln(a, b)))


def fits(successes: int, trials: int, count: int | None) -> bool:
    """Tell whether a printed count lies in the central 95% of its law."""
    if count is None:
        return beyond(successes, trials, MOST) > 0.025
    most, least = beyond(successes, trials, count - 1), 1 - beyond(successes, trials, count)
    return min(most, least) > 0.025


def level(p: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the mean of log10 of the count for each probability; more than 1000 is 1000."""
    tries = np.arange(1, MOST)
    q = 1 - np.asarray(p, dtype=float)[..., None]
    soon = (np.log10(tries) * (1 - q) * q ** (tries - 1)).sum(-1)
    found: npt.NDArray[Any] = soon + np.log10(MOST) * q[..., 0] ** (MOST - 1)
    return found


def counted(records: Sequence[Record], batch: int = POINTS) -> dict[Size, tuple[int, int]]:
    """Return successes and trials of every size at one batch size."""
    return {
        (record.settings["width"], record.settings["depth"]): (
            record.values["successes"],
            record.settings["trials"],
        )
        for record in records
        if record.settings["batch"] == batch
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return levels by depth, the trends, and how many printed counts fit their law."""
    sizes = counted(records)
    found: dict[str, Estimate] = {}
    if not sizes:
        return found
    for depth in sorted({depth for _, depth in sizes}):
        found[f"level/{depth}"] = _level(sizes, depth)
    found["shallow"] = _shallow(sizes)
    found["fitting"] = share_fitting(sizes)
    found["with depth"] = _trend(sizes, along=1)
    found["with width"] = _trend({k: v for k, v in sizes.items() if k[1] >= min(DEEP)}, along=0)
    found["constant"] = _constant(records)
    return {name: one for name, one in found.items() if np.isfinite(one.value)}


def share_fitting(sizes: Mapping[Size, tuple[int, int]]) -> Estimate:
    """Return the share of printed counts inside the central 95% of their laws, with Wilson's."""
    good = sum(fits(*counts, printed(*size)) for size, counts in sizes.items())
    return proportion_estimate(good, len(sizes), over="sizes")


def _draws(successes: int, trials: int) -> npt.NDArray[Any]:
    rng = np.random.default_rng([successes, trials])
    return rng.beta(successes + 0.5, trials - successes + 0.5, size=1000)


def _from_draws(value: float, drawn: npt.NDArray[Any], n: int) -> Estimate:
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return Estimate(
        value=value,
        low=low,
        high=high,
        se=float(drawn.std(ddof=1)),
        n=n,
        method="draws from Jeffreys' beta law of each probability",
        interval="binomial",
    )


def _level(sizes: Mapping[Size, tuple[int, int]], depth: int) -> Estimate:
    """Return the mean over widths of the expected log10 of the count."""
    some = [counts for (_, d), counts in sizes.items() if d == depth]
    drawn = np.mean([level(_draws(*counts)) for counts in some], axis=0)
    return _from_draws(float(drawn.mean()), drawn, len(some))


def _shallow(sizes: Mapping[Size, tuple[int, int]]) -> Estimate:
    """Return the probability that one would read from expected counts at depths 1 to 5."""
    some = [counts for (_, depth), counts in sizes.items() if depth in SHALLOW]
    drawn = 1 / np.mean([1 / _draws(*counts) for counts in some], axis=0)
    return _from_draws(float(drawn.mean()), drawn, len(some))


def _trend(sizes: Mapping[Size, tuple[int, int]], *, along: int) -> Estimate:
    """Return tau of the share of successes along width (0) or depth (1), mean over the other."""
    lines: dict[int, list[tuple[int, float]]] = {}
    for size, (successes, trials) in sizes.items():
        lines.setdefault(size[1 - along], []).append((size[along], successes / trials))
    taus = [kendall_tau(*zip(*pairs, strict=True)) for pairs in lines.values()]
    known = [tau for tau in taus if np.isfinite(tau)]
    return bootstrap_estimate(known or [float("nan")], within=CORRELATION)


def _constant(records: Sequence[Record]) -> Estimate:
    """Return the share of failures that were constant functions before training, over sizes."""
    pairs = [
        (record.values["failed_constant_at_start"], failures)
        for record in records
        if record.settings["batch"] == POINTS
        and (failures := record.settings["trials"] - record.values["successes"])
    ]
    if not pairs:
        return bootstrap_estimate([float("nan")])
    return bootstrap_estimate(pairs, lambda some: sum(a for a, _ in some) / sum(b for _, b in some))


#: Spread of log10 of one geometric variable with a small probability: pi / sqrt(6) / ln 10.
SCATTER = 0.557
#: Words on bright cells; unlike ink it stays dark on dark paper.
DARK = "#1a1a1a"
ONCE = grid(trials=MOST, epochs=200, more=1000, accept=0.45, lr=0.1)
GRID = grid(width=range(1, 11), depth=range(1, 11), batch=[POINTS, 32, 1], **ONCE)


def conclude_counts(records: Sequence[Record]) -> list[str]:
    """Say what failures are, and what other batch sizes would have given."""
    found = analyse(records)
    said = []
    if "constant" in found:
        ends = [(r.values["failed_constant_at_end"], r) for r in records if _whole(r)]
        failures = sum(r.settings["trials"] - r.values["successes"] for _, r in ends)
        said.append(
            f"Of {failures:,} networks that failed, {found['constant'].value:.0%} were constant "
            f"functions before the first step, and {sum(n for n, _ in ends) / failures:.0%} after "
            "the last."
        )
    for batch in sorted({r.settings["batch"] for r in records} - {POINTS}):
        share = share_fitting(counted(records, batch))
        said.append(
            f"With batches of {batch}, {share.value:.0%} of the printed counts lie in the central "
            f"95% of their law; with all points at each step {found['fitting'].value:.0%} do."
        )
    return said


def _whole(record: Record) -> bool:
    return bool(record.settings["batch"] == POINTS)


def draw_counts(records: Sequence[Record]) -> Figure:
    """Draw the printed counts beside those that our probabilities let one expect."""
    import numpy as np

    from inscape.figures.panels import panels

    sizes = counted(records)
    widths, depths = (sorted({size[k] for size in sizes}) for k in (0, 1))
    ours = np.array(
        [
            [min(MOST, sizes[w, d][1] / sizes[w, d][0]) if sizes[w, d][0] else MOST for d in depths]
            for w in widths
        ]
    )
    theirs = np.array([[float(printed(w, d) or MOST) for d in depths] for w in widths])
    figure, axes = panels(2, columns=2, size=(4.2, 3.6))
    for ax, counts, title in zip(
        axes, (theirs, ours), ("printed: one draw", "ours: expected, 1 / p"), strict=True
    ):
        _table(ax, counts, widths, depths)
        ax.set(title=title, xlabel="depth", ylabel="width")
    return figure


def _table(ax: Panel, counts: "object", widths: Sequence[int], depths: Sequence[int]) -> None:
    import numpy as np

    numbers = np.asarray(counts)
    ax.imshow(np.log10(numbers), vmin=0, vmax=np.log10(MOST), cmap="cividis", aspect="auto")
    ax.set_xticks(range(len(depths)), [str(depth) for depth in depths])
    ax.set_yticks(range(len(widths)), [str(width) for width in widths])
    for row, line in enumerate(numbers.tolist()):
        for column, number in enumerate(line):
            word = "≥1000" if number >= MOST else f"{number:.3g}"
            colour = DARK if number > 30 else "white"
            ax.text(column, row, word, ha="center", va="center", fontsize=6.5, color=colour)


TABLE_5_1 = Experiment(
    shows="Table 5.1",
    title="Initialisations needed until a network of given width and depth learns sine",
    smoke=grid(
        grid(width=[1, 3], depth=[1, 3], batch=[POINTS, 32], **ONCE), trials=16, epochs=50, more=50
    ),
    settings=GRID,
    departures={"smoke": ("Two widths and depths, 16 networks of each, 50 epochs.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude_counts,
    draw=draw_counts,
    claims=claims(
        {
            f"shallow: shallow = {printed_probability(SHALLOW)} (0.042), above 0.5": "Up to depth "
            "5 the printed counts are those of a success probability of 0.89. | depths 1 to 5 | "
            "probability of success | printed table, 50 successes in 56 trials; binomial spread",
            **{
                f"level-{depth}: level/{depth} = {printed_level(depth)} "
                f"({SCATTER / 10**0.5})": "At "
                f"depth {depth} the mean of log10 of the counts is {printed_level(depth):.2f} "
                f"(more than 1000 taken as 1000). | depth {depth} | mean of log10 of the count "
                "over widths | printed table; log10 of one geometric variable scatters by 0.557"
                for depth in DEEP
            },
            "counts-fit: fitting > 0.85": "The printed counts are draws of the laws that our "
            "probabilities give. | | printed table",
            "deeper-fails-more: with depth < 0": "Deeper networks tend to fail more frequently. | "
            "Kendall's tau of success and depth, bootstrap over widths",
            "width-helps: with width > 0": "As the width increases, this effect decreases (depths "
            "6 to 10). | Kendall's tau of success and width, bootstrap over depths",
            "dead-layers: constant > 0.5": "Failures stem from layers whose units are all off, so "
            "that the network is a constant function from the start. | share of the failures, "
            "bootstrap over sizes",
        },
        source="section 5.3",
        test="share of counts in the central 95% of their law, Wilson's interval",
    ),
    errata=("S26",),
    notes=(
        "The batch size is not printed. Claims are judged with all 100 points at each step, since "
        "none is mentioned; batches of 32 (as in section 6.1) and of 1 are run beside it.",
        "1000 networks of every size are trained, where the dissertation stops at the first that "
        "succeeds; three of those that do are trained on.",
        "Initial weights are PyTorch's defaults; the dissertation does not say.",
    ),
)
"""Table 5.1: deep and narrow networks mostly fail to learn sine, and need many initialisations."""


Fits = Mapping[Size, Sequence[Mapping[str, Any]]]
#: Slopes and intercepts beyond this are left out of a cloud; those of sine end at 1 and pi.
SPAN = (1.6, 3.6)


def fits_fits(records: Sequence[Record]) -> Fits:
    """Return the networks that were trained on, by width and depth."""
    return {
        (record.settings["width"], record.settings["depth"]): record.values["fits"]
        for record in records
        if record.values["fits"]
    }


def analyse_fits(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how regions grow along width and depth, and which half of sine is fitted worse."""
    shown = fits_fits(records)
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


def conclude_fits(records: Sequence[Record]) -> list[str]:
    """Say how many pieces there are at the corners of the grid."""
    shown = fits_fits(records)
    widths, depths = (sorted({size[k] for size in shown}) for k in (0, 1))
    said = [
        f"width {w}, depth {d}: {_mean_regions(shown[w, d]):.1f}"
        for w in (widths[0], widths[-1])
        for d in (depths[0], depths[-1])
        if (w, d) in shown
    ]
    return [f"Mean number of pieces on the interval: {'; '.join(said)}."]


def draw_fits(records: Sequence[Record]) -> Figure:
    """Draw the first network of every size; each panel is a box of one pair of axes."""
    from inscape.figures.panels import panels

    shown = fits_fits(records)
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


def _panel(left: Panel, right: Panel, width: int, depth: int, fit: Mapping[str, Any]) -> None:
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


FIGURE_5_5 = Experiment(
    shows="Figure 5.5",
    title="Fits of sine and the slopes and intercepts of their pieces, for widths and depths 1-10",
    same_as="table-5.1",
    analyse=analyse_fits,
    conclude=conclude_fits,
    draw=draw_fits,
    claims=claims(
        {
            "regions-grow-with-width: along width > 0": "The number of linear regions increases "
            "in width.",
            "regions-grow-with-depth: along depth > 0": "The number of linear regions increases "
            "in depth. | Kendall's tau within a width, bootstrap over widths",
            "negative-half-worse: negative half > 0": "Deep networks of width 10 approximate the "
            "negative portion of sine less well. | log of the ratio of errors, t interval over "
            "networks of depths 6 to 10",
        },
        source="section 5.3",
        test="Kendall's tau within a depth, bootstrap over depths",
    ),
    errata=("S26",),
    notes=(
        "Pieces are exact: the network is cut at every bend, and pieces of equal slope are one.",
        "The law of initial weights does not change when the input and the output change sign "
        "together, and sine does not either: on average neither half can be fitted worse.",
    ),
)
"""Figure 5.5: a hundred networks that learned sine, as lines and as clouds of slopes."""
