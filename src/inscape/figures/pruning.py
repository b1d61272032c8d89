"""Figures of the pruning family."""

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from inscape.figures.drawing import painter
from inscape.figures.style import BLUE, FAINT, INK, ORANGE, VERMILION, quiet_grid
from inscape.pruning import ExhaustivePruning, MagnitudePruning, PruningCurve, UnitCurve

WORDS = {"accuracy": "accuracy", "r2": "fraction of variance explained"}
#: More layers than this cannot be written beside a point.
LAYERS = 5


@painter.register(MagnitudePruning)
def magnitude_pruning(result: MagnitudePruning, ax: Axes) -> None:
    """Draw how good the network is with the fraction of its weights that is not zero."""
    _curve(result, ax)


@painter.register(UnitCurve)
def unit_pruning(result: UnitCurve, ax: Axes) -> None:
    """Draw how good the network is with the fraction of weights that is left, and its widths."""
    _curve(result, ax)
    if len(result.layers) > LAYERS:
        return
    shares = result.shares.tolist()
    wanted = {0, len(shares) - 1, result.chosen}
    wanted |= {min(range(len(shares)), key=lambda k: abs(shares[k] - goal)) for goal in (0.75, 0.5)}
    for k in sorted(wanted):
        word = "-".join(str(width) for width in result.widths[k].tolist())
        place = shares[k], float(result.scores[k])
        ax.annotate(
            word, place, (0, -12), textcoords="offset points", ha="center", fontsize=7, color=INK
        )


def _curve(result: PruningCurve, ax: Axes) -> None:
    """Draw the scores of all steps, the chosen one, and what is good enough."""
    shares, scores = result.shares.tolist(), result.scores.tolist()
    ax.plot(shares, scores, "o-", color=BLUE, markersize=3)
    ax.axhline(scores[0] - result.slack, color=FAINT, linewidth=0.9, linestyle=(0, (5, 2)))
    label = f"chosen: {100 * shares[result.chosen]:.3g}% of the weights"
    ax.plot(
        shares[result.chosen],
        scores[result.chosen],
        "o",
        color=VERMILION,
        markersize=7,
        markerfacecolor="none",
        markeredgewidth=1.6,
        label=label,
    )
    low = max(min(scores), scores[0] - 1.2)
    pad = 0.12 * max(scores[0] - low, 0.02)
    ax.set(xlim=(-0.03, 1.05), ylim=(low - pad, max(scores) + pad))
    ax.set(xlabel="fraction of the weights that is left", ylabel=WORDS[result.score])
    quiet_grid(ax)
    ax.legend(loc="lower right")


@painter.register(ExhaustivePruning)
def exhaustive_pruning(result: ExhaustivePruning, ax: Axes) -> None:
    """Draw the best score of any sub-network of each size, and how many sub-networks are good."""
    sizes, scores = result.sizes.tolist(), result.scores.tolist()
    ax.plot(sizes, scores, "o-", color=BLUE, markersize=4)
    ax.axhline(result.start - result.slack, color=FAINT, linewidth=0.9, linestyle=(0, (5, 2)))
    for size, score, good, tried in zip(
        sizes, scores, result.good.tolist(), result.tried.tolist(), strict=True
    ):
        colour = VERMILION if good else INK
        ax.annotate(
            f"{good} of {tried}",
            (size, score),
            (8, -4),
            textcoords="offset points",
            fontsize=7.5,
            color=colour,
        )
    ax.plot(result.width, result.start, "s", color=ORANGE, label="the whole network")
    low = max(min(scores), result.start - 1.2)
    pad = 0.15 * max(result.start - low, 0.02)
    ax.set(xlim=(0.4, result.width + 0.6), ylim=(low - pad, max(*scores, result.start) + pad))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel=f"units kept in {result.layer!r}", ylabel=f"best {WORDS[result.score]}")
    quiet_grid(ax)
    ax.legend(loc="lower right")
