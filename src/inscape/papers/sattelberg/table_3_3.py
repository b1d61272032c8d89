"""Table 3.3: the ten four-input problems that are hardest to learn over all sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel
from inscape.lab.published import printed
from inscape.lab.records import Record
from inscape.lab.statistics import resampled
from inscape.papers.sattelberg._difficulty import (
    DRAWS,
    LEAKY,
    NAMES,
    RELU,
    Counts,
    counted,
    hardest,
    known,
    rank,
    ranked,
    redrawing,
)
from inscape.papers.sattelberg._npn_metrics import INPUTS, PARITY, classes, tables

TEN = 10
#: Number of the function and count, as printed, from the hardest on.
PRINTED: Mapping[float, Mapping[int, int]] = {
    leak: {
        row["decimal"]: row["count"]
        for row in reversed(printed("sattelberg", "table-3.3"))
        if row["activation"] == name
    }
    for leak, name in ((RELU, "ReLU"), (LEAKY, "leaky"))
}


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the place of parity, how steep the list falls, and who is on it."""
    counts = counted(records)
    found: dict[str, Estimate | None] = {}
    for leak, name in ((RELU, "relu"), (LEAKY, "leaky")):
        if leak in counts:
            found |= {f"{key}/{name}": one for key, one in _of_one(counts[leak], leak).items()}
    if len(counts) == len(NAMES):
        found["vanishing"] = _vanishing(counts)
    return known(found)


def _of_one(counts: Counts, leak: float) -> dict[str, Estimate]:
    parity = classes().index(PARITY)

    def hard(successes: Any) -> Any:
        return hardest(successes, counts.trials)

    return {
        "rank of parity": redrawing(counts, lambda s: rank(hard(s), parity)),
        "count of parity": redrawing(counts, lambda s: hard(s)[..., parity]),
        "second": redrawing(counts, lambda s: after_parity(hard(s), parity)),
        "shared": resampled(
            _shared(hard(counts.successes), leak),
            (_shared(hard(drawn), leak) for drawn in counts.redrawn),
            counts.trials,
        ),
    }


def _shared(hard: Any, leak: float) -> float:
    """Return how many printed classes are among ours, with all that tie with the tenth."""
    return float(len({classes()[k] for k in at_least_tenth(hard)} & set(PRINTED[leak])))


def _vanishing(counts: Mapping[float, Counts]) -> Estimate:
    """Return how many problems are on the list without a leak alone, over redrawn counts."""
    drawn = (
        {leak: replace(one, successes=one.redrawn[k]) for leak, one in counts.items()}
        for k in range(DRAWS)
    )
    again = (float(len(vanishing(one))) for one in drawn)
    return resampled(float(len(vanishing(counts))), again, counts[RELU].trials)


def after_parity(counts: Any, parity: int) -> Any:
    """Return the largest count of the others, as a share of parity's."""
    others = np.delete(counts, parity, axis=-1).max(-1)
    return others / np.maximum(counts[..., parity], 1)


def at_least_tenth(counts: Any) -> list[int]:
    """Return the classes with a count no lower than the tenth largest; none of count 0."""
    tenth = max(1, np.sort(counts)[-TEN])
    return [int(k) for k in np.nonzero(counts >= tenth)[0]]


def ten(counts: Counts) -> list[int]:
    """Return the ten hardest classes, those with equal counts by their mean success.

    They are fewer where fewer are hardest of any size.
    """
    hard = hardest(counts.successes, counts.trials)
    return [int(k) for k in ranked(hard, counts.rates)[:TEN] if hard[k]]


def vanishing(counts: Mapping[float, Counts]) -> list[int]:
    """Return the hard ReLU problems that are unbalanced and not hard with a leak."""
    half = 2 ** (INPUTS - 1)
    gone = set(ten(counts[RELU])) - set(ten(counts[LEAKY]))
    return sorted(classes()[k] for k in gone if tables()[k].sum() != half)


def conclude(records: Sequence[Record]) -> list[str]:
    """Say who is hardest, and how many sizes tell nothing."""
    said = []
    counts = counted(records)
    for leak, one in counts.items():
        hard = hardest(one.successes, one.trials)
        named = ", ".join(f"{classes()[k]} ({hard[k]})" for k in ten(one))
        spread = one.successes.max(1) - one.successes.min(1)
        equal, name = int((spread <= 0.01 * one.trials).sum()), NAMES[leak]
        said.append(
            f"{name[:1].upper()}{name[1:]}: {named}; at {equal} of {len(one.sizes)} sizes all "
            "problems are within one point."
        )
    if len(counts) == len(NAMES):
        gone = ", ".join(map(str, vanishing(counts))) or "none"
        said.append(f"Unbalanced, hard for ReLU, and not hard with a leak: {gone}.")
    return said


def draw(records: Sequence[Record]) -> Figure:
    """Draw the ten hardest with their truth tables, and the counts: ours and the printed."""
    from inscape.figures.panels import panels

    counts = counted(records)
    figure, axes = panels(len(counts), columns=2, size=(4.4, 3.4))
    for ax, (leak, one) in zip(axes, counts.items(), strict=True):
        _list(ax, one, PRINTED[leak])
        ax.set_title(NAMES[leak])
    axes[-1].legend(loc="lower right", fontsize=7.5)
    return figure


def _list(ax: Panel, counts: Counts, printed: Mapping[int, int]) -> None:
    """Draw one row for each of ten problems: sixteen squares, a bar, and a printed count."""
    from inscape.figures.style import BLUE, FAINT, VERMILION

    hard = hardest(counts.successes, counts.trials)
    chosen = ten(counts)
    step = max(hard.max(), *printed.values()) / 30
    for row, k in enumerate(chosen):
        ax.barh(row, hard[k], height=0.62, color=BLUE, label="ours" if row == 0 else None)
        for place, bit in enumerate(tables()[k].tolist()):
            x = -step * (17.5 - place - 0.6 * (place // 8))
            face = FAINT if bit else "none"
            ax.plot(x, row, "s", ms=3.4, mfc=face, mec=FAINT, mew=0.6, clip_on=False)
    rows = [(row, printed[classes()[k]]) for row, k in enumerate(chosen) if classes()[k] in printed]
    if rows:
        ax.plot(*zip(*[(n, r) for r, n in rows], strict=True), "D", color=VERMILION, ms=4.5)
    ax.plot([], [], "D", color=VERMILION, ms=4.5, label="printed, if among the ten")
    ax.set_yticks(range(len(chosen)), [str(classes()[k]) for k in chosen])
    ax.set(xlabel="sizes at which it is among the hardest", xlim=(-18 * step, None))
    ax.set_xticks([tick for tick in ax.get_xticks() if tick >= 0 and tick == int(tick)])
    ax.invert_yaxis()
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _activation(leak: float) -> str:
    return "relu" if leak == RELU else "leaky"


EXPERIMENT = Experiment(
    shows="Table 3.3",
    title="The ten hardest four-input problems over all sizes of network",
    same_as="figure-3.5",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                f"parity-{_activation(leak)}: rank of parity/{_activation(leak)} = 1 ± 0": "Parity "
                f"(27030) is the hardest problem for {NAMES[leak]}. | {NAMES[leak]}, 27030 | place "
                "by count"
                for leak in NAMES
            },
            **{
                f"count-{_activation(leak)}: count of parity/{_activation(leak)} = {count} ± "
                "4": "Parity "
                f"is among the hardest at {count} of 45 sizes for {NAMES[leak]}. | {NAMES[leak]}, "
                "27030 | count | table 3.3; the tolerance is ours"
                for leak, count in ((RELU, 19), (LEAKY, 12))
            },
            "drop-off: second/leaky < 0.5": "Leaky ReLU has a significant drop-off after parity: "
            "the next problem counts at most half as often (printed: 5 and 12). | | section "
            "3.4.2, table 3.3; the bound is ours",
            "vanishing: vanishing > 2.5": "Many of the hard problems for ReLU do not show up for "
            "leaky ReLU and are unbalanced (three or more of ten). | counted in the two lists of "
            "ten | section 3.4.2; the bound is ours",
            **{
                f"list-{_activation(leak)}: shared/{_activation(leak)} > 4.5": "At least half of "
                f"the ten printed problems are hardest for {NAMES[leak]}. | printed problems with "
                "a count no lower than our tenth largest | table 3.3; the bound is ours"
                for leak in NAMES
            },
        },
        source="table 3.3",
        test="largest count of the others over parity's, counts redrawn from Jeffreys' laws",
    ),
    notes=(
        "A size counts for each problem whose success rate is within one percentage point of the "
        "lowest. Sizes at which all 222 problems are within one point are left out: by the printed "
        "rule they would count for every problem, and the printed list knows counts of 2.",
        "Squares are the truth table, from all inputs false to all true; filled ones are true. "
        "Problems with equal counts stand in order of their mean success.",
    ),
)
