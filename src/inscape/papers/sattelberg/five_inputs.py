"""Five inputs: the swaps of all 616,126 classes, and what they say of section 3.5's questions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Settings
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record
from inscape.papers.sattelberg._swaps import (
    FAMILIES,
    METRICS,
    by_families,
    by_programmes,
    distribution,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = {"swaps": distribution, "families": by_families, "programmes": by_programmes}
WHOLE: Axes = {"part": list(PARTS), "inputs": [3, 4, 5, 6]}
COSTS = {("swaps", 5): 60.0, ("programmes", 4): 40.0, ("programmes", 5): 90.0}


def cell(part: str, inputs: int) -> dict[str, Any]:
    """Find the swaps of all classes, of some families, or of a sample by linear programmes."""
    return PARTS[part](inputs)


def keeps(settings: Settings) -> bool:
    """Keep what can be listed: six inputs have 2 x 10^14 classes."""
    return bool(settings["part"] == "families" or settings["inputs"] <= 5)


def seconds(settings: Settings) -> float:
    """Guess the time of a part."""
    if settings["part"] == "families" and settings["inputs"] == 6:
        return 150.0
    return COSTS.get((settings["part"], settings["inputs"]), 2.0)


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
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


def conclude(records: Sequence[Record]) -> list[str]:
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


def draw(records: Sequence[Record]) -> "Figure":
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


EXPERIMENT = Experiment(
    shows="Section 3.5, open questions",
    title="Swaps of all Boolean functions of five inputs",
    smoke={"part": list(PARTS), "inputs": [2, 3]},
    laptop=WHOLE,
    paper=WHOLE,
    cell=cell,
    keeps=keeps,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
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
