"""Tables 4.2 and 4.3: how often three units learn to enclose a circle, by settings of training."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import sqrt

from inscape.lab.claims import claims
from inscape.lab.experiment import Axes, Estimate, Experiment, Figure, Panel
from inscape.lab.grids import grid
from inscape.lab.published import printed
from inscape.lab.records import Record
from inscape.lab.statistics import paired_difference, proportion_estimate
from inscape.papers.sattelberg._disc import ENOUGH, LABELS, SHAPES, cell, seconds

#: loss, leak, batch, normalise.
Row = tuple[str, float, int, bool]
#: The choices that claims are judged with.
JUDGED = {"init": "pytorch", "one": "circle"}
FACTORS: dict[str, tuple[str | float | int | bool, ...]] = {
    "loss": ("MSE", "BCE"),
    "leak": (0.0, 0.01, 0.1),
    "batch": (10, 100, 1000),
    "normalise": (True, False),
}
_COUNTS = {
    tuple(row[name] for name in FACTORS): row["successes"]
    for row in printed("sattelberg", "table-4.2")
}
#: Successes of 100 as printed, in the order of the factors.
PRINTED: dict[Row, int] = {row: _COUNTS[row] for row in product(*FACTORS.values())}  # type: ignore[misc]
ROWS: tuple[Row, ...] = tuple(PRINTED)
Z = 1.959964


def name(row: Row) -> str:
    """Return a row as text."""
    loss, leak, batch, normalise = row
    return f"{loss}, leak {leak:g}, batch {batch}, {'normalised' if normalise else 'as drawn'}"


def printed_mean(factor: str, level: object) -> float:
    """Return the mean success of all rows with one level of a factor, as printed."""
    chosen = [PRINTED[row] / 100 for row in ROWS if _has(row, factor, level)]
    return sum(chosen) / len(chosen)


def printed_mean_se(factor: str, level: object) -> float:
    """Return the spread that a mean of printed counts has as a draw."""
    chosen = [PRINTED[row] / 100 for row in ROWS if _has(row, factor, level)]
    return sqrt(sum(p * (1 - p) / 100 for p in chosen)) / len(chosen)


def _has(row: Row, factor: str, level: object) -> bool:
    return row[list(FACTORS).index(factor)] == level


def wilson(successes: int, n: int) -> Estimate:
    """Return a fraction with Wilson's interval, and a standard error that is never zero."""
    return replace(proportion_estimate(successes, n), se=sqrt(variance(successes, n)))


def variance(successes: int, n: int) -> float:
    """Return the variance of a share, with one success and one failure more (Agresti)."""
    p = (successes + 1) / (n + 2)
    return p * (1 - p) / n


def rows_of(records: Sequence[Record], **choice: str) -> dict[Row, Record]:
    """Return the records of one choice of initialisation and labels."""
    wanted = JUDGED | choice
    found = {}
    for record in records:
        s = record.settings
        if all(s[key] == value for key, value in wanted.items()):
            found[s["loss"], s["leak"], s["batch"], s["normalise"]] = record
    return found


def choices(records: Sequence[Record]) -> list[dict[str, str]]:
    """Return the choices that were run, the judged one first."""
    found = {(r.settings["init"], r.settings["one"]) for r in records}
    order = sorted(found, key=lambda pair: (pair != tuple(JUDGED.values()), pair))
    return [{"init": init, "one": one} for init, one in order]


def successes(record: Record, when: str = "best") -> tuple[int, int]:
    """Return how many networks succeeded, at some epoch (best) or the last (end), and of how many.

    The rule is 95% of the points or more.
    """
    found = record.values[when]
    return sum(k >= ENOUGH * record.settings["points"] for k in found), len(found)


def mean(cells: Sequence[tuple[int, int]], signs: Sequence[float] | None = None) -> Estimate:
    """Return the mean share of cells, or their weighted sum, with a normal interval."""
    weights = signs or [1 / len(cells)] * len(cells)
    value = sum(w * s / n for w, (s, n) in zip(weights, cells, strict=True))
    se = sqrt(sum(w * w * variance(s, n) for w, (s, n) in zip(weights, cells, strict=True)))
    return Estimate(
        value=value,
        low=value - Z * se,
        high=value + Z * se,
        se=se,
        n=sum(n for _, n in cells),
        method="binomial spread of every cell",
        interval="binomial",
    )


def analyse(records: Sequence[Record], when: str = "best", **choice: str) -> dict[str, Estimate]:
    """Return rates, their means for every level, the differences of these, and extremes."""
    rows = {row: successes(r, when) for row, r in rows_of(records, **choice).items()}
    found = {name(row): wilson(*pair) for row, pair in rows.items()}
    if set(rows) == set(ROWS):
        found |= _means(rows) | _extremes(rows)
    return found


def _means(rows: dict[Row, tuple[int, int]]) -> dict[str, Estimate]:
    found = {}
    for factor, levels in FACTORS.items():
        for level in levels:
            chosen = [rows[row] for row in ROWS if _has(row, factor, level)]
            found[f"{factor} {level}"] = mean(chosen)
        for one, other in product(levels, levels):
            if one != other:
                sides = [
                    [s / n for row in ROWS if _has(row, factor, level) for s, n in [rows[row]]]
                    for level in (one, other)
                ]
                # Over settings: the binomial spread alone passes a third of permuted labels.
                found[f"{factor} {one} - {other}"] = paired_difference(*sides)
    return found


def _extremes(rows: dict[Row, tuple[int, int]]) -> dict[str, Estimate]:
    """Return the best rate with batch 1000 or leak 0, and the lowest best of all other levels."""
    best = {
        (factor, level): max(
            (rows[row] for row in ROWS if _has(row, factor, level)), key=lambda pair: pair[0]
        )
        for factor, levels in FACTORS.items()
        for level in levels
    }
    low = [best["leak", 0.0], best["batch", 1000]]
    rest = [pair for key, pair in best.items() if key not in (("leak", 0.0), ("batch", 1000))]
    return {
        "best of the weak": wilson(*max(low, key=lambda pair: pair[0])),
        "least best of the others": wilson(*min(rest, key=lambda pair: pair[0])),
    }


def agreeing(records: Sequence[Record], when: str = "best", **choice: str) -> tuple[int, int]:
    """Return how many printed counts are within two standard errors of ours, and of how many."""
    rows = {row: successes(r, when) for row, r in rows_of(records, **choice).items()}
    close = 0
    for row, (count, n) in rows.items():
        p = PRINTED[row] / 100
        close += abs(count / n - p) <= 2 * sqrt(variance(count, n) + p * (1 - p) / 100)
    return close, len(rows)


HYPER: Axes = {key: list(levels) for key, levels in FACTORS.items()}
ONCE = grid(networks=100, epochs=1000, points=1000)
SMALL = grid(networks=4, epochs=3, points=40)
#: Best rate that the text calls high: the printed best with leak 0 or batch 1000 is 0.69, the
#: lowest printed best of any other level 0.82.
HIGH = 0.75


def conclude_rates(records: Sequence[Record]) -> list[str]:
    """Say what other readings of the text give, and which shapes the networks reached."""
    said = []
    for choice in choices(records):
        rows = rows_of(records, **choice)
        for when, word in (("best", "at some epoch"), ("end", "at the last epoch")):
            close, n = agreeing(records, when, **choice)
            rate = mean([successes(record, when) for record in rows.values()])
            theirs = sum(PRINTED[row] for row in rows) / 100 / n
            judged = ", the choice that is judged" if _judged(choice, when) else ""
            said.append(
                f"{_words(choice)}, success {word}{judged}: {rate.value:.0%} succeed (95% "
                f"interval {max(0, rate.low):.0%} to {rate.high:.0%}; printed {theirs:.0%} for "
                f"these {n} rows), and {close} of {n} printed counts agree within two standard "
                "errors."
            )
    return said + _shapes_said(records)


def _judged(choice: dict[str, str], when: str) -> bool:
    return choice == JUDGED and when == "best"


def _words(choice: dict[str, str]) -> str:
    label = {
        "circle": "the circle labelled 1",
        "annulus": "the annulus labelled 1",
        "signs": "labels -1 and +1 (MSE only)",
    }[choice["one"]]
    return f"Weights of {choice['init']}, {label}"


def _shapes_said(records: Sequence[Record]) -> list[str]:
    rows = rows_of(records).values()
    every, good = (
        {shape: sum(r.values[key][shape] for r in rows) for shape in SHAPES}
        for key in ("shapes", "shapes_of_successes")
    )
    total, succeeded = sum(every.values()), sum(good.values())
    if not total:
        return []
    diverged = sum(r.values["diverged"] for r in rows)
    return [
        f"At the end {every['hyperoctahedron']} of {total} networks enclose a quadrilateral, "
        f"{every['expanded simplex']} a hexagon and {every['open']} nothing; of the {succeeded} "
        f"that succeed at the last epoch {good['hyperoctahedron']} have a quadrilateral, "
        f"{good['expanded simplex']} a hexagon and {good['open']} no closed region.",
        f"{diverged} of {total} networks diverged.",
    ]


def draw_rates(records: Sequence[Record]) -> Figure:
    """Draw printed counts against ours, for success at some epoch and at the last."""
    from inscape.figures.panels import panels

    rows = rows_of(records)
    figure, axes = panels(2, columns=2, size=(3.6, 4.9))
    order = sorted(rows, key=lambda row: PRINTED[row])
    for ax, when, title in zip(
        axes, ("best", "end"), ("success at some epoch", "success at the last epoch"), strict=True
    ):
        for at, row in enumerate(order):
            _row(ax, at, wilson(*successes(rows[row], when)), PRINTED[row])
        ax.set(title=title, xlim=(0, 100), ylim=(-0.7, len(order) - 0.3), xlabel="successes of 100")
        words = [name(row) for row in order] if ax is axes[0] else [""] * len(order)
        ax.set_yticks(range(len(order)), words, fontsize=5.5)
    return figure


def _row(ax: Panel, at: int, ours: object, printed: int) -> None:
    from inscape.figures.style import BLUE, RULE, VERMILION
    from inscape.lab.experiment import Estimate

    assert isinstance(ours, Estimate)
    ax.axhline(at, color=RULE, lw=0.3, zorder=0)
    ax.plot([100 * ours.low, 100 * ours.high], [at, at], color=BLUE, lw=1.2)
    labels = ("ours, 95%", "printed") if at == 0 else ("", "")
    ax.plot(100 * ours.value, at, "o", color=BLUE, ms=3, label=labels[0])
    ax.plot(printed, at, "D", color=VERMILION, ms=3, label=labels[1])
    if at == 0:
        ax.legend(loc="lower right", fontsize=6.5)


TABLE_4_2 = Experiment(
    shows="Table 4.2",
    title="Networks of 100 that tell a circle from an annulus, for 36 settings of training",
    smoke=grid(init="pytorch", one="circle", **HYPER, **SMALL),
    laptop=grid(init="pytorch", one="circle", **HYPER, **ONCE),
    paper=grid(init=["pytorch", "he_normal", "glorot_uniform"], one=list(LABELS), **HYPER, **ONCE),
    departures={
        "smoke": ("Four networks of each setting, three epochs, 40 points.",),
        "laptop": ("Only the initialisation and the labels that claims are judged with.",),
    },
    keeps=lambda settings: not (settings["loss"] == "BCE" and settings["one"] == "signs"),
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude_rates,
    draw=draw_rates,
    claims=claims(
        {
            **{
                (
                    f"{name(row)}: {name(row)} = {PRINTED[row] / 100} "
                    f"({(PRINTED[row] / 100 * (1 - PRINTED[row] / 100) / 100) ** 0.5})"
                ): f"{PRINTED[row]} of 100 networks succeed with {name(row)}. | {name(row)} | "
                "successes | printed table; binomial spread of 100 networks"
                for row in ROWS
            },
            **{
                f"leak-{leak:g}-helps: leak {leak} - 0.0 > 0": f"A leak of {leak:g} improves the "
                "performance over a ReLU."
                for leak in (0.01, 0.1)
            },
            "cross-entropy-helps: loss BCE - MSE > 0": "Binary cross entropy beats the mean "
            "squared error on average.",
            "normalising-helps: normalise True - False > 0": "Normalising the inputs improves the "
            "performance.",
            **{
                f"batch-{small}-beats-{large}: batch {small} - {large} > 0": f"Batches of {small} "
                f"do better than batches of {large}."
                for small, large in ((10, 100), (100, 1000))
            },
            f"weak-never-high: best of the weak < {HIGH}": "No setting with a leak of zero or "
            "batches of 1000 has a high performance. | Wilson's interval of the best such row | "
            "section 4.2.1; the best printed one is 0.69",
            f"others-once-high: least best of the others > {HIGH}": "Every other choice has a "
            "high performance in at least one full setting. | Wilson's interval of the lowest of "
            "the best rows | section 4.2.1; the lowest printed one is 0.82",
        },
        source="section 4.2.1",
        test="difference of mean rates, binomial spread",
    ),
    errata=("S15",),
    notes=(
        "Radii are 0.5, 0.71 and 1 as printed; they make the annulus twice as large as the circle, "
        "not equal to it (S15).",
        "The initialisation is not printed. Claims are judged with PyTorch's default, since all "
        "experiments use PyTorch; normal weights after He and uniform ones after Glorot, both with "
        "zero biases, are run beside it at paper scale.",
        "Which part is labelled 1 is not printed, nor whether the squared error has labels 0 and 1 "
        "or -1 and +1. Claims are judged with the circle labelled 1 and the annulus 0. For the "
        "cross entropy, and for labels -1 and +1, swapping both changes nothing in law, since the "
        "output weights are drawn symmetrically.",
        "A network counts as a success if 95% of its points are right at the end of some epoch, "
        "since training ran up to 1,000 epochs; success at the last epoch is told beside it.",
        "Each network has its own 1000 points.",
    ),
)
"""Table 4.2: how often three units learn to enclose a circle, for 36 settings of training."""


#: Levels of each factor, the best printed mean first.
ORDERS = {
    "loss": ("BCE", "MSE"),
    "normalise": (True, False),
    "leak": (0.01, 0.1, 0.0),
    "batch": (10, 100, 1000),
}


def conclude_means(records: Sequence[Record]) -> list[str]:
    """Say how the orders come out under the other readings of the text."""
    said = []
    for choice in choices(records):
        if choice["one"] == "signs":  # half of the table
            continue
        for when, word in (("best", "some epoch"), ("end", "the last epoch")):
            found = analyse(records, when, **choice)
            if "loss BCE" not in found:
                continue
            words = "; ".join(f"{factor} {_order(found, factor)}" for factor in FACTORS)
            said.append(
                f"With weights of {choice['init']}, the {choice['one']} labelled 1 and success at "
                f"{word}, mean successes are {words}."
            )
    return said


def _order(found: dict[str, Estimate], factor: str) -> str:
    means = {level: found[f"{factor} {level}"].value for level in FACTORS[factor]}
    ranked = sorted(means, key=lambda level: -means[level])
    return " > ".join(f"{level} ({100 * means[level]:.0f})" for level in ranked)


def draw_means(records: Sequence[Record]) -> Figure:
    """Draw the mean success of every level, ours with its interval beside the printed one."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, VERMILION, quiet_grid

    found = analyse(records)
    figure, axes = panels(4, columns=4, size=(1.7, 2.4))
    for ax, (factor, levels) in zip(axes, FACTORS.items(), strict=True):
        for at, level in enumerate(levels):
            ours = found.get(f"{factor} {level}")
            if ours is not None:
                ax.plot([at, at], [100 * ours.low, 100 * ours.high], color=BLUE, lw=1.5)
                ax.plot(at, 100 * ours.value, "o", color=BLUE, ms=5, label="ours"[: 4 * (not at)])
            theirs = 100 * printed_mean(factor, level)
            ax.plot(at, theirs, "D", color=VERMILION, ms=4, label="printed"[: 7 * (not at)])
        ax.set(title=factor, ylim=(0, 100), xlim=(-0.5, len(levels) - 0.5))
        ax.set_xticks(range(len(levels)), [str(level) for level in levels])
        quiet_grid(ax)
    axes[0].set_ylabel("mean successes of 100")
    axes[0].legend(loc="lower right", fontsize=7)
    return figure


TABLE_4_3 = Experiment(
    shows="Table 4.3",
    title="Mean successes over all other settings, for every level of each setting",
    same_as="table-4.2",
    analyse=analyse,
    conclude=conclude_means,
    draw=draw_means,
    claims=claims(
        {
            **{
                (
                    f"{factor}-{level}: {factor} {level} = {printed_mean(factor, level)} "
                    f"({printed_mean_se(factor, level)})"
                ): f"With {factor} {level} the mean is {100 * printed_mean(factor, level):.1f} of "
                f"100. | {factor} {level} | rate"
                for factor, levels in FACTORS.items()
                for level in levels
            },
            **{
                f"{factor}-{better}-before-{worse}: {factor} {better} - {worse} > 0": f"{factor} "
                f"{better} has a higher mean than {factor} {worse}. | | printed table 4.3"
                for factor, levels in ORDERS.items()
                for better, worse in pairwise(levels)
            },
        },
        source="means of the printed table 4.2, which table 4.3 rounds; binomial spread",
        test="difference of mean rates, binomial spread",
    ),
    errata=("S15",),
    notes=("Runs, choices and rules are those of table 4.2.",),
)
"""Table 4.3: leaks, cross entropy, normalised inputs and small batches each help to enclose."""
