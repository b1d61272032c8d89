"""Figure 3.5: two million small networks learn every class of four-input functions, or fail to."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import mean_estimate, paired_difference
from inscape.papers.sattelberg._difficulty import (
    LEAKY,
    NAMES,
    RELU,
    Counts,
    counted,
    first_width,
    known,
    redrawing,
    solving,
)
from inscape.papers.sattelberg._trials import EPOCHS, SETTINGS_NOTE, TRIALS

PROBLEMS = 222
WHOLE = grid(
    leak=[RELU, LEAKY],
    width=list(range(2, 11)),
    depth=list(range(1, 6)),
    trials=TRIALS,
    epochs=EPOCHS,
)


def cell(leak: float, width: int, depth: int, trials: int, epochs: int) -> dict[str, Any]:
    """Train networks of one size on every class; keep counts only, classes in rising order."""
    from inscape.papers.sattelberg._npn_metrics import classes, points, tables
    from inscape.papers.sattelberg._trials import member_seeds, per_mille, trained

    seeds = member_seeds(classes(), range(trials), 4, width, depth, per_mille(leak))
    found = trained(
        tables(), points(), width=width, depth=depth, leak=leak, seeds=seeds, epochs=epochs
    )
    return {
        "successes": found.solved.sum(1).astype(np.uint16),
        "epochs": np.where(found.solved, found.epochs, 0).sum(1).astype(np.uint32),
        "right": found.right.sum(1).astype(np.uint32),
        "best": found.best.sum(1).astype(np.uint32),
        "diverged": int(found.diverged.sum()),
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: epochs that are likely, and microseconds of a step as measured."""
    from inscape.papers.sattelberg._trials import step_seconds

    wider, deep = settings["width"] - 2, settings["depth"] > 1
    falls = 0.16 + 0.6 * wider if settings["leak"] == RELU else 0.4 + 0.8 * wider + 0.9 * deep
    epochs = min(settings["epochs"], 20 + EPOCHS * math.exp(-falls))
    each = step_seconds(4, settings["width"], settings["depth"]) * epochs
    return float(0.2 + PROBLEMS * settings["trials"] * (each + 2e-5))


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return who solves everything, and what leak, a node and a layer bring."""
    counts = counted(records)
    found: dict[str, Estimate | None] = {}
    for leak, name in ((RELU, "relu"), (LEAKY, "leaky")):
        if leak in counts:
            found |= {f"{key}/{name}": one for key, one in _of_one(counts[leak]).items()}
    if len(counts) == len(NAMES):
        found["leak"] = paired_difference(*(counts[k].rates.mean(0) for k in (LEAKY, RELU)))
    return known(found)


def _of_one(counts: Counts) -> dict[str, Estimate | None]:
    """Return the quantities of one activation."""
    narrow = [size for size in counts.sizes if size[0] < 4]
    one, two = ([(w, depth) for w in _widths(counts)] for depth in (1, 2))
    pairs = len(counts.at(*one)) == len(counts.at(*two)) > 0
    worst = [counts.at(*sizes).min(-1) for sizes in (two, one)]
    return {
        "rare": mean_estimate(counts.at(*narrow).mean(0)) if narrow else None,
        "first width": redrawing(counts, lambda s: first_width(s, counts.sizes)),
        "wide enough": redrawing(counts, lambda s: _whole_widths(s, counts, range(5, 11))),
        "width two": redrawing(counts, lambda s: _whole_depths(s, counts, 2)),
        **{f"solved/{w}x{d}": _solved(counts, (w, d)) for w, d in ((2, 2), (3, 1), (3, 2))},
        "node/3x1": _gain(counts, (3, 1), (4, 1)),
        "node/2x2": _gain(counts, (2, 2), (3, 2)),
        "layer/3x1": _gain(counts, (3, 1), (3, 2)),
        "layer": paired_difference(*(counts.at(*s).mean(0) for s in (two, one))) if pairs else None,
        "layer, hardest": paired_difference(*worst) if pairs else None,
    }


def _widths(counts: Counts) -> list[int]:
    return sorted({width for width, _ in counts.sizes})


def _whole_widths(successes: Any, counts: Counts, widths: Sequence[int]) -> Any:
    """Return how many of some widths solve everything with one hidden layer."""
    whole = solving(successes, counts.sizes, depth=1)
    return sum((whole[w].astype(int) for w in widths if w in whole), np.zeros(()))


def _whole_depths(successes: Any, counts: Counts, width: int) -> Any:
    """Return at how many depths networks of one width solve everything."""
    depths = sorted({depth for _, depth in counts.sizes})
    whole = [solving(successes, counts.sizes, depth=depth) for depth in depths]
    return sum((one[width].astype(int) for one in whole if width in one), np.zeros(()))


def _solved(counts: Counts, size: tuple[int, int]) -> Estimate | None:
    """Return how many classes some network of a size solved."""
    if size not in counts.sizes:
        return None
    row = counts.sizes.index(size)
    return redrawing(counts, lambda s: (s[..., row, :] > 0).sum(-1))


def _gain(counts: Counts, small: tuple[int, int], large: tuple[int, int]) -> Estimate | None:
    """Return by how much a larger size succeeds more, over classes."""
    if not {small, large} <= set(counts.sizes):
        return None
    return paired_difference(counts.at(large)[0], counts.at(small)[0])


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how many networks were trained, how fast they learn, and where all of them succeed."""
    said = []
    for leak, counts in counted(records).items():
        some = [record.values for record in records if record.settings["leak"] == leak]
        right, tried = int(counts.successes.sum()), counts.trials * counts.successes.size
        epochs = sum(int(values["epochs"].sum()) for values in some) / max(1, right)
        sure = [size for size, row in zip(counts.sizes, counts.rates, strict=True) if row.min() > 0]
        said.append(
            f"Of {tried:,} {NAMES[leak]} networks {right / tried:.1%} succeed, after {epochs:.0f} "
            f"epochs on average; {len(sure)} of {len(counts.sizes)} sizes solve every problem at "
            "least once."
        )
        if lost := sum(values["diverged"] for values in some):
            said.append(f"The loss of {lost:,} {NAMES[leak]} networks stopped being a number.")
    return said


def draw(records: Sequence[Record]) -> Figure:
    """Draw mean and lowest successes of 100 by size, for both activations."""
    from inscape.figures.panels import panels
    from inscape.papers.sattelberg._heat import heat_map

    counts = counted(records)
    figure, axes = panels(2 * len(counts), columns=4, size=(2.05, 3.1))
    for k, (leak, one) in enumerate(counts.items()):
        views = {"mean": one.rates.mean(1), "hardest": one.rates.min(1)}
        for ax, (title, rates) in zip(axes[2 * k : 2 * k + 2], views.items(), strict=True):
            numbers = 100 * rates
            image = heat_map(ax, dict(zip(one.sizes, numbers.tolist(), strict=True)))
            ax.set_title(f"{NAMES[leak]}, {title}")
    for ax in axes[1:]:
        ax.set_ylabel("")
    figure.colorbar(image, ax=axes, shrink=0.6, pad=0.01, label="successes of 100")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 3.5",
    title="Successes on all 222 four-input problems by width, depth and activation",
    smoke=grid(WHOLE, width=[2, 3], depth=[1, 2], trials=4, epochs=100),
    settings=WHOLE,
    departures={"smoke": ("Widths 2 and 3, depths 1 and 2, four trials, 100 epochs.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "relu-narrow: rare/relu < 0.25": "ReLU networks of width less than four rarely find "
            "success (less than one in four). | mean success of widths 2 and 3, t interval over "
            "the 222 classes | section 3.4.2; the bound is ours",
            "relu-one-layer: first width/relu = 5 ± 0": "Of ReLU networks with one hidden layer, "
            "width 5 is the first that succeeds at least once on every problem. | ReLU, one layer "
            "| first width that solves everything",
            "relu-one-layer-wider: wide enough/relu = 6 ± 0": "ReLU networks with one hidden "
            "layer and widths of five to ten succeed at least once on every problem. | ReLU, one "
            "layer | widths from 5 to 10 that solve everything",
            "relu-width-two: width two/relu = 0 ± 0": "No width-two ReLU network solves every "
            "problem at least once. | ReLU, width 2 | depths that solve everything",
            f"relu-3x2: solved/3x2/relu = {PROBLEMS} ± 0": "ReLU networks of width three and "
            "depth two solve every problem at least once. | ReLU, 3 x 2 | problems solved",
            **{
                f"leaky-{size}: solved/{size}/leaky = {PROBLEMS} ± 0": "Leaky ReLU networks of "
                f"size {size} have non-zero success on all 222 problems. | leaky ReLU, {size} | "
                "problems solved"
                for size in ("3x1", "2x2")
            },
            "leak-helps: leak > 0": "Success rates are higher for leaky ReLU than for ReLU.",
            **{
                f"{name}: {of} > 0.1": f"{what} raises the success of leaky ReLU networks sharply "
                "(by ten points or more). | | section 3.4.2; the bound is ours"
                for name, what, of in (
                    ("node-on-3x1", "A fourth node in one hidden layer of three", "node/3x1/leaky"),
                    ("node-on-2x2", "A third node in each of two layers of two", "node/2x2/leaky"),
                    ("layer-on-3x1", "A second layer of three nodes", "layer/3x1/leaky"),
                )
            },
            "relu-layer: layer/relu > 0": "Single hidden layer ReLU networks perform worse than "
            "those with two hidden layers.",
            "relu-layer-hardest: layer, hardest/relu > 0": "Success of ReLU networks on the "
            "hardest problem is significantly increased by a second hidden layer. | success on "
            "the hardest problem, paired t interval over widths",
        },
        source="section 3.4.2",
        test="paired t interval over the 222 classes",
    ),
    errata=("S28",),
    notes=(
        SETTINGS_NOTE,
        "Each problem is the member of its class with the smallest number; by symmetry of inputs "
        "and initial weights the others are as hard.",
        "Intervals of what was solved at least once come from counts redrawn 200 times: a problem "
        "that one network of a hundred solves might have been missed.",
    ),
)
