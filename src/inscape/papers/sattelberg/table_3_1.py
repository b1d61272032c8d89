"""Table 3.1: the largest swaps value of functions of 1 to 4 inputs, and of five."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Settings, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED = {1: 1, 2: 2, 3: 3, 4: 5}
COUNTS = {1: 2, 2: 4, 4: 222, 5: 616126}
#: Functions that are held beside another member of their class.
PAIRS = 200
WHOLE: Axes = {"inputs": [1, 2, 3, 4, 5]}


def cell(inputs: int) -> dict[str, Any]:
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


def seconds(settings: Settings) -> float:
    """Guess the time: five inputs have 600 thousand classes."""
    return 70.0 if settings["inputs"] == 5 else 1.0


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
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


def conclude(records: Sequence[Record]) -> list[str]:
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


def draw(records: Sequence[Record]) -> "Figure":
    """Draw how the classes are spread over swaps, for each number of inputs."""
    from inscape.figures.boolean import swaps_by_inputs
    from inscape.figures.panels import panels

    figure, (ax,) = panels(1, size=(5.6, 3.2))
    swaps_by_inputs({r.settings["inputs"]: r.values["histogram"] for r in records}, ax)
    return figure


def _number(name: str, says: str, of: str, published: float, at: tuple[str, str]) -> Value:
    return Value(
        name=name,
        says=says,
        of=of,
        published=published,
        tolerance=0.0,
        at=at,
        source="table 3.1 and section 3.3.1",
    )


EXPERIMENT = Experiment(
    shows="Table 3.1",
    title="Largest swaps value over all Boolean functions of n inputs",
    smoke={"inputs": [1, 2, 3]},
    laptop=WHOLE,
    paper=WHOLE,
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        *(
            _number(
                f"maximum-{n}",
                f"The largest swaps value of functions of {n} inputs is {most}.",
                f"maximum/{n}",
                most,
                (f"n = {n}", "largest swaps"),
            )
            for n, most in PRINTED.items()
        ),
        *(
            _number(
                f"classes-{n}",
                f"There are {count} NPN classes of functions of {n} inputs.",
                f"classes/{n}",
                count,
                (f"n = {n}", "NPN classes"),
            )
            for n, count in COUNTS.items()
        ),
        _number(
            "two-classes",
            "Two classes of four inputs have five swaps.",
            "number/4",
            2,
            ("n = 4", "classes with 5 swaps"),
        ),
        _number(
            "which-classes",
            "The classes with five swaps are those of 1785 and 7140.",
            "largest/4",
            2,
            ("n = 4", "of 1785 and 7140"),
        ),
        _number(
            "parity",
            "The parity of n inputs has n swaps.",
            "parity",
            0,
            ("all n", "numbers of inputs where it has not"),
        ),
        _number(
            "invariance",
            "Functions of one NPN class have the same swaps value (theorem 3.3.1).",
            "unequal",
            0,
            ("all n", "functions that differ from their class"),
        ),
    ),
    errata=("S2",),
    notes=(
        "The printed list of cases misses orders from four inputs on (S2); here all orders of the "
        "inputs by a linear function are searched. The maxima stay the same.",
        "Five inputs, which the dissertation calls infeasible, are ours; see five-inputs.",
    ),
)
