"""Figure 3.3: two classes on a line are told apart by a wide network, or by a deep one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record
from inscape.papers.sattelberg._classes import FIRST, REGIONS, bands, curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Width and depth of the networks of theorem 3.3.3 that are built.
SHAPES = ((2, 2), (2, 3), (2, 5), (3, 2), (3, 3), (4, 3), (5, 2))
AXES: Axes = {"leak": [0.0, 0.1]}


def cell(leak: float) -> dict[str, Any]:
    """Build the networks of both theorems and count, exactly, what they do."""
    from inscape.boolean.line_networks import deep_classifier, wide_classifier
    from inscape.papers.sattelberg._line import line, zeros

    wide = line(wide_classifier(REGIONS, first=FIRST, leak=leak), -0.1, 1.1)
    deep = {shape: line(deep_classifier(*shape, leak=leak), 0.0, 1.0) for shape in SHAPES}
    return {
        "wide": wide.lists(),
        "wide_right": right(wide, REGIONS, FIRST),
        "deep": deep[2, 2].lists(),
        "deep_right": right(deep[2, 2], REGIONS, FIRST),
        "deep_changes": {f"{w}^{k}": len(zeros(found)) for (w, k), found in deep.items()},
        "parity": {f"{w}^{k}": parity(deep_classifier(w, k, leak=leak), w**k) for w, k in SHAPES},
    }


def right(line: Any, regions: Sequence[tuple[float, float]], first: float) -> int:
    """Return in how many regions the line has the right sign from end to end."""
    from inscape.papers.sattelberg._line import zeros

    places = zeros(line).tolist()
    found = 0
    for k, (low, high) in enumerate(regions):
        crossed = any(low < place < high for place in places)
        wanted = first * (-1) ** k
        found += not crossed and value(line, (low + high) / 2) * wanted > 0
    return found


def value(line: Any, x: float) -> float:
    """Return the height of a line at one place."""
    import torch

    place = int(torch.searchsorted(line.knots, x).clamp(1, len(line.knots) - 1)) - 1
    return float(line.intercepts[place] + line.slopes[place] * x)


def parity(model: Any, bits: int) -> int:
    """Return for how many numbers of ones among ``bits`` the network gives their parity.

    Theorem 3.3.4 with erratum S23: the number of ones, shrunk to [0, 1], is the input; all bits at
    zero are the negative class.
    """
    import torch

    ones = torch.arange(bits + 1, dtype=torch.float64)
    with torch.no_grad():
        found = model((ones / bits)[:, None])[:, 0]
    return int(((found > 0) == (ones % 2 == 1)).sum())


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return counts, the worst over both activations."""
    found: dict[str, float] = {}
    for record in records:
        counts = {"wide": record.values["wide_right"], "deep": record.values["deep_right"]}
        counts |= {f"deep/{k}": v for k, v in record.values["deep_changes"].items()}
        counts |= {f"parity/{k}": v for k, v in record.values["parity"].items()}
        for name, count in counts.items():
            found[name] = min(count, found.get(name, count))
    return {
        name: exact_estimate(
            count,
            len(records),
            method="exact cutting of the line; the lower count of ReLU and leaky ReLU",
        )
        for name, count in found.items()
    }


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the problem, the wide network and the deep one."""
    from inscape.figures.panels import panels
    from inscape.figures.style import RULE

    values = records[0].values
    figure, axes = panels(3, columns=1, size=(5.0, 1.5))
    titles = ("(a) four changes of class", "(b) width 4, depth 1", "(c) width 2, depth 2")
    for ax, title in zip(axes, titles, strict=True):
        bands(ax, REGIONS, FIRST)
        ax.set(title=title, xlim=(-0.1, 1.1), yticks=[])
    axes[0].axhline(0, color=RULE, lw=0.7)
    axes[0].set_ylim(-1, 1)
    curve(axes[1], values["wide"])
    curve(axes[2], values["deep"])
    return figure


EXPERIMENT = Experiment(
    shows="Figure 3.3",
    title="A problem with four changes of class, solved by width and by depth",
    smoke=AXES,
    laptop=AXES,
    paper=AXES,
    cell=cell,
    seconds=lambda settings: 4.0,
    analyse=analyse,
    draw=draw,
    claims=(
        Value(
            name="wide",
            says="A hidden layer of s - 1 = 4 units classifies s = 5 regions.",
            of="wide",
            published=5,
            tolerance=0,
            at=("4 units", "regions that are right"),
            source="theorem 3.3.2",
        ),
        Value(
            name="deep",
            says="Two hidden layers of two units classify the same five regions.",
            of="deep",
            published=5,
            tolerance=0,
            at=("2 layers of 2 units", "regions that are right"),
            source="figure 3.3c",
        ),
        *(
            Value(
                name=f"deep-{width}-{depth}",
                says=f"Width {width} and depth {depth} give {width**depth} changes of sign.",
                of=f"deep/{width}^{depth}",
                published=width**depth,
                tolerance=0,
                at=(f"width {width}, depth {depth}", "changes of sign"),
                source="theorem 3.3.3 with erratum S23",
            )
            for width, depth in SHAPES
        ),
        *(
            Value(
                name=f"parity-{width}-{depth}",
                says=f"Width {width} and depth {depth} solve parity of {width**depth} bits.",
                of=f"parity/{width}^{depth}",
                published=width**depth + 1,
                tolerance=0,
                at=(f"width {width}, depth {depth}", "numbers of ones that are right"),
                source="theorem 3.3.4 with erratum S23",
            )
            for width, depth in SHAPES
        ),
    ),
    errata=("S3", "S23", "S24"),
    notes=(
        "The networks are built by the formulas of appendices A.2 and A.3, once with ReLU and once "
        "with a leak of 0.1, and cut exactly.",
        "The regions of the example are ours: the figure prints no numbers.",
    ),
)
