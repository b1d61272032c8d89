"""Table 3.5: deep ReLU networks on parity, pruned node by node to the conjectured minimum."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.published import printed
from inscape.lab.records import Record
from inscape.lab.statistics import (
    proportion_estimate,
    proportion_of,
    resampled_statistic,
    unrepeated,
)
from inscape.papers.sattelberg._parity_pruning import SETTINGS_NOTE

#: Printed hidden widths.
PRINTED: dict[int, tuple[tuple[int, ...], ...]] = {
    row["n"]: tuple(tuple(map(int, net.split("-")[1:-1])) for net in row["best layer sizes"])
    for row in reversed(printed("sattelberg", "table-3.5"))
}
#: Networks to begin with, digits first; how many are trained.
STARTS = {f"{n}: {5 * n}x5": 4 for n in PRINTED}
SMALL, DIRECT = "4: 15x4", "4: 2x2"
#: Networks of width 2 and depth 2 that are trained as they are.
TRIALS = 2000
GRID = grid(start=[*STARTS, SMALL, DIRECT], training=range(20), prunings=10, epochs=4000)
Shape = tuple[int, ...]


def parts(start: str) -> tuple[int, int, int]:
    """Return digits, width and depth from the name of a start."""
    digits, _, size = start.partition(": ")
    width, _, depth = size.partition("x")
    return int(digits), int(width), int(depth)


def keeps(settings: Settings) -> bool:
    """Tell whether a cell exists: four trainings of each start, more of the small one."""
    most = {**STARTS, SMALL: 20, DIRECT: 1}
    return bool(settings["training"] < most[settings["start"]])


def cell(start: str, training: int, prunings: int, epochs: int) -> dict[str, Any]:
    """Train one network and prune it several times; or only train very small ones."""
    from inscape.papers.sattelberg import _deep_pruning as deep
    from inscape.papers.sattelberg import _parity_pruning as parity
    from inscape.papers.sattelberg._seeds import own_seed

    digits, width, depth = parts(start)
    sizes = (digits, *[width] * depth, 1)
    if start == DIRECT:
        seeds = parity.seeds(width, digits, TRIALS if epochs > 1000 else 20, depth)
        run = parity.fitted(sizes, digits, epochs=epochs, seeds=seeds)
        return {"solved": int(run.stopped.sum()), "trials": len(seeds), "shapes": []}
    seed = parity.seeds(width, digits, training + 1, depth)[-1:]
    run = parity.fitted(sizes, digits, epochs=epochs, seeds=seed, enough=deep.ENOUGH)
    if int(run.right[0]) < 2**digits:
        return {"solved": 0, "trials": 1, "shapes": []}
    layers = deep.unpacked(run.weights[0].numpy(), sizes)
    shapes = [
        list(deep.pruned(layers, digits, epochs, own_seed(digits, width, depth, training, k)))
        for k in range(prunings)
    ]
    return {"solved": 1, "trials": 1, "shapes": shapes}


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: fine-tuning of all networks with one node less."""
    digits, width, depth = parts(settings["start"])
    if settings["start"] == DIRECT:
        return 10.0
    cost = {2: 0.4, 3: 1.0, 4: 2.5, 5: 8.0, 6: 25.0}[digits] * width * depth / (25 * digits)
    return float(1 + settings["prunings"] * cost * min(1.0, settings["epochs"] / 1000))


def shapes(records: Sequence[Record]) -> dict[str, Counter[Shape]]:
    """Return how often each shape was the end, for each start."""
    found: dict[str, Counter[Shape]] = {}
    for record in records:
        ends = [tuple(shape) for shape in record.values["shapes"]]
        found.setdefault(record.settings["start"], Counter()).update(ends)
    return found


def at_least_as_small(shape: Shape, other: Shape) -> bool:
    """Tell whether a shape has no more layers than another, and nowhere more units.

    Layers may be left out of the other one: 3 fits into 2-3, and 2-2 into 2-2-2.
    """
    if not shape:
        return True
    return any(
        shape[0] <= width and at_least_as_small(shape[1:], other[k + 1 :])
        for k, width in enumerate(other)
    )


def reaches(digits: int, found: Counter[Shape]) -> bool:
    """Tell whether some pruning ended at a printed shape, or within one."""
    return any(at_least_as_small(shape, goal) for shape in found for goal in PRINTED[digits])


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the fewest units left, which printed shapes are reached, and the rates of the text."""
    ends = {parts(start)[0]: found for start, found in shapes(records).items() if start in STARTS}
    ends = {digits: found for digits, found in ends.items() if found}
    results = {
        f"units/{n}": resampled_statistic([sum(shape) for shape in found.elements()], min)
        for n, found in ends.items()
    }
    if ends:
        reached = [reaches(digits, found) for digits, found in ends.items()]
        results["reached"] = unrepeated(sum(reached) / len(reached), "one set of prunings")
    single = [len(shape) == 1 for n, found in ends.items() if n > 3 for shape in found.elements()]
    if single:
        results["single"] = proportion_of(single)
    small = [r.values for r in records if r.settings["start"] == SMALL]
    if small:
        results["small solves"] = proportion_of([bool(values["solved"]) for values in small])
        results["small reaches"] = proportion_of([_two_by_two(values) for values in small])
    for record in records:
        if record.settings["start"] == DIRECT:
            solved, trials = record.values["solved"], record.values["trials"]
            results["direct"] = proportion_estimate(solved, trials)
    return results


def _two_by_two(values: Mapping[str, Any]) -> bool:
    return any(at_least_as_small(tuple(shape), (2, 2)) for shape in values["shapes"])


def conclude(records: Sequence[Record]) -> list[str]:
    """Say which shapes were found, and which are smaller than the printed ones."""
    said = []
    for start, found in shapes(records).items():
        if start not in STARTS or not found:
            continue
        digits = parts(start)[0]
        least = min(sum(shape) for shape in found)
        best = [named(digits, shape) for shape in sorted(found) if sum(shape) == least]
        hits = sum(
            n
            for shape, n in found.items()
            if any(at_least_as_small(shape, goal) for goal in PRINTED[digits])
        )
        said.append(
            f"{digits}-parity: {hits} of {found.total()} prunings end at a printed shape or within "
            f"one; the fewest hidden units left are {least} ({' or '.join(best)})."
        )
    return said


def named(digits: int, shape: Shape) -> str:
    """Return a shape as the table writes it."""
    return "-".join(str(size) for size in (digits, *shape, 1))


def draw(records: Sequence[Record]) -> Figure:
    """Draw how many hidden units are left, one dot for each pruning, beside the printed least."""
    from matplotlib.ticker import MaxNLocator

    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, VERMILION, quiet_grid

    figure, (ax,) = panels(1, size=(5.4, 3.4))
    found = {parts(s)[0]: ends for s, ends in shapes(records).items() if s in STARTS and ends}
    for digits, ends in found.items():
        counts = Counter(dict.fromkeys({sum(shape) for shape in ends}, 0))
        for shape, times in ends.items():
            counts[sum(shape)] += times
        for units, times in counts.items():
            places = [digits + 0.045 * (k - (times - 1) / 2) for k in range(times)]
            ax.plot(places, [units] * times, "o", color=BLUE, markersize=3.2, alpha=0.7)
        goal = min(sum(shape) for shape in PRINTED[digits])
        ax.hlines(goal, digits - 0.42, digits + 0.42, color=VERMILION, linewidth=1.6)
        least = min(counts)
        best = next(shape for shape in sorted(ends) if sum(shape) == least)
        below = (digits, min(least, goal))
        ax.annotate(named(digits, best), below, (0, -13), textcoords="offset points", ha="center")
    ax.plot([], [], "o", color=BLUE, markersize=3.2, label="one pruning of ours")
    ax.plot([], [], color=VERMILION, linewidth=1.6, label="fewest units in the table")
    ax.margins(y=0.3)  # room for the legend
    ax.set(xlabel="digits of parity", ylabel="hidden units left", ylim=(0, None))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xticks(sorted(found))
    quiet_grid(ax)
    ax.legend(loc="upper left", fontsize=7.5)
    return figure


EXPERIMENT = Experiment(
    shows="Table 3.5",
    title="Heuristic pruning of ReLU networks of five layers of 5n units on n-parity",
    smoke=grid(start=["2: 10x5", DIRECT], training=0, prunings=2, epochs=300),
    settings=GRID,
    departures={"smoke": ("Two digits, one network pruned twice, 300 epochs.",)},
    cell=cell,
    keeps=keeps,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "conjectured-minimum: reached = 1.0 ± 0": "For all digits shown, pruning gets down to "
            "the conjectured size of section 3.3.2 (a printed shape, or one that fits into it). | "
            "2 to 6 digits | share of digits | section 3.4.4, printed table",
            **{
                f"units-{digits}: units/{digits} = {min(map(sum, goals))} ± 0": "The smallest "
                f"network found for {digits}-parity has {min(map(sum, goals))} hidden units. | "
                f"{digits} digits | fewest hidden units | printed table"
                for digits, goals in PRINTED.items()
            },
            "single-layer: single = 0.0 ± 0": "A single hidden layer is found for two and three "
            "digits only. | 4 to 6 digits | share of prunings that end with one hidden layer",
            "small-solves: small solves > 0.8": "Networks of width 15 and depth 4 solve 4-parity "
            "almost always.",
            "small-reaches: small reaches = 0.2 ± 0.1": "About 20% of them contain a network of "
            "width 2 and depth 2. | 15 x 4, four digits | share that some pruning takes to 2 x 2 "
            "| section 3.4.4; 'approximately'",
            "direct: direct = 0.01 ± 0.0075": "Width 2 and depth 2, trained directly, succeed "
            "about 1% of the time. | 2 x 2, four digits | share that succeeds | section 3.4.4; "
            "'approximately'",
        },
        source="section 3.4.4",
        test="share of networks, Wilson's interval",
    ),
    notes=(
        SETTINGS_NOTE,
        "How a layer vanishes is not said. Here the last node of a layer is taken out by taking it "
        "for always on: its layer is multiplied into the next one.",
        "Fine-tuning ends when the mean loss is 0.01, which no network with a wrong point has, or "
        "after 4,000 epochs; a node counts as successful if all points are right then. The text "
        "says a fixed number of epochs and gives none.",
        "Whether a network contains one of width 2 and depth 2 is decided by ten prunings of it.",
    ),
)
