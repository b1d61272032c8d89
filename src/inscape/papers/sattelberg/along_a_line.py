"""Two classes on a line: told apart by width and by depth, unit by unit and layer by layer."""

from collections.abc import Mapping, Sequence
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate

#: The example of figures 3.3, A.1 and A.2: five regions of alternating class, four changes.
REGIONS = ((0.0, 0.1), (0.16, 0.34), (0.42, 0.58), (0.64, 0.86), (0.9, 1.0))
#: The first region of the example is negative, as the networks of theorem 3.3.3 begin.
FIRST = -1.0


def bands(ax: Panel, regions: Sequence[Sequence[float]], first: float) -> None:
    """Draw the regions as bands in the colours of their class."""
    from inscape.figures.style import BLUE, VERMILION

    for k, (low, high) in enumerate(regions):
        positive = (first > 0) == (k % 2 == 0)
        ax.axvspan(low, high, color=BLUE if positive else VERMILION, alpha=0.18, lw=0)


def curve(ax: Panel, line: Mapping[str, Any], **looks: Any) -> None:
    """Draw a broken line and its corners above a line at zero."""
    from inscape.figures.style import INK, RULE

    ax.axhline(0, color=RULE, lw=0.7)
    ax.plot(line["knots"], line["values"], **{"color": INK, **looks})
    ax.plot(line["knots"][1:-1], line["values"][1:-1], ".", color=looks.get("color", INK), ms=4)


#: Width and depth of the networks of theorem 3.3.3 that are built.
SHAPES = ((2, 2), (2, 3), (2, 5), (3, 2), (3, 3), (4, 3), (5, 2))
CLASSES = grid(leak=[0.0, 0.1])


def classes_cell(leak: float) -> dict[str, Any]:
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


def analyse_classes(records: Sequence[Record]) -> dict[str, Estimate]:
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


def draw_classes(records: Sequence[Record]) -> Figure:
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


FIGURE_3_3 = Experiment(
    shows="Figure 3.3",
    title="A problem with four changes of class, solved by width and by depth",
    settings=CLASSES,
    cell=classes_cell,
    seconds=lambda settings: 4.0,
    analyse=analyse_classes,
    draw=draw_classes,
    claims=claims(
        {
            "wide: wide = 5 ± 0": "A hidden layer of s - 1 = 4 units classifies s = 5 regions. | "
            "4 units | regions that are right",
            "deep: deep = 5 ± 0": "Two hidden layers of two units classify the same five regions. "
            "| 2 layers of 2 units | regions that are right | figure 3.3c",
            **{
                f"deep-{width}-{depth}: deep/{width}^{depth} = {width**depth} ± 0": "Width "
                f"{width} and depth {depth} give {width**depth} changes of sign. | width {width}, "
                f"depth {depth} | changes of sign | theorem 3.3.3 with erratum S23"
                for width, depth in SHAPES
            },
            **{
                f"parity-{width}-{depth}: parity/{width}^{depth} = {width**depth + 1} ± 0": "Width "
                f"{width} and depth {depth} solve parity of {width**depth} bits. | width {width}, "
                f"depth {depth} | numbers of ones that are right | theorem 3.3.4 with erratum S23"
                for width, depth in SHAPES
            },
        },
        source="theorem 3.3.2",
    ),
    errata=("S3", "S23", "S24"),
    notes=(
        "The networks are built by the formulas of appendices A.2 and A.3, once with ReLU and once "
        "with a leak of 0.1, and cut exactly.",
        "The regions of the example are ours: the figure prints no numbers.",
    ),
)
"""Figure 3.3: two classes on a line are told apart by a wide network, or by a deep one."""


WIDTH = grid(leak=0.0)


def width_cell(leak: float) -> dict[str, Any]:
    """Return the line of the first k units of the network of theorem 3.3.2, for every k."""
    from inscape.boolean.line_networks import wide_classifier
    from inscape.papers.sattelberg._line import line

    whole = wide_classifier(REGIONS, first=FIRST, leak=leak)
    cut = [line(_first_units(whole, k), -0.1, 1.1) for k in range(1, len(REGIONS))]
    return {"lines": [one.lists() for one in cut]}


def _first_units(model: Any, count: int) -> Any:
    """Return the network without the units after the first ones."""
    from torch import nn

    from inscape.boolean.line_networks import linear

    first, bend, last = model
    weights = first.weight.detach()[:count], first.bias.detach()[:count]
    into = linear(last.weight.detach()[:, :count], last.bias.detach())
    return nn.Sequential(linear(*weights), bend, into).eval()


def analyse_width(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how often each line bends."""
    lines = records[0].values["lines"]
    counts = {f"bends/{k}": float(len(one["knots"]) - 2) for k, one in enumerate(lines, start=1)}
    return {name: exact_estimate(count) for name, count in counts.items()}


def draw_width(records: Sequence[Record]) -> Figure:
    """Draw the problem, and the line after each unit."""
    from inscape.figures.panels import panels
    from inscape.figures.style import RULE

    lines = records[0].values["lines"]
    figure, axes = panels(1 + len(lines), columns=1, size=(5.0, 1.2))
    for ax in axes:
        bands(ax, REGIONS, FIRST)
        ax.set(xlim=(-0.1, 1.1), yticks=[])
    axes[0].axhline(0, color=RULE, lw=0.7)
    axes[0].set(title="five regions", ylim=(-1, 1))
    for k, (ax, one) in enumerate(zip(axes[1:], lines, strict=True), start=1):
        curve(ax, one)
        ax.set_ylim(-3, 3)
        ax.set_title(f"{k} unit{'s' * (k > 1)}")
    return figure


FIGURE_A_1 = Experiment(
    shows="Figure A.1",
    title="Adding ReLU units one by one to a shallow network",
    settings=WIDTH,
    cell=width_cell,
    seconds=lambda settings: 3.0,
    analyse=analyse_width,
    draw=draw_width,
    claims=claims(
        {
            f"bends-{k}: bends/{k} = {k} ± 0": f"With {k} of its units the network bends {k} "
            f"times. | {k} units | bends"
            for k in range(1, len(REGIONS))
        },
        source="lemma A.2.1",
    ),
    errata=("S24",),
    notes=("The regions of the example are ours: the figure prints no numbers.",),
)
"""Figure A.1: units are added to a hidden layer one by one, and each turns the line once more."""


DEPTHS = (1, 2, 3, 4)
DEPTH = grid(width=2, leak=0.0)


def depth_cell(width: int, leak: float) -> dict[str, Any]:
    """Return the line of the network of theorem 3.3.3 at every depth."""
    from inscape.boolean.line_networks import deep_classifier
    from inscape.papers.sattelberg._line import line, zeros

    cut = [line(deep_classifier(width, depth, leak=leak), 0.0, 1.0) for depth in DEPTHS]
    return {
        "lines": [one.lists() for one in cut],
        "changes": [len(zeros(one)) for one in cut],
        "pieces": [len(one) for one in cut],
    }


def analyse_depth(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return pieces and changes of sign at every depth."""
    values = records[0].values
    counts = {f"changes/{k}": values["changes"][i] for i, k in enumerate(DEPTHS)}
    counts |= {f"pieces/{k}": values["pieces"][i] for i, k in enumerate(DEPTHS)}
    return {name: exact_estimate(count) for name, count in counts.items()}


def draw_depth(records: Sequence[Record]) -> Figure:
    """Draw the problem, and the line after each layer."""
    from inscape.figures.panels import panels
    from inscape.figures.style import RULE

    lines = records[0].values["lines"]
    figure, axes = panels(1 + len(lines), columns=1, size=(5.0, 1.2))
    for ax in axes:
        ax.set(xlim=(-0.1, 1.1), yticks=[])
    for ax in (axes[0], axes[2]):
        bands(ax, REGIONS, FIRST)
    axes[0].axhline(0, color=RULE, lw=0.7)
    axes[0].set(title="five regions", ylim=(-1, 1))
    for depth, ax, one in zip(DEPTHS, axes[1:], lines, strict=True):
        curve(ax, one)
        ax.set_title(f"{depth} hidden layer{'s' * (depth > 1)} of two units")
    return figure


FIGURE_A_2 = Experiment(
    shows="Figure A.2",
    title="Adding layers to a network of width two",
    settings=DEPTH,
    cell=depth_cell,
    seconds=lambda settings: 3.0,
    analyse=analyse_depth,
    draw=draw_depth,
    claims=claims(
        {
            f"{what}-{depth}: {what}/{depth} = {2**depth} ± 0": f"{depth} layers of two "
            f"units give {2**depth} {words} on [0, 1]. | depth {depth} | {words}"
            for what, words in (("changes", "changes of sign"), ("pieces", "straight pieces"))
            for depth in DEPTHS
        },
        source="theorem 3.3.3 with erratum S23",
    ),
    errata=("S23", "S24"),
)
"""Figure A.2: layers are added to a network of width two, and each folds the line once more."""
