"""Figure 3.1: the four classes of Boolean functions of two inputs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {0: "constant", 1: "one of four (AND)", 3: "two beside each other (x1)", 6: "XOR"}
AXES: Axes = {"inputs": [2]}


def cell(inputs: int) -> dict[str, Any]:
    """Return the smallest function of each class, with its size and swaps."""
    from inscape.boolean import npn
    from inscape.boolean.swaps import swaps
    from inscape.boolean.truth_table import TruthTable

    numbers = npn.classes(inputs).tolist()
    found = [swaps(TruthTable(inputs, number)) for number in numbers]
    return {
        "classes": numbers,
        "sizes": npn.class_sizes(numbers, inputs).tolist(),
        "swaps": [one.swaps for one in found],
        "weights": [one.weights.tolist() for one in found],
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how many classes there are, and how many have each number of swaps."""
    values = records[0].values
    counts = {f"swaps {s}": values["swaps"].count(s) for s in (0, 1, 2)}
    numbers = {"classes": len(values["classes"]), **counts}
    return {name: exact_estimate(float(count)) for name, count in numbers.items()}


def draw(records: Sequence[Record]) -> "Figure":
    """Draw one square for each class."""
    from inscape.boolean.truth_table import TruthTable
    from inscape.figures.boolean_networks import draw_cube
    from inscape.figures.panels import panels

    values = records[0].values
    figure, axes = panels(len(values["classes"]), columns=4, size=(1.9, 2.1))
    for ax, number, size, swaps in zip(
        axes, values["classes"], values["sizes"], values["swaps"], strict=True
    ):
        draw_cube(TruthTable(2, number), ax)
        ax.set_title(f"{NAMES[number]}\n{size} functions, swaps {swaps}", fontsize=8)
    return figure


EXPERIMENT = Experiment(
    shows="Figure 3.1",
    title="The four classes of functions of two inputs",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    seconds=lambda settings: 2.0,
    analyse=analyse,
    draw=draw,
    claims=(
        Value(
            name="classes",
            says="There are four classes of functions of two inputs.",
            of="classes",
            published=4,
            tolerance=0,
            at=("two inputs", "classes"),
            source="section 3.3.1",
        ),
        *(
            Value(
                name=f"swaps-{swaps}",
                says=says,
                of=f"swaps {swaps}",
                published=count,
                tolerance=0,
                at=(f"swaps {swaps}", "classes"),
                source="section 3.3.1",
            )
            for swaps, count, says in (
                (0, 1, "One class of two inputs is constant."),
                (1, 2, "Two classes of two inputs are linear."),
                (2, 1, "XOR is the one class of two inputs with two swaps."),
            )
        ),
    ),
    notes=("Full corners are true; thick edges join inputs of different value.",),
)
