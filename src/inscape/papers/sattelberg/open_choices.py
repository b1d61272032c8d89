"""Section 3.4: do the choices that the text leaves open move how often networks succeed?"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import paired_difference
from inscape.papers.sattelberg._difficulty import (
    LEAKY,
    NAMES,
    RELU,
    Counts,
    counted,
    first_width,
    known,
    redrawing,
)
from inscape.papers.sattelberg._trials import EPOCHS, TRIALS

Array = npt.NDArray[Any]
BASE = "as figure 3.5"
CHOICES = {
    BASE: "biases start at 0, fan-in, success at some epoch",
    "random biases": "biases start from PyTorch's uniform law",
    "fan-out": "the spread of first weights goes by fan-out",
    "at the end": "success is that of the last epoch",
}
SHORT = {RELU: "relu", LEAKY: "leaky"}
#: A choice matters if it moves mean success by more than this.
MATTERS = 0.1
WHOLE = grid(
    choice=list(CHOICES),
    leak=[RELU, LEAKY],
    width=[2, 3, 4, 5, 6],
    depth=[1, 2],
    trials=TRIALS,
    epochs=EPOCHS,
)


def cell(
    choice: str, leak: float, width: int, depth: int, trials: int, epochs: int
) -> dict[str, Any]:
    """Train networks of one size on every class under one of the choices."""
    from inscape.papers.sattelberg._npn_metrics import INPUTS, classes, points, tables
    from inscape.papers.sattelberg._trials import member_seeds, per_mille, trained

    seeds = member_seeds(classes(), range(trials), INPUTS, width, depth, per_mille(leak))
    found = trained(
        tables(),
        points(),
        width=width,
        depth=depth,
        leak=leak,
        seeds=seeds,
        epochs=epochs,
        start=first_weights(choice, (INPUTS, *[width] * depth, 1), seeds.ravel()),
        stops=choice != "at the end",
    )
    return {
        "successes": found.solved.sum(1).astype(np.uint16),
        "diverged": int(found.diverged.sum()),
    }


def first_weights(choice: str, sizes: Sequence[int], seeds: Array) -> Array | None:
    """Return the first weights of each network under a choice; None for those of figure 3.5."""
    from inscape.ensembles.fit_tiny import tiny_weights

    if choice not in ("random biases", "fan-out"):
        return None
    weights = np.asarray(tiny_weights(sizes, seeds.tolist()))
    uniform = np.asarray(tiny_weights(sizes, (seeds ^ 1).tolist(), init="pytorch"))
    place = 0
    for inputs, outputs in pairwise(sizes):
        matrix = slice(place, place + inputs * outputs)
        bias = slice(matrix.stop, matrix.stop + outputs)
        if choice == "fan-out":
            weights[:, matrix] *= np.float32((inputs / outputs) ** 0.5)
        else:
            weights[:, bias] = uniform[:, bias]
        place = bias.stop
    return weights


def seconds(settings: Settings) -> float:
    """Guess the time of a cell as figure 3.5 does; to the end it takes all epochs."""
    from inscape.papers.sattelberg import figure_3_5
    from inscape.papers.sattelberg._trials import step_seconds

    if settings["choice"] != "at the end":
        return figure_3_5.seconds(settings)
    step = step_seconds(4, settings["width"], settings["depth"])
    return float(figure_3_5.PROBLEMS * settings["trials"] * settings["epochs"] * step)


def by_choice(records: Sequence[Record]) -> dict[tuple[str, float], Counts]:
    """Return the counts of each choice and leak."""
    found: dict[tuple[str, float], Counts] = {}
    for choice in CHOICES:
        some = [record for record in records if record.settings["choice"] == choice]
        found |= {(choice, leak): counts for leak, counts in counted(some).items()}
    return found


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return what each choice changes, and which width solves everything under it."""
    counts = by_choice(records)
    found: dict[str, Estimate | None] = {}
    for (choice, leak), one in counts.items():
        base = counts.get((BASE, leak))
        if choice != BASE and base is not None and base.sizes == one.sizes:
            found[f"shift/{choice}/{SHORT[leak]}"] = paired_difference(
                one.rates.mean(0), base.rates.mean(0)
            )
        found[f"first width/{choice}/{SHORT[leak]}"] = _first_width(one)
    return known(found)


def _first_width(counts: Counts) -> Estimate:
    return redrawing(counts, lambda successes: first_width(successes, counts.sizes))


def conclude(records: Sequence[Record]) -> list[str]:
    """Say mean success under each choice."""
    said = []
    for leak, name in NAMES.items():
        means = {c: one.rates.mean() for (c, of), one in by_choice(records).items() if of == leak}
        if means:
            words = ", ".join(f"{choice} {mean:.1%}" for choice, mean in means.items())
            said.append(f"Mean success of {name} networks over sizes and problems: {words}.")
    return said


def draw(records: Sequence[Record]) -> Figure:
    """Draw mean success (lines) and that on the hardest problem (thin) by width."""
    from inscape.figures.panels import panels
    from inscape.figures.style import CATEGORIES, DASHES, quiet_grid

    counts = by_choice(records)
    cases = sorted({(leak, d) for (_, leak), one in counts.items() for _, d in one.sizes})
    figure, axes = panels(len(cases), columns=4, size=(2.2, 2.6))
    for ax, (leak, depth) in zip(axes, cases, strict=True):
        for choice, colour, dash in zip(CHOICES, CATEGORIES, DASHES, strict=False):
            if (choice, leak) not in counts:
                continue
            one = counts[choice, leak]
            widths = [w for w, d in one.sizes if d == depth]
            rates = 100 * one.at(*((w, depth) for w in widths))
            look: dict[str, Any] = {"color": colour, "ls": dash, "marker": "o"}
            ax.plot(widths, rates.mean(1), ms=3.5, label=choice, **look)
            ax.plot(widths, rates.min(1), ms=2, lw=0.7, alpha=0.6, **look)
        layers = "layer" if depth == 1 else "layers"
        ax.set(title=f"{NAMES[leak]}, {depth} {layers}", xlabel="width", ylim=(-4, 104))
        ax.set_xticks(widths)
        quiet_grid(ax)
    axes[0].set_ylabel("successes of 100")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4)
    return figure


EXPERIMENT = Experiment(
    shows="Section 3.4, choices left open",
    title="Whether biases, fan mode and stop rule move the success of small networks",
    smoke=grid(WHOLE, width=[2, 3], depth=1, trials=2, epochs=50),
    settings=WHOLE,
    departures={"smoke": ("Widths 2 and 3, one hidden layer, two trials, 50 epochs.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                (
                    f"{choice.replace(' ', '-')}-{short}: shift/{choice}/{short} between "
                    f"{-MATTERS} and {MATTERS}"
                ): f"Mean success of {NAMES[leak]} networks moves by less than ten points if "
                f"{CHOICES[choice]}."
                for choice in CHOICES
                if choice != BASE
                for leak, short in SHORT.items()
            },
            **{
                f"first-width-{choice.replace(' ', '-')}: first width/{choice}/relu = 5 ± 0": "One "
                "hidden layer of ReLU needs width 5 to solve every problem at least once, if "
                f"{CHOICES[choice]}. | ReLU, one layer, {choice} | first width that solves "
                "everything | section 3.4.2"
                for choice in CHOICES
            },
        },
        source="our question: the text leaves it open",
        test="paired t interval over the 222 classes",
    ),
    errata=("S28",),
    notes=(
        "An experiment of ours. Apart from the choice all is as in figure 3.5, seeds included, so "
        "that the first weights are the same up to the choice.",
        "Thick lines are means over the 222 classes, thin ones the class that is hardest at that "
        "size.",
    ),
)
