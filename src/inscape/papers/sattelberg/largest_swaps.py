"""Table 3.1 and section 3.5: the swaps of all functions of up to five inputs."""

from collections.abc import Mapping, Sequence
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.published import printed
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate
from inscape.papers.sattelberg._swaps import (
    FAMILIES,
    METRICS,
    by_families,
    by_programmes,
    distribution,
)

PRINTED = {row["n"]: row["max_swaps"] for row in printed("sattelberg", "table-3.1")[:4]}
COUNTS = {1: 2, 2: 4, 4: 222, 5: 616126}
#: Functions that are held beside another member of their class.
PAIRS = 200
MAXIMA = grid(inputs=[1, 2, 3, 4, 5])


def maxima_cell(inputs: int) -> dict[str, Any]:
    """Find the swaps of all classes, of parity, and of some functions and their transforms."""
    import numpy as np

    from inscape.boolean import npn, parity, random, swaps, swaps_many

    numbers = npn.classes(inputs)
    found = swaps_many(numbers, inputs, threads=1).swaps
    drawn = np.array([random(inputs, seed).number for seed in range(PAIRS)], dtype=np.uint64)
    others = npn.canonical_many(drawn, inputs)
    pair = [swaps_many(some, inputs, threads=1).swaps for some in (drawn, others)]
    return {
        "classes": len(numbers),
        "histogram": np.bincount(found).tolist(),
        "largest": numbers[found == found.max()].tolist(),
        "parity": swaps(parity(inputs)).swaps,
        "unequal": int((pair[0] != pair[1]).sum()),
    }


def analyse_maxima(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return maxima and counts by number of inputs."""
    found = {}
    for record in records:
        n, values = record.settings["inputs"], record.values
        found[f"maximum/{n}"] = exact_estimate(len(values["histogram"]) - 1)
        found[f"classes/{n}"] = exact_estimate(values["classes"])
        if n == 4:
            found["largest/4"] = exact_estimate(sum(k in values["largest"] for k in (1785, 7140)))
            found["number/4"] = exact_estimate(len(values["largest"]))
    found["parity"] = exact_estimate(
        sum(r.values["parity"] != r.settings["inputs"] for r in records)
    )
    found["unequal"] = exact_estimate(sum(r.values["unequal"] for r in records))
    return found


def conclude_maxima(records: Sequence[Record]) -> list[str]:
    """Say what five inputs give."""
    said = []
    for record in records:
        if record.settings["inputs"] == 5:
            histogram = record.values["histogram"]
            said.append(
                f"Five inputs have functions with {len(histogram) - 1} swaps and none with more; "
                f"{histogram[-1]} of {record.values['classes']:,} classes have as many."
            )
    return said


def draw_maxima(records: Sequence[Record]) -> Figure:
    """Draw how the classes are spread over swaps, for each number of inputs."""
    from inscape.figures.boolean import swaps_by_inputs
    from inscape.figures.panels import panels

    figure, (ax,) = panels(1, size=(5.6, 3.2))
    swaps_by_inputs({r.settings["inputs"]: r.values["histogram"] for r in records}, ax)
    return figure


TABLE_3_1 = Experiment(
    shows="Table 3.1",
    title="Largest swaps value over all Boolean functions of n inputs",
    smoke=grid(inputs=[1, 2, 3]),
    settings=MAXIMA,
    cell=maxima_cell,
    seconds=lambda settings: 70.0 if settings["inputs"] == 5 else 1.0,
    analyse=analyse_maxima,
    conclude=conclude_maxima,
    draw=draw_maxima,
    claims=claims(
        {
            **{
                f"maximum-{n}: maximum/{n} = {most} ± 0.0": "The largest swaps value of functions "
                f"of {n} inputs is {most}. | n = {n} | largest swaps"
                for n, most in PRINTED.items()
            },
            **{
                f"classes-{n}: classes/{n} = {count} ± 0.0": f"There are {count} NPN classes of "
                f"functions of {n} inputs. | n = {n} | NPN classes"
                for n, count in COUNTS.items()
            },
            "two-classes: number/4 = 2 ± 0.0": "Two classes of four inputs have five swaps. | n = "
            "4 | classes with 5 swaps",
            "which-classes: largest/4 = 2 ± 0.0": "The classes with five swaps are those of 1785 "
            "and 7140. | n = 4 | of 1785 and 7140",
            "parity: parity = 0 ± 0.0": "The parity of n inputs has n swaps. | all n | numbers of "
            "inputs where it has not",
            "invariance: unequal = 0 ± 0.0": "Functions of one NPN class have the same swaps "
            "value (theorem 3.3.1). | all n | functions that differ from their class",
        },
        source="table 3.1 and section 3.3.1",
    ),
    errata=("S2",),
    notes=(
        "The printed list of cases misses orders from four inputs on (S2); here all orders of the "
        "inputs by a linear function are searched. The maxima stay the same.",
        "Five inputs, which the dissertation calls infeasible, are ours; see five-inputs.",
    ),
)
"""Table 3.1: the largest swaps value of functions of 1 to 4 inputs, and of five."""


PARTS = {"swaps": distribution, "families": by_families, "programmes": by_programmes}
FIVE = grid(part=list(PARTS), inputs=[3, 4, 5, 6])
COSTS = {("swaps", 5): 60.0, ("programmes", 4): 40.0, ("programmes", 5): 90.0}


def five_cell(part: str, inputs: int) -> dict[str, Any]:
    """Find the swaps of all classes, of some families, or of a sample by linear programmes."""
    return PARTS[part](inputs)


def five_seconds(settings: Settings) -> float:
    """Guess the time of a part."""
    if settings["part"] == "families" and settings["inputs"] == 6:
        return 150.0
    return COSTS.get((settings["part"], settings["inputs"]), 2.0)


def analyse_five(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return maxima and Kendall's tau with each metric, by number of inputs."""
    found = {}
    for n, values in _of(records, "swaps").items():
        found[f"maximum/{n}"] = exact_estimate(values["maximum"])
        for name in METRICS:
            found[f"tau/{name}/{n}"] = exact_estimate(values["tau"][name])
    return found


def _of(records: Sequence[Record], part: str) -> dict[int, Mapping[str, Any]]:
    mine = {r.settings["inputs"]: r.values for r in records if r.settings["part"] == part}
    return dict(sorted(mine.items()))


def conclude_five(records: Sequence[Record]) -> list[str]:
    """Answer the open questions of section 3.5, as far as the records go."""
    said: list[str] = []
    for n, values in _of(records, "swaps").items():
        said.append(
            f"{n} inputs: of {values['classes']:,} classes "
            f"{', '.join(f'{count:,}' for count in values['histogram'])} have 0, 1, 2, ... swaps; "
            f"weights show it for {values['shown']:,}, and for {values['by_chains']:,} chains of "
            "inputs alone prove that fewer will not do."
        )
        related = ", ".join(f"{name} {values['tau'][name]:+.2f}" for name in METRICS)
        said.append(f"{n} inputs: Kendall's tau of swaps with each metric is {related}.")
    said += _families_said(_of(records, "families"))
    for n, values in _of(records, "programmes").items():
        said.append(
            f"{n} inputs: linear programmes agree for {values['agree']} of {sum(values['tried'])} "
            f"classes ({values['programmes']:,} programmes, {values['unproved']} without a proof "
            "in rational numbers)."
        )
    return said


def _families_said(found: Mapping[int, Mapping[str, Any]]) -> list[str]:
    said = []
    for name in FAMILIES:
        most = [f"{len(values['families'][name]) - 1} ({n})" for n, values in found.items()]
        if most:
            words = name if name == "parities" else f"{name.replace('_', '-')} functions"
            said.append(f"Most swaps of {words} (number of inputs): {', '.join(most)}.")
    return said


def draw_five(records: Sequence[Record]) -> Figure:
    """Draw the distribution of swaps, the families beside it, and the other metrics."""
    from inscape.figures.boolean import families_by_inputs, metric_by_swaps, swaps_by_inputs
    from inscape.figures.panels import panels

    swaps, families = _of(records, "swaps"), _of(records, "families")
    figure, axes = panels(2 + len(METRICS), columns=3, size=(3.4, 2.7))
    swaps_by_inputs({n: values["histogram"] for n, values in swaps.items()}, axes[0])
    axes[0].set_title("share of the NPN classes")
    largest = {n: values["maximum"] for n, values in swaps.items()}
    families_by_inputs({n: values["families"] for n, values in families.items()}, largest, axes[1])
    axes[1].set_title("most swaps in a family")
    last = max(swaps)
    for ax, name in zip(axes[2:], METRICS, strict=True):
        metric_by_swaps(swaps[last]["spread"][name], name, ax)
        ax.set_title(f"{last} inputs: tau = {swaps[last]['tau'][name]:+.2f}")
    return figure


FIVE_INPUTS = Experiment(
    shows="Section 3.5, open questions",
    title="Swaps of all Boolean functions of five inputs",
    smoke=grid(part=list(PARTS), inputs=[2, 3]),
    settings=FIVE,
    cell=five_cell,
    keeps=lambda settings: bool(settings["part"] == "families" or settings["inputs"] <= 5),
    seconds=five_seconds,
    analyse=analyse_five,
    conclude=conclude_five,
    draw=draw_five,
    errata=("S2",),
    notes=(
        "A result of ours: the dissertation stops at four inputs and calls five infeasible. It "
        "makes no claims that could be held against these numbers, so that there are none here.",
        "The second way knows nothing of the orders of the first: that a class has no fewer swaps "
        "is shown by linear programmes, each refuted in rational numbers; all classes of three "
        "inputs and samples of four and five are decided so.",
        "Almost all functions of many inputs have nearly 2^(n-1) swaps: there are at most "
        "2^(2 n^2) orders, and few functions change fewer than 2^(n-1) - n 2^(n/2) times in any "
        "of them. This is more than the printed Omega(2^n / n).",
        "Symmetric functions have at most n swaps, by equal weights; threshold functions one.",
    ),
)
"""Five inputs: the swaps of all 616,126 classes, and what they say of section 3.5's questions."""
