"""Figure 3.2: the two hardest functions of four inputs as tesseracts, and along their best line."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = (1785, 7140)
AXES: Axes = {"number": list(NUMBERS)}


def cell(number: int) -> dict[str, Any]:
    """Return swaps, weights that show them, and the class of a function of four inputs."""
    from inscape.boolean import npn
    from inscape.boolean.constructions import represents, wide_network
    from inscape.boolean.swaps import swaps
    from inscape.boolean.truth_table import TruthTable

    table = TruthTable(4, number)
    found = swaps(table)
    weights = found.weights.tolist()
    return {
        "swaps": found.swaps,
        "weights": weights,
        "class": npn.canonical(number, 4),
        "class_size": int(npn.class_sizes([number], 4)[0]),
        "network_is_right": represents(wide_network(table, weights), table),
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the swaps of each."""
    return {
        f"swaps/{record.settings['number']}": exact_estimate(float(record.values["swaps"]))
        for record in records
    }


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what each class is and what network solves it."""
    return [
        f"Function {record.settings['number']} is the smallest of its class of "
        f"{record.values['class_size']:,} functions; along the weights "
        f"{', '.join(map(str, record.values['weights']))} it changes {record.values['swaps']} "
        f"times, and the network of theorem 3.3.2 with {record.values['swaps']} units "
        f"{'computes' if record.values['network_is_right'] else 'fails to compute'} it exactly."
        for record in records
    ]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw both tesseracts, above the line on which their network sees them."""
    from matplotlib.figure import Figure

    from inscape.boolean.truth_table import TruthTable
    from inscape.figures.boolean_networks import draw_cube, draw_line

    figure = Figure(figsize=(3.9 * len(records), 4.9), layout="constrained")
    panels = figure.subplots(2, len(records), height_ratios=(3.4, 1), squeeze=False)
    for record, (above, below) in zip(records, panels.T, strict=True):
        table = TruthTable(4, record.settings["number"])
        draw_cube(table, above)
        above.set_title(f"{table.number:,}".replace(",", " "))
        draw_line(table, record.values["weights"], below)
        words = " + ".join(f"{w} x{k}" for k, w in enumerate(record.values["weights"], start=1))
        below.set_xlabel(words.replace("+ -", "\N{MINUS SIGN} "))
    return figure


EXPERIMENT = Experiment(
    shows="Figure 3.2",
    title="The two functions of four inputs with swaps value five, as tesseracts",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    seconds=lambda settings: 2.0,
    analyse=analyse,
    draw=draw,
    conclude=conclude,
    claims=tuple(
        Value(
            name=f"swaps-{number}",
            says=f"The class of function {number} has swaps value five.",
            of=f"swaps/{number}",
            published=5,
            tolerance=0,
            at=(str(number), "swaps"),
            source="figure 3.2",
        )
        for number in NUMBERS
    ),
    errata=("S2",),
    notes=(
        "Full corners are true; a thick edge joins two inputs of different value. The tesseract is "
        "seen along its axis of eightfold symmetry, where no two corners fall together.",
        "Below, the inputs lie on the line given by the weights that reach the fewest changes, "
        "under the output of the network of theorem 3.3.2.",
    ),
)
