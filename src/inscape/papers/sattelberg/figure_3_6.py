"""Figure 3.6: what is known of a four-input problem, and how often networks learn it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate
from inscape.papers.sattelberg._correlation import explaining_best, rank_correlation
from inscape.papers.sattelberg._difficulty import LEAKY, Counts, counted, known, smallest_width
from inscape.papers.sattelberg._npn_metrics import METRICS, classes, metrics

Array = npt.NDArray[Any]
#: The three measures of success: sizes whose mean it is, None for all.
MEASURES = {"2x2": (2, 2), "3x1": (3, 1), "mean": None}
#: Problems that are called hard here: the tenth with the lowest mean success.
HARD = 22
#: From here on a metric is high.
HIGH = {"swaps": 3, "degree": 3}
SIMILAR = 0.7
WEAK = 0.4


def measures(counts: Counts) -> dict[str, Array]:
    """Return the three measures of success of each class, in percent."""
    found = {}
    for name, size in MEASURES.items():
        rows = counts.rates if size is None else counts.at(size)
        if len(rows):
            found[name] = 100 * rows.mean(0)
    return found


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how metrics go with mean success, and what hard and easy problems have of them."""
    counts = counted(records).get(LEAKY)
    if counts is None:
        return {}
    success = measures(counts)
    mean = success["mean"]
    found: dict[str, Estimate | None] = {
        f"success/{name}": rank_correlation(metrics()[name], mean) for name in METRICS
    }
    found["influence ahead"] = explaining_best(
        "influence", {name: metrics()[name] for name in METRICS}, mean
    )
    found |= {
        f"similar/{name}": rank_correlation(success[name], mean)
        for name in ("2x2", "3x1")
        if name in success
    }
    found |= high_values(mean, metrics())
    return known(found)


def high_values(mean: Array, values: Mapping[str, Array]) -> dict[str, Estimate]:
    """Return how many hard problems, and how many of the easier half, have a high metric."""
    order = np.lexsort((np.arange(len(mean)), mean))
    hard, easy = order[:HARD], order[len(mean) // 2 :]
    found = {}
    for name, high in HIGH.items():
        found[f"hard/{name}"] = _share(values[name][hard] >= high)
        found[f"easy/{name}"] = _share(values[name][easy] >= high)
    return found


def _share(flags: Array) -> Estimate:
    share = float(flags.mean())
    return exact_estimate(share, len(flags), method="share of these classes; there are no others")


def conclude(records: Sequence[Record]) -> list[str]:
    """Say the correlations, and which problems only wider networks solve."""
    counts = counted(records).get(LEAKY)
    if counts is None:
        return []
    found = analyse(records)
    words = ", ".join(f"{METRICS[m]} {found[f'success/{m}'].value:+.2f}" for m in METRICS)
    needed = smallest_width(counts)
    widths = ", ".join(
        f"{(needed == width).sum()} at {width}" for width in sorted(set(needed[needed > 0]))
    )
    never = [str(classes()[k]) for k in np.nonzero(needed == 0)[0]]
    said = [
        f"Rank correlation with mean success of leaky ReLU networks: {words}.",
        f"Smallest width of one hidden layer that ever succeeds: {widths} (leaky ReLU).",
    ]
    if never:
        said.append(f"No network with one hidden layer solved {len(never)} problems.")
    return said


def draw(records: Sequence[Record]) -> Figure:
    """Draw metrics and successes of all classes, sorted by mean success."""
    from matplotlib.figure import Figure

    counts = counted(records)[LEAKY]
    success = measures(counts)
    order = np.lexsort((np.array(classes()), success["mean"]))
    needed = smallest_width(counts)[order]
    strips = [(METRICS[name], metrics()[name][order]) for name in METRICS]
    strips += [(f"{name} success", success[name][order]) for name in MEASURES if name in success]
    figure = Figure(figsize=(7.4, 1.05 * len(strips) + 0.7), layout="constrained")
    axes = figure.subplots(len(strips), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (title, values) in zip(axes, strips, strict=True):
        _strip(ax, values, needed)
        ax.set_ylabel(title.replace(" ", "\n", 1))
        if title[0].isdigit():  # the mean over sizes keeps a scale of its own, to be seen at all
            ax.set_ylim(-6, 106)
    axes[-1].set_xlabel("four-input classes, from the hardest to the easiest")
    axes[0].legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=9,
        title="smallest width of one hidden layer that ever succeeds",
        handletextpad=0.1,
        columnspacing=1.2,
    )
    return figure


def _strip(ax: Any, values: Array, needed: Array) -> None:
    """Draw one dot for each class, coloured by the width that it needs."""
    from inscape.figures.style import RULE, quiet_grid

    places = np.arange(len(values))
    ax.vlines(places, values.min(), values, color=RULE, lw=0.4, alpha=0.7)
    for width in sorted(set(needed.tolist()), key=lambda w: w or 99):
        some = needed == width
        look = _look(width)
        label = str(width) if width else "never"
        ax.plot(places[some], values[some], ls="", ms=3.2, mew=0, label=label, **look)
    quiet_grid(ax)
    ax.set_xlim(-2, len(values) + 1)


def _look(width: int) -> dict[str, str]:
    """Return colour and mark of the problems that need a width."""
    from inscape.figures.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION

    looks = {2: (SKY, "o"), 3: (BLUE, "s"), 4: (ORANGE, "^"), 5: (VERMILION, "D"), 0: (INK, "X")}
    colour, mark = looks.get(width, ((GREEN, "v") if width == 6 else (PURPLE, "P")))
    return {"color": colour, "marker": mark}


_CORRELATION = "Spearman's rank correlation over classes, bootstrap over classes"


EXPERIMENT = Experiment(
    shows="Figure 3.6",
    title="Swaps, Fourier metrics and success of all four-input classes",
    same_as="figure-3.5",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                f"hard-have-{name}: hard/{name} > 0.9": "Hard problems have a high "
                f"{METRICS[name]}: 3 or more in nine of ten of the 22 hardest. | share of the "
                "tenth of the classes with the lowest mean success"
                for name in HIGH
            },
            **{
                f"easy-have-{name}: easy/{name} > 0.1": "Easy problems can have a high "
                f"{METRICS[name]} as well: 3 or more in one of ten, at least, of the easier half. "
                "| share of the half of the classes with the higher mean success"
                for name in HIGH
            },
            "influence-first: influence ahead > 0": "Influence is the most explanatory of the "
            "four metrics. | size of its rank correlation with mean success less the largest of "
            "the others', bootstrap over classes | section 3.4.2",
            "influence-inverse: success/influence < 0": "Problems of higher influence are learned "
            "less often (printed the other way round). | | section 3.4.2, read as its table 3.3 "
            "demands",
            f"entropy-weak: success/entropy between {-WEAK} and {WEAK}": "Entropy has a weak "
            "relationship with performance (rank correlation of less than 0.4 either way).",
            **{
                f"similar-{name}: similar/{name} > {SIMILAR}": f"Success of {name} networks is "
                "similar to the mean over all sizes (rank correlation above 0.7). | | section "
                "3.4.2; the bound is ours"
                for name in ("2x2", "3x1")
            },
        },
        source="section 3.4.2; the bounds are ours",
        test=_CORRELATION,
    ),
    errata=("S1", "S2"),
    notes=(
        "Success is that of leaky ReLU networks, the dissertation's activation wherever it does "
        "not compare; classes are sorted by the mean over all sizes.",
        "The text says that influence is inversely correlated with difficulty, though parity has "
        "the highest influence and is the hardest: performance must be meant.",
    ),
)
