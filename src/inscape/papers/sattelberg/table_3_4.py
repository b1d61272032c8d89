"""Table 3.4: all sub-networks of wide ReLU networks on parity, down to the smallest that work."""

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel, Settings
from inscape.lab.grids import grid
from inscape.lab.published import printed
from inscape.lab.records import Record
from inscape.lab.statistics import (
    bootstrap_estimate,
    kendall_tau,
    mean_estimate,
    paired_difference,
    proportion_of,
    unrepeated,
)
from inscape.papers.sattelberg._parity_pruning import SETTINGS_NOTE

Size = tuple[int, int]


def _pair(entry: str) -> Size | None:
    """Return the smallest width and the number of sub-networks that work: ``3, 8/10``."""
    size, _, works = entry.partition(", ")
    return (int(size), int(works.partition("/")[0])) if works else None


#: As printed, by width (rows) and digits.
PRINTED: dict[int, tuple[Size | None, ...]] = {
    row["width"]: tuple(_pair(row[f"n={digits}"]) for digits in range(1, 7))
    for row in printed("sattelberg", "table-3.4")
}
#: Smallest width in each column.
LEAST = {1: 1, 2: 2, 3: 3, 4: 3, 5: 4, 6: 5}
FOUR = 4
#: Cells whose rates the text gives; many networks of them are trained.
RATES = ((3, 4), (6, 4))
MANY = 400
#: A loss that no network reaches.
NEVER = 1e-30
ONCE = grid(digits=range(1, 7), epochs=4000, stop=[True, False])


def cell(width: int, digits: int, trials: int, epochs: int, stop: bool) -> dict[str, Any]:
    """Train networks, until they are right or for all epochs, and prune those that solve parity."""
    from inscape.papers.sattelberg import _parity_pruning as pruning

    seeds = pruning.seeds(width, digits, trials)
    enough = None if stop else NEVER
    run = pruning.fitted((digits, width, 1), digits, epochs=epochs, seeds=seeds, enough=enough)
    solved = (run.right == 2**digits).numpy()
    found, counts = pruning.smallest(run.weights.numpy()[solved], digits, width, epochs)
    pairs = iter(zip(found, counts, strict=True))
    both = [next(pairs) if one else (0, 0) for one in solved.tolist()]
    return {"smallest": [size for size, _ in both], "working": [count for _, count in both]}


def keeps(settings: Settings) -> bool:
    """Tell whether a cell exists: many networks where the text gives rates, else few."""
    rates = (settings["width"], settings["digits"]) in RATES
    return bool((settings["trials"] == MANY) == rates)


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: sub-networks times points."""
    width, digits = settings["width"], settings["digits"]
    tried = sum(comb(width, size) for size in range(1, min(width, LEAST[digits] + 1) + 1))
    return float(1 + settings["trials"] * tried * 2**digits * settings["epochs"] * 6e-9)


def best(record: Record) -> Size | None:
    """Return the best of the first four networks: the smallest width, and in how many ways."""
    sizes, counts = record.values["smallest"][:FOUR], record.values["working"][:FOUR]
    solved = [(int(size), -int(count)) for size, count in zip(sizes, counts, strict=True) if size]
    if not solved:
        return None
    return min(solved)[0], -min(solved)[1]


def likely(record: Record) -> bool:
    """Tell whether the printed width is in the central 95% of the best of four, by our networks.

    A network that does not solve parity counts as one of endless width, as a dash does.
    """
    theirs = _printed(record)
    size = theirs[0] if theirs else record.settings["width"] + 1
    found = [one or record.settings["width"] + 1 for one in record.values["smallest"]]

    def law(limit: int) -> float:
        share = (sum(one <= limit for one in found) + 0.5) / (len(found) + 1)
        return float(1 - (1 - share) ** FOUR)

    reached = 1.0 if theirs is None else law(size)
    return reached >= 0.025 and law(size - 1) <= 0.975


def _printed(record: Record) -> tuple[int, int] | None:
    row = PRINTED[int(record.settings["width"])]
    return row[int(record.settings["digits"]) - 1]


def judged(records: Sequence[Record], stop: bool = True) -> list[Record]:
    """Return the records whose networks were trained until they were right, or the others."""
    return [record for record in records if record.settings["stop"] == stop]


def working(cells: Sequence[tuple[int, Size | None]]) -> float:
    """Return the mean share of sub-networks of the smallest size that work, over widths."""
    shares = [pair[1] / comb(width, pair[0]) for width, pair in cells if pair]
    return sum(shares) / len(shares) if shares else 0.0


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return smallest widths, gaps to the bound of section 3.3.2, and the rates of the text."""
    records = judged(records)
    found: dict[str, Estimate] = {"fitting": proportion_of([likely(record) for record in records])}
    sizes = {_size(record): best(record) for record in records}
    for digits in sorted({size[1] for size in sizes}):
        solved = [pair[0] for size, pair in sizes.items() if size[1] == digits and pair]
        if solved:
            found[f"smallest/{digits}"] = _least(min(solved), len(solved))
    same = [
        (ours[1], theirs[1])
        for record in records
        if (ours := best(record)) and (theirs := _printed(record)) and ours[0] == theirs[0]
    ]
    if same:
        found["ways over printed"] = paired_difference(*np.log(np.array(same, dtype=float)).T)
    found |= _gaps({size: pair[0] for size, pair in sizes.items() if pair})
    by_size = {_size(record): record.values for record in records}
    if set(RATES) <= set(by_size):
        found |= rates(by_size[6, 4], by_size[3, 4])
    return found


def _size(record: Record) -> Size:
    return record.settings["width"], record.settings["digits"]


def _least(value: int, n: int) -> Estimate:
    return unrepeated(value, f"smallest over {n} widths, best of four networks each")


def _gaps(solved: Mapping[Size, int]) -> dict[str, Estimate]:
    """Return how far pruned widths are from the bound (n units for n-parity), and the trend."""
    if not solved:
        return {}
    by_width: dict[int, list[tuple[int, int]]] = {}
    for (width, digits), size in solved.items():
        by_width.setdefault(width, []).append((digits, abs(digits - size)))

    def trend(entries: Sequence[Any]) -> float:
        pairs = [pair for entry in entries for pair in entry]
        return kendall_tau(*zip(*pairs, strict=True))

    found = {"gap": mean_estimate([gap for row in by_width.values() for _, gap in row])}
    growth = bootstrap_estimate(by_width, trend)
    return found | ({"growth": growth} if growth.value == growth.value else {})


def rates(six: Mapping[str, Any], three: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return the rates of the text: networks of width 6 on 4-parity, pruned and direct."""
    sizes = six["smallest"]
    solved = [size for size in sizes if size]
    pruned = [0 < size <= 3 for size in sizes]
    direct = [size > 0 for size in three["smallest"]]
    found = {"solved": proportion_of([size > 0 for size in sizes]), "pruned": proportion_of(pruned)}
    found["direct"] = proportion_of(direct)
    gain = found["pruned"].value - found["direct"].value
    se = (found["pruned"].se ** 2 + found["direct"].se ** 2) ** 0.5
    found["gain"] = Estimate(
        value=gain,
        low=gain - 1.96 * se,
        high=gain + 1.96 * se,
        se=se,
        n=len(sizes),
        method="difference of two shares, normal interval",
        interval="binomial",
    )
    if solved:
        found["contains"] = proportion_of([size <= 3 for size in solved])
    ways = [n for size, n in zip(sizes, six["working"], strict=True) if size == 3]
    return found | ({"ways": mean_estimate(ways)} if ways else {})


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how many cells agree, and where more networks get further down."""
    some, others = judged(records), judged(records, stop=False)
    pairs = [(_printed(record), best(record), record) for record in some]
    same = sum((a and a[0]) == (b and b[0]) for a, b, _ in pairs)
    lower = []
    for theirs, _, record in pairs:
        sizes = [size for size in record.values["smallest"] if size]
        if sizes and (theirs is None or min(sizes) < theirs[0]):
            width, digits = _size(record)
            lower.append(f"{digits}-parity from width {width} to {min(sizes)}")
    said = [f"The best of four networks has the printed width in {same} of {len(pairs)} cells."]
    if lower:
        said.append(f"With all our networks, pruning gets below the table: {', '.join(lower)}.")
    if others:
        shares = [
            working([(record.settings["width"], found(record)) for record in these])
            for these, found in ((some, best), (others, best), (some, _printed))
        ]
        said.append(
            f"Of the smallest sub-networks {shares[0]:.0%} work on average if the whole network is "
            f"trained until it is right, {shares[1]:.0%} if it is trained for all epochs; "
            f"{shares[2]:.0%} do in the printed table."
        )
    return said


def draw(records: Sequence[Record]) -> Figure:
    """Draw printed and own widths, each with the number of sub-networks that work."""
    from inscape.figures.panels import panels

    records = judged(records)
    ours = {_size(record): best(record) for record in records}
    theirs = {_size(record): _printed(record) for record in records}
    figure, axes = panels(2, columns=2, size=(4.4, 4.0))
    for ax, cells, title in zip(axes, (theirs, ours), ("printed", "ours"), strict=True):
        _table(ax, cells)
        ax.set(title=f"{title}: best of four networks", xlabel="digits of parity")
    axes[0].set_ylabel("units before pruning")
    return figure


def _table(ax: Panel, cells: Mapping[Size, tuple[int, int] | None]) -> None:
    widths, digits = (sorted({size[k] for size in cells}) for k in (0, 1))
    sizes = np.full((len(widths), len(digits)), np.nan)
    for (width, n), pair in cells.items():
        at = widths.index(width), digits.index(n)
        sizes[at] = pair[0] if pair else np.nan
        bright = pair and pair[0] >= 4
        word = f"{pair[0]}\n{pair[1]}/{comb(width, pair[0])}" if pair else "none"
        colour = "#1a1a1a" if bright else "white" if pair else "#767676"
        ax.text(at[1], at[0], word, ha="center", va="center", fontsize=6, color=colour)
    ax.imshow(sizes, vmin=0, vmax=6, cmap="cividis", aspect="auto")
    ax.set_xticks(range(len(digits)), [str(n) for n in digits])
    ax.set_yticks(range(len(widths)), [str(width) for width in widths])


EXPERIMENT = Experiment(
    shows="Table 3.4",
    title="Exhaustive pruning of networks with one hidden ReLU layer on n-parity",
    smoke=grid(width=[2, 3], digits=[1, 2], trials=4, epochs=300, stop=True),
    laptop=grid(grid(width=range(2, 12), **ONCE), trials=[20, MANY]),
    paper=grid(grid(width=range(2, 15), **ONCE), trials=[FOUR, MANY]),
    departures={
        "smoke": ("Two widths, one and two digits, 300 epochs.",),
        "laptop": (
            "Widths up to 11 instead of 14.",
            "20 networks of each size instead of four; the table shows the first four.",
        ),
    },
    cell=cell,
    keeps=keeps,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                f"smallest-{digits}: smallest/{digits} = {size} ± 0": "The smallest sub-network "
                f"found that solves {digits}-parity has {size} unit{'s' * (size > 1)}. | {digits} "
                "digits | smallest pruned width in the column | printed table"
                for digits, size in LEAST.items()
            },
            "table-fits: fitting > 0.85": "The printed widths (and dashes) are what the best of "
            "four networks gives. | | printed table",
            "near-the-bound: gap < 1.0": "In all cases the pruned size is close to the bound of "
            "section 3.3.2, n units for n-parity (within one unit on average). | mean distance "
            "over sizes that are solved, t interval | section 3.4.4",
            "gap-grows: growth > 0": "The gap to that bound increases for higher dimensional "
            "parity. | Kendall's tau of gap and digits, bootstrap over widths | section 3.4.4",
            "solved: solved = 0.65 ± 0.1": "Width 6 solves 4-parity about 65% of the time. | "
            "width 6, four digits | "
            "solved",
            "contains: contains = 0.15 ± 0.07": "Of those, about 15% contain a width 3 network "
            "that works. | "
            "width 6, four digits | "
            "contains",
            "pruned: pruned = 0.1 ± 0.05": "About 10% of networks train and prune to width 3. | "
            "width 6, four digits | "
            "pruned",
            "ways: ways = 1.5 ± 0.5": "Where one exists, about 1.5 of 20 sub-networks work. | "
            "width 6, four digits | ways",
            "direct: direct = 0.02 ± 0.015": "Width 3 trained directly succeeds about 2% of the "
            "time. | "
            "width 3, four digits | "
            "direct",
            "working-counts: ways over printed between -0.693 and 0.693": "As many sub-networks of "
            "the smallest size work as are printed, within a factor of two, where that size is the "
            "printed one. | logarithm of the ratio of both counts, paired t interval over sizes | "
            "printed table",
            "pruning-helps: gain > 0": "Pruning reaches width 3 on 4-parity more often (10%) than "
            "training it (2%). | difference of two shares, normal interval | section 3.4.4",
        },
        source="section 3.4.4; 'approximately', the number of networks is not given",
        test="share of cells in the central 95% of their law, Wilson's interval",
    ),
    errata=("S22",),
    notes=(
        SETTINGS_NOTE,
        "Sub-networks start from the weights that they have in the whole network, with a fresh "
        "optimizer, and have the same number of epochs; the output's bias is kept.",
        "The text asks for n ≤ w; like the table, all widths are tried.",
        "Whether the whole network stops as soon as it is right is not said: claims and table are "
        "of networks that do; networks that are trained for all epochs are run beside them.",
        "The rates of the text (width 6, four digits, and width 3) are taken over 400 networks.",
    ),
)
