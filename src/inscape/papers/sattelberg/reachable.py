"""Section 3.5: is every four-input class with s < w^l swaps solved by some w x l network?"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate
from inscape.papers.sattelberg._difficulty import LEAKY, NAMES, RELU
from inscape.papers.sattelberg._npn_metrics import classes, points, swaps, tables
from inscape.papers.sattelberg._trials import EPOCHS, SETTINGS_NOTE

Array = npt.NDArray[Any]
#: Every larger size contains one of these with the same reach, and so solves what that one does.
SIZES = ("2x1", "3x1", "4x1", "5x1", "6x1", "2x2", "3x2", "2x3")
#: Networks that are in memory at once.
TOGETHER = 100_000
#: Trials after which the classes that are solved are left alone.
ROUNDS = (20, 100, 300, 1000, 3000, 10000, 30000)
WHOLE = grid(leak=[RELU, LEAKY], size=list(SIZES), hunt=30000, beyond=1000, epochs=EPOCHS)
SHORT = {RELU: "relu", LEAKY: "leaky"}


def reach(size: str) -> int:
    """Return w^l of a size such as ``2x3``."""
    width, depth = _numbers(size)
    return int(width**depth)


def _numbers(size: str) -> tuple[int, int]:
    width, depth = size.split("x")
    return int(width), int(depth)


def cell(leak: float, size: str, hunt: int, beyond: int, epochs: int) -> dict[str, Any]:
    """Train networks of a size on each class until one succeeds, ``hunt`` of them at most.

    Where the question does not ask (s >= w^l) at most ``beyond`` are tried.
    """
    asked = swaps() < reach(size)
    most = np.where(asked, hunt, beyond)
    first = np.zeros(len(classes()), int)
    networks = 0
    for start, end in spans(hunt):
        open_ = np.nonzero((first == 0) & (most > start))[0]
        last = min(end, int(most[open_].max(initial=0)))
        if not len(open_) or last <= start:
            continue
        found = _solved(leak, size, open_, range(start, last), epochs)
        networks += found.size
        within = np.arange(start, last)[None] < most[open_, None]
        won = found & within
        first[open_] = np.where(won.any(1), start + 1 + won.argmax(1), 0)
    return {"first": first.astype(np.uint32), "networks": networks}


def spans(hunt: int) -> Iterator[tuple[int, int]]:
    """Yield the trials of each round, the last of which ends with the hunt."""
    start = 0
    for end in (*ROUNDS, hunt):
        end = min(end, hunt)
        if end > start:
            yield start, end
            start = end


def _solved(leak: float, size: str, which: Array, trials: range, epochs: int) -> Array:
    """Tell of some classes and trials whether the network succeeded."""
    from inscape.papers.sattelberg._trials import member_seeds, per_mille, trained

    width, depth = _numbers(size)
    solved = []
    for some in np.array_split(which, -(-len(which) * len(trials) // TOGETHER)):
        numbers = np.array(classes())[some]
        found = trained(
            tables()[some],
            points(),
            width=width,
            depth=depth,
            leak=leak,
            seeds=member_seeds(numbers, trials, 4, width, depth, per_mille(leak)),
            epochs=epochs,
        )
        solved.append(found.solved)
    return np.concatenate(solved)


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: most networks are those that never succeed."""
    from inscape.papers.sattelberg._trials import step_seconds

    lost = 100 * settings["beyond"] + 3 * settings["hunt"]
    return float(2 + lost * settings["epochs"] * step_seconds(4, *_numbers(settings["size"])))


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how many classes that the question asks for stay unsolved, and what lies beyond."""
    found = {}
    for leak, name in SHORT.items():
        some = [record for record in records if record.settings["leak"] == leak]
        if not some:
            continue
        pairs = [_parts(record) for record in some]
        asked, missed, extra = (sum(counts) for counts in zip(*pairs, strict=True))
        found[f"asked/{name}"] = _counted(asked, asked)
        found[f"missed/{name}"] = _counted(missed, asked)
        found[f"beyond/{name}"] = _counted(extra, 222 * len(some) - asked)
    return found


def _parts(record: Record) -> tuple[int, int, int]:
    """Return pairs that are asked for, those of them not solved, and others that are."""
    asked = swaps() < reach(record.settings["size"])
    solved = np.asarray(record.values["first"]) > 0
    return int(asked.sum()), int((asked & ~solved).sum()), int((~asked & solved).sum())


def _counted(count: int, of: int) -> Estimate:
    return exact_estimate(count, of, method="counted over pairs of size and class")


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what was found, and name the classes that resisted."""
    found, said = analyse(records), []
    for leak, name in SHORT.items():
        some = [record for record in records if record.settings["leak"] == leak]
        if not some:
            continue
        asked, missed = found[f"asked/{name}"].value, found[f"missed/{name}"].value
        latest = max(int(np.asarray(record.values["first"]).max()) for record in some)
        said.append(
            f"{NAMES[leak]}: of {asked:.0f} pairs of size and class with s < w^l, "
            f"{asked - missed:.0f} were solved by a trained network; the longest wait was "
            f"{latest:,} networks, of {sum(r.values['networks'] for r in some):,} trained."
        )
        said += [
            f"{NAMES[leak]} {r.settings['size']} never solved {', '.join(map(str, left))}."
            for r in some
            if (left := _missed(r))
        ]
    return said


def _missed(record: Record) -> list[int]:
    asked = swaps() < reach(record.settings["size"])
    lost = asked & (np.asarray(record.values["first"]) == 0)
    return [classes()[k] for k in np.nonzero(lost)[0]]


def draw(records: Sequence[Record]) -> Figure:
    """Draw the share of classes that were solved, by size and swaps; frames are asked for."""
    from inscape.figures.panels import panels

    leaks = sorted({record.settings["leak"] for record in records})
    figure, axes = panels(len(leaks), columns=2, size=(3.6, 3.0))
    for ax, leak in zip(axes, leaks, strict=True):
        _table(ax, [record for record in records if record.settings["leak"] == leak])
        ax.set_title(NAMES[leak])
    return figure


def _table(ax: Panel, records: Sequence[Record]) -> None:
    from matplotlib.patches import Rectangle

    from inscape.papers.sattelberg._heat import DARK

    values = sorted(set(swaps().tolist()))
    solved = np.array([np.asarray(record.values["first"]) > 0 for record in records])
    shares = np.array([[row[swaps() == s].mean() for s in values] for row in solved])
    ax.imshow(shares, vmin=0, vmax=1, cmap="cividis", aspect="auto")
    for row, record in enumerate(records):
        for column, s in enumerate(values):
            some = swaps() == s
            word = f"{solved[row, some].sum()}/{some.sum()}"
            colour = DARK if shares[row, column] > 0.55 else "white"
            ax.text(column, row, word, ha="center", va="center", fontsize=7, color=colour)
            if s < reach(record.settings["size"]):
                frame = Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False)
                frame.set(edgecolor="white", linewidth=1.3)
                ax.add_patch(frame)
    ax.set_xticks(range(len(values)), [str(s) for s in values])
    ax.set_yticks(range(len(records)), [record.settings["size"] for record in records])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="swaps value s", ylabel="width x depth")


EXPERIMENT = Experiment(
    shows="Section 3.5, s < w^l",
    title="Whether trained w x l networks solve every four-input class with s < w^l swaps",
    smoke=grid(WHOLE, size=["2x1", "2x2"], hunt=20, beyond=2, epochs=100),
    settings=WHOLE,
    departures={"smoke": ("Two sizes, 20 networks of each at most, 100 epochs.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                f"all-{name}: missed/{name} = 0 ± 0": "Every class with swaps s < w^l was solved "
                f"by some trained w x l {NAMES[leak]} network. | {NAMES[leak]} | pairs of size "
                "and class left unsolved"
                for leak, name in SHORT.items()
            },
            **{
                f"not-tight-{name}: beyond/{name} > 0": "There are functions of swaps value s "
                f"that networks with w^l <= s solve, with {NAMES[leak]}. | | section 3.3.2, after "
                "theorem 3.3.4"
                for leak, name in SHORT.items()
            },
        },
        source="open question of section 3.5: a yes for four inputs",
        test="counted over pairs of size and class",
    ),
    errata=("S2", "S3", "S23"),
    notes=(
        SETTINGS_NOTE,
        "An experiment of ours. A network can be widened or deepened without a change of what it "
        "computes on the 16 inputs, and no class has more than 5 swaps: what these eight sizes "
        "solve, all larger ones can.",
        "Networks are tried one after the other until one succeeds, so a class that stays unsolved "
        "is not thereby shown to be out of reach.",
    ),
)
