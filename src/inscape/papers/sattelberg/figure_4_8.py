"""Figure 4.8: balls are enclosed as often in eight dimensions as in two, but less exactly."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.papers.sattelberg._disc import SHAPES
from inscape.papers.sattelberg.enclosing_rates import mean, wilson

LEVELS = (0.95, 0.98, 0.99, 0.9999)
DIMENSIONS = list(range(2, 9))
INITS = ("pytorch", "he_normal")
#: How the outer radius of the shell follows from its inner one.
OUTER = ("root n", "root 2")
JUDGED = {"init": "pytorch", "outer": "root n"}
LEAKS = (0.0, 0.01)
#: Difference of shares between 2 and 8 dimensions that still counts as constant.
CONSTANT = 0.2
PAPER = grid(
    init=list(INITS),
    outer=list(OUTER),
    leak=list(LEAKS),
    dimension=DIMENSIONS,
    networks=100,
    epochs=1000,
    points=10_000,
)
LAPTOP = grid(PAPER, init="pytorch", outer="root n", epochs=100)
SMOKE = grid(LAPTOP, dimension=[2, 8], networks=4, epochs=2, points=200)


def cell(
    init: str, outer: str, leak: float, dimension: int, networks: int, epochs: int, points: int
) -> dict[str, Any]:
    """Train networks in one dimension, and count test points and shapes."""
    from inscape.papers.sattelberg._disc import counts, drawn, right, shape_names, targets, trained
    from inscape.papers.sattelberg._seeds import own_seed

    place = INITS.index(init), OUTER.index(outer), round(1000 * leak), dimension
    seeds = [own_seed(48, *place, k) for k in range(networks)]
    ratio = sqrt(dimension if outer == "root n" else 2)
    train, test = drawn(
        seeds, n=points, n_test=points, dimension=dimension, normalise=True, outer=ratio
    )
    settings: dict[str, Any] = {"loss": "BCE", "leak": leak, "batch": 100, "epochs": epochs}
    done = trained(train[0], targets(train[1], "circle"), seeds, init=init, cut=0.0, **settings)
    tested = right(done.weights, *test, leak=leak)
    names = shape_names(done.weights.numpy(), dimension, leak)
    return {
        "test": tested,
        "best_train": done.best_right.tolist(),
        "diverged": int((done.diverged >= 0).sum()),
        "shapes": counts(names, [True] * networks),
        "shapes_of_successes": counts(names, [k >= LEVELS[0] * points for k in tested]),
    }


def chosen(records: Sequence[Record], **choice: str) -> list[Record]:
    """Return the records of one choice of initialisation and outer radius, by dimension."""
    wanted = JUDGED | choice
    kept = [r for r in records if all(r.settings[key] == value for key, value in wanted.items())]
    return sorted(kept, key=lambda record: (record.settings["leak"], record.settings["dimension"]))


def reached(record: Record, level: float, key: str = "test") -> tuple[int, int]:
    """Return how many networks have a share of the points right, and of how many."""
    found = record.values[key]
    return sum(k >= level * record.settings["points"] for k in found), len(found)


def closed(record: Record) -> tuple[int, int]:
    """Return how many networks enclose a region, and of how many."""
    shapes = record.values["shapes"]
    total = sum(shapes.values())
    return total - shapes["open"], total


def analyse(records: Sequence[Record], **choice: str) -> dict[str, Estimate]:
    """Return for both activations how shares change from the lowest dimension to the highest."""
    found = {}
    kept = chosen(records, **choice)
    for leak in sorted({record.settings["leak"] for record in kept}):
        some = [record for record in kept if record.settings["leak"] == leak]
        for level in LEVELS:
            pairs = [reached(record, level) for record in (some[-1], some[0])]
            found[f"{level} with leak {leak:g}"] = mean(pairs, [1.0, -1.0])
        pairs = [closed(record) for record in (some[-1], some[0])]
        found[f"closed with leak {leak:g}"] = mean(pairs, [1.0, -1.0])
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what the other choices give, and which shapes were reached."""
    said = []
    for choice in sorted(
        {(r.settings["init"], r.settings["outer"]) for r in records}, reverse=True
    ):
        some = chosen(records, init=choice[0], outer=choice[1])
        for leak in sorted({record.settings["leak"] for record in some}):
            line = [record for record in some if record.settings["leak"] == leak]
            shares = "; ".join(
                f"{level:g}: " + ", ".join(f"{reached(r, level)[0]}" for r in line)
                for level in LEVELS
            )
            said.append(
                f"Weights of {choice[0]}, r3 = {choice[1]} times r2, leak {leak:g}: networks that "
                f"reach each share of the test points, by dimension, are {shares}."
            )
    for record in chosen(records):
        if record.settings["dimension"] in (min(DIMENSIONS), max(DIMENSIONS)):
            words = ", ".join(f"{record.values['shapes'][name]} {name}" for name in SHAPES)
            said.append(
                f"In {record.settings['dimension']} dimensions with leak "
                f"{record.settings['leak']:g} networks reached: {words}."
            )
    return said


def draw(records: Sequence[Record]) -> Figure:
    """Draw the counts for every threshold, and below the shapes that were reached."""
    from inscape.figures.panels import panels
    from inscape.figures.style import CATEGORIES, quiet_grid

    kept = chosen(records)
    leaks = sorted({record.settings["leak"] for record in kept})
    figure, axes = panels(2 * len(leaks), columns=len(leaks), size=(3.2, 2.5))
    for at, leak in enumerate(leaks):
        line = [record for record in kept if record.settings["leak"] == leak]
        n = [record.settings["dimension"] for record in line]
        top, below = axes[at], axes[len(leaks) + at]
        for level, colour, mark in zip(LEVELS, CATEGORIES, "os^D", strict=False):
            found = [wilson(*reached(record, level)) for record in line]
            top.fill_between(n, [100 * e.low for e in found], [100 * e.high for e in found],
                             color=colour, alpha=0.15, linewidth=0)  # fmt: skip
            heights = [100 * e.value for e in found]
            top.plot(n, heights, color=colour, marker=mark, ms=4, label=f"{level:g}")
        _stacks(below, line, n)
        top.set(title="ReLU" if leak == 0 else f"leaky ReLU, {leak:g}", ylim=(0, 103))
        below.set(xlabel="dimension n", ylim=(0, 100))
        quiet_grid(top)
    axes[0].set_ylabel("networks of 100")
    axes[len(leaks)].set_ylabel("shape reached, of 100")
    axes[0].legend(title="test accuracy", fontsize=7, title_fontsize=7)
    names = axes[len(leaks)].get_legend_handles_labels()
    figure.legend(*names, loc="outside lower center", ncols=len(SHAPES), fontsize=7)
    return figure


def _stacks(ax: Any, line: Sequence[Record], n: Sequence[int]) -> None:
    from inscape.figures.style import BLUE, ORANGE, RULE, SKY

    bottom = [0.0] * len(line)
    for name, colour in zip(SHAPES, (BLUE, ORANGE, SKY, RULE), strict=True):
        part = [100 * r.values["shapes"][name] / r.settings["networks"] for r in line]
        ax.bar(n, part, bottom=bottom, color=colour, width=0.75, label=name)
        bottom = [low + high for low, high in zip(bottom, part, strict=True)]


def _word(leak: float) -> str:
    return f"a leak of {leak:g}" if leak else "a ReLU"


EXPERIMENT = Experiment(
    shows="Figure 4.8",
    title="Networks of 100 that tell a ball from a shell in 2 to 8 dimensions",
    smoke=SMOKE,
    laptop=LAPTOP,
    paper=PAPER,
    departures={
        "smoke": ("Four networks in 2 and 8 dimensions, two epochs, 200 points.",),
        "laptop": (
            "100 epochs instead of 1,000, and only the choices that claims are judged with.",
        ),
    },
    keeps=lambda settings: bool(settings["init"] == "pytorch" or settings["outer"] == "root n"),
    cell=cell,
    seconds=lambda settings: (
        3
        + (9e-9 + 2e-9 * settings["dimension"])
        * settings["networks"]
        * settings["epochs"]
        * settings["points"]
    ),
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                f"constant-{leak:g}: 0.95 with leak {leak:g} between {-CONSTANT} and "
                f"{CONSTANT}": "With "
                f"{_word(leak)} the number of networks with a small error stays the same from 2 to "
                "8 dimensions."
                for leak in LEAKS
            },
            **{
                f"falls-{leak:g}: 0.9999 with leak {leak:g} < 0": f"With {_word(leak)} fewer "
                "networks are near zero error in 8 dimensions than in 2. | difference of shares "
                "at accuracy 0.9999, binomial spread"
                for leak in LEAKS
            },
            **{
                f"closed-{leak:g}: closed with leak {leak:g} between {-CONSTANT} and "
                f"{CONSTANT}": "With "
                f"{_word(leak)} a network constructs a hyperoctahedron or an expanded simplex as "
                "likely in 8 dimensions as in 2. | difference of shares of networks with a closed "
                "region, binomial spread | section 4.2.2, last paragraph"
                for leak in LEAKS
            },
        },
        source="section 4.2.2, figure 4.8",
        test="difference of shares at accuracy 0.95, binomial spread",
    ),
    notes=(
        "Epochs, learning rate and the outer radius in n dimensions are not in the text: 1,000 "
        "epochs and 0.01 as in section 4.2.1, r2 = sqrt(n) r1, and r3 = sqrt(n) r2, which is the "
        "printed rule at n = 2. Claims are judged with these; r3 = sqrt(2) r2 and normal weights "
        "after He are run beside them at paper scale.",
        "Accuracy is that of the last weights on 10,000 test points of their own for each network.",
        "Which part is labelled 1 makes no difference in law for the cross entropy.",
        "Constant is taken as a difference of at most 20 of 100, written before the run.",
        "A closed region that is between both shapes counts as closed.",
    ),
)
