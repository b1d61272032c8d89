"""Section 3.3.1: classes of Boolean functions of two and of four inputs."""

from collections.abc import Sequence
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate, proportion_estimate

TWO_NAMES = {0: "constant", 1: "one of four (AND)", 3: "two beside each other (x1)", 6: "XOR"}
TWO = grid(inputs=2)


def two_cell(inputs: int) -> dict[str, Any]:
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


def analyse_two(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how many classes there are, and how many have each number of swaps."""
    values = records[0].values
    counts = {f"swaps {s}": values["swaps"].count(s) for s in (0, 1, 2)}
    numbers = {"classes": len(values["classes"]), **counts}
    return {name: exact_estimate(float(count)) for name, count in numbers.items()}


def draw_two(records: Sequence[Record]) -> Figure:
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
        ax.set_title(f"{TWO_NAMES[number]}\n{size} functions, swaps {swaps}", fontsize=8)
    return figure


FIGURE_3_1 = Experiment(
    shows="Figure 3.1",
    title="The four classes of functions of two inputs",
    settings=TWO,
    cell=two_cell,
    seconds=lambda settings: 2.0,
    analyse=analyse_two,
    draw=draw_two,
    claims=claims(
        {
            "classes: classes = 4 ± 0": "There are four classes of functions of two inputs. | two "
            "inputs | classes",
            **{
                f"swaps-{swaps}: swaps {swaps} = {count} ± 0": f"{says} | swaps {swaps} | classes"
                for swaps, count, says in (
                    (0, 1, "One class of two inputs is constant."),
                    (1, 2, "Two classes of two inputs are linear."),
                    (2, 1, "XOR is the one class of two inputs with two swaps."),
                )
            },
        },
        source="section 3.3.1",
    ),
    notes=("Full corners are true; thick edges join inputs of different value.",),
)
"""Figure 3.1: the four classes of Boolean functions of two inputs."""


HARDEST_NUMBERS = (1785, 7140)
HARDEST = grid(number=list(HARDEST_NUMBERS))


def hardest_cell(number: int) -> dict[str, Any]:
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


def analyse_hardest(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the swaps of each."""
    return {
        f"swaps/{record.settings['number']}": exact_estimate(float(record.values["swaps"]))
        for record in records
    }


def conclude_hardest(records: Sequence[Record]) -> list[str]:
    """Say what each class is and what network solves it."""
    return [
        f"Function {record.settings['number']} is the smallest of its class of "
        f"{record.values['class_size']:,} functions; along the weights "
        f"{', '.join(map(str, record.values['weights']))} it changes {record.values['swaps']} "
        f"times, and the network of theorem 3.3.2 with {record.values['swaps']} units "
        f"{'computes' if record.values['network_is_right'] else 'fails to compute'} it exactly."
        for record in records
    ]


def draw_hardest(records: Sequence[Record]) -> Figure:
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


FIGURE_3_2 = Experiment(
    shows="Figure 3.2",
    title="The two functions of four inputs with swaps value five, as tesseracts",
    settings=HARDEST,
    cell=hardest_cell,
    seconds=lambda settings: 2.0,
    analyse=analyse_hardest,
    draw=draw_hardest,
    conclude=conclude_hardest,
    claims=claims(
        {
            f"swaps-{number}: swaps/{number} = 5 ± 0": f"The class of function {number} has "
            f"swaps value five. | {number!s} | swaps"
            for number in HARDEST_NUMBERS
        },
        source="figure 3.2",
    ),
    errata=("S2",),
    notes=(
        "Full corners are true; a thick edge joins two inputs of different value. The tesseract is "
        "seen along its axis of eightfold symmetry, where no two corners fall together.",
        "Below, the inputs lie on the line given by the weights that reach the fewest changes, "
        "under the output of the network of theorem 3.3.2.",
    ),
)
"""Figure 3.2: the two hardest functions of four inputs as tesseracts, and along their best line."""


LEARNED_NUMBERS = (0, 1, 3, 6)
LEARNED_NAMES = ("constant", "AND", "x1", "XOR")
WHOLE = grid(number=list(LEARNED_NUMBERS), runs=1000, seed=0)
#: Points on each side of the grid on which a network is drawn, from -EDGE to EDGE.
GRID, EDGE = 81, 1.6


def learned_cell(number: int, runs: int, seed: int) -> dict[str, Any]:
    """Train networks 2-2-1 with ReLU on a class; keep how many succeed, and one that does."""
    import numpy as np
    import torch

    from inscape.boolean.truth_table import TruthTable
    from inscape.ensembles.fit_tiny import fit_tiny

    table = TruthTable(2, number)
    found = fit_tiny(
        (2, 2, 1),
        torch.from_numpy(table.points),
        torch.from_numpy(table.bits.astype(float)),
        seeds=range(seed, seed + runs),
        activation="relu",
        slope=0.0,
        threads=1,
        progress=False,
    )
    side = torch.linspace(-EDGE, EDGE, GRID)
    first = int(found.stopped.int().argmax())
    with torch.no_grad():
        seen = found.module(first)(torch.cartesian_prod(side, side))[:, 0]
    return {
        "successes": int(found.stopped.sum()),
        "epochs": float(found.epochs[found.stopped].double().median()),
        "positive": (seen.reshape(GRID, GRID).T > 0).numpy().astype(np.uint8),
    }


def conclude_learned(records: Sequence[Record]) -> list[str]:
    """Say how often the smallest network for all four learns each."""
    said = []
    for record in records:
        good, runs = record.values["successes"], record.settings["runs"]
        part = proportion_estimate(good, runs)
        said.append(
            f"{LEARNED_NAMES[LEARNED_NUMBERS.index(record.settings['number'])]}: "
            f"{100 * part.value:.1f}% of {runs} networks 2-2-1 with ReLU learn it "
            f"({100 * part.low:.1f}% to {100 * part.high:.1f}%)."
        )
    return said


def draw_learned(records: Sequence[Record]) -> Figure:
    """Draw each problem over the two sides of a network that solves it."""
    from matplotlib.colors import ListedColormap

    from inscape.boolean.truth_table import TruthTable
    from inscape.figures.boolean_networks import FALSE, TRUE
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, ORANGE, SKY

    figure, axes = panels(len(records), columns=4, size=(1.95, 2.35))
    for ax, record in zip(axes, records, strict=True):
        table = TruthTable(2, record.settings["number"])
        ax.imshow(
            record.values["positive"], cmap=ListedColormap([ORANGE, SKY]), alpha=0.35, vmin=0,
            vmax=1, origin="lower", extent=(-EDGE, EDGE, -EDGE, EDGE), interpolation="nearest",
        )  # fmt: skip
        colours = [TRUE if bit else FALSE for bit in table.bits]
        x, y = table.points.T
        ax.scatter(x, y, s=110, c=colours, edgecolors=BLUE, linewidths=1.5)
        rate = 100 * record.values["successes"] / record.settings["runs"]
        ax.set_title(f"{LEARNED_NAMES[LEARNED_NUMBERS.index(table.number)]}\n{rate:.0f}% learn it")
        ax.set(xticks=(-1, 1), yticks=(-1, 1), xlabel="x1")
    axes[0].set_ylabel("x2")
    return figure


FIGURE_3_4 = Experiment(
    shows="Figure 3.4",
    title="The four classes of two inputs, and how often two hidden ReLU units learn them",
    smoke=grid(WHOLE, runs=20),
    settings=WHOLE,
    departures={"smoke": ("20 networks.",)},
    cell=learned_cell,
    seconds=lambda settings: 2.0,
    draw=draw_learned,
    conclude=conclude_learned,
    notes=(
        "The figure of the text shows the problems alone; beneath them is the first of our "
        "networks that solves each, the smallest that can solve all four.",
        "Adam with learning rate 0.025 for up to 4000 epochs, binary cross entropy and He's normal "
        "law, as in section 3.4; biases start at zero.",
    ),
)
"""Figure 3.4: the four classes of two inputs as problems for a network with two hidden units."""
