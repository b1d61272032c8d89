"""Figure 6.4: how three units come to enclose a circle, step by step."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import proportion_of, resampled_statistic
from inscape.papers.sattelberg._toy import SETTINGS_NOTE, SOLVED

Array = npt.NDArray[Any]
#: Shares of the training at which the plane is cut.
MOMENTS = (0.0, 0.02, 0.05, 0.1, 0.3, 1.0)
#: The centre is flatter than this share of the median slope of the other six maps.
FLAT = 0.25
#: Degrees between neighbouring directions of the six others: 60, give or take a half.
LEAST, MOST = 30.0, 90.0
WHOLE = grid(width=[2, 3], n=1000, epochs=150, seed=list(range(30)))


def cell(width: int, n: int, epochs: int, seed: int) -> dict[str, Any]:
    """Train one network; keep the cells of the plane at six moments."""
    from inscape.papers.sattelberg import _toy
    from inscape.papers.sattelberg._planes import packed

    run = _toy.trained("circle", [width], n=n, epochs=epochs, seed=seed, checkpoints=100)
    moments = _toy.states(run, MOMENTS if width == 3 else (1.0,))
    found: dict[str, Any] = {
        "accuracy": _toy.accuracy(run.model, *_toy.points("circle", n, seed)),
        "steps": list(moments),
    }
    for step, state in moments.items():
        found |= packed(_toy.cut(_toy.loaded(state)), f"{step}/")
    return found


def centre_and_hexagon(slopes: Array) -> bool:
    """Tell whether slopes are one near zero, and six around it in about even directions."""
    if len(slopes) != 7:
        return False
    sizes = np.linalg.norm(slopes, axis=1)
    order = np.argsort(sizes)
    around = slopes[order[1:]]
    angles = np.sort(np.degrees(np.arctan2(around[:, 1], around[:, 0])))
    gaps = np.diff(angles, append=angles[0] + 360)
    flat = sizes[order[0]] < FLAT * np.median(sizes[order[1:]])
    return bool(flat and gaps.min() >= LEAST and gaps.max() <= MOST)


def closed_sides(pieces: Array, half: float = 1.0) -> int:
    """Return the number of sides of a boundary that stays inside of the square, else 0."""
    inside = len(pieces) > 0 and float(np.abs(pieces).max()) < half * (1 - 1e-6)
    return len(pieces) if inside else 0


def final(values: Mapping[str, Any]) -> Any:
    """Return the cells of the trained network."""
    from inscape.papers.sattelberg._planes import Cells

    return Cells.of(values, f"{values['steps'][-1]}/")


def solved(records: Sequence[Record]) -> list[Record]:
    """Return the records of networks of three units that tell circle and annulus apart."""
    good = (record for record in records if record.values["accuracy"] >= SOLVED)
    return [record for record in good if record.settings["width"] == 3]


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return shares of the networks that solve the problem, and the best of two units."""
    from inscape.papers.sattelberg._planes import boundary

    found: dict[str, Estimate] = {}
    two = [r.values["accuracy"] for r in records if r.settings["width"] == 2]
    if two:
        found["best of two units"] = resampled_statistic(two, max)
    three = [r.values["accuracy"] >= SOLVED for r in records if r.settings["width"] == 3]
    if three:
        found["solved by three units"] = proportion_of(three)
    if good := [final(record.values) for record in solved(records)]:
        found["hexagon of coefficients"] = proportion_of(
            [centre_and_hexagon(cells.regions[:, 0, :2]) for cells in good]
        )
        found["hexagonal boundary"] = proportion_of(
            [closed_sides(boundary(cells)) == 6 for cells in good]
        )
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how many networks solve the problem."""
    three = [r.values["accuracy"] for r in records if r.settings["width"] == 3]
    count = sum(one >= SOLVED for one in three)
    return [
        f"{count} of {len(three)} networks of three units get {SOLVED:.0%} of the points right; "
        "the figure shows the first of them."
    ]


def draw(records: Sequence[Record]) -> Figure:
    """Draw regions and boundary above, coefficients below, from left to right in time."""
    from inscape.figures.panels import panels
    from inscape.papers.sattelberg._planes import Cells, bends, class_lines, dual, signs

    values = (solved(records) or [r for r in records if r.settings["width"] == 3])[0].values
    steps = values["steps"]
    figure, axes = panels(2 * len(steps), columns=len(steps), size=(1.6, 1.8))
    for k, step in enumerate(steps):
        cells = Cells.of(values, f"{step}/")
        signs(axes[k], cells)
        bends(axes[k], cells, 0)
        class_lines(axes[k], cells, "black")
        axes[k].set_title(f"step {step}")
        dual(axes[len(steps) + k], cells.regions[:, 0])
    return figure


EXPERIMENT = Experiment(
    shows="Figure 6.4",
    title="Three hidden units learn to tell a circle from an annulus",
    smoke=grid(width=[2, 3], n=200, epochs=3, seed=0),
    settings=WHOLE,
    departures={"smoke": ("200 points, three epochs, one network of each width.",)},
    cell=cell,
    seconds=lambda settings: float(3 + settings["epochs"] * settings["n"] / 32 * 5e-4),
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "hexagon: hexagon of coefficients > 0.5": "The final coefficients form a centre and a "
            "hexagon around it (in most networks that solve the problem).",
            "boundary: hexagonal boundary > 0.5": "The decision boundary is a hexagon (in most "
            "networks that solve the problem).",
            f"two-units: best of two units < {SOLVED}": "Two hidden units cannot enclose the "
            "circle. | best accuracy of all networks of two units",
        },
        source="section 6.2",
        test="share of the networks that solve the problem, Wilson's interval",
    ),
    notes=(
        SETTINGS_NOTE,
        "A centre and a hexagon are seven maps, of which the flattest has less than a quarter of "
        "the median slope of the others, and these point in directions 30 to 90 degrees apart.",
        "The figure shows one network. Of ours only those count that get 99% of their points "
        "right, since three units often fail.",
    ),
)
