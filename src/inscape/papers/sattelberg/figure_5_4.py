"""Figure 5.4: sine by 1, 3 and 9 chords, and the chords as points of slope and intercept."""

from collections.abc import Sequence
from itertools import pairwise
from math import cos, pi, sin
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate

AXES = grid(pieces=[1, 3, 9])


def cell(pieces: int) -> dict[str, Any]:
    """Return the chords of sine on equal parts of [-pi, pi], from a network that draws them."""
    import torch

    from inscape.boolean.line_networks import through
    from inscape.papers.sattelberg._line import line

    x = torch.linspace(-pi, pi, pieces + 1, dtype=torch.float64)
    found = line(through(x, torch.sin(x)), -pi, pi)
    return {**found.lists(), "mse": error(found.knots.tolist(), found.values.tolist())}


def error(knots: Sequence[float], values: Sequence[float]) -> float:
    r"""Return the mean of :math:`(\sin x - l(x))^2` over the interval of a broken line, exactly."""
    whole = 0.0
    for k in range(len(knots) - 1):
        a, b = knots[k], knots[k + 1]
        m = (values[k + 1] - values[k]) / (b - a)
        c = values[k] - m * a
        squares = (b - a) / 2 - (sin(2 * b) - sin(2 * a)) / 4
        # The integral of sin(x) (c + m x) is -c cos x + m (sin x - x cos x).
        mixed = -c * (cos(b) - cos(a)) + m * (sin(b) - b * cos(b) - sin(a) + a * cos(a))
        own = c * c * (b - a) + c * m * (b * b - a * a) + m * m * (b**3 - a**3) / 3
        whole += squares - 2 * mixed + own
    return whole / (knots[-1] - knots[0])


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the errors, how they fall, and how far the chords are from the tangents' curve."""
    errors = {record.settings["pieces"]: record.values["mse"] for record in records}
    found = {f"mse/{pieces}": value for pieces, value in errors.items()}
    found |= {f"pieces/{r.settings['pieces']}": float(len(r.values["slopes"])) for r in records}
    ordered = [value for _, value in sorted(errors.items())]
    steps = [a - b for a, b in pairwise(ordered)]
    if steps:
        found["falls"] = min(steps)
    return {name: exact_estimate(value) for name, value in found.items()}


def draw(records: Sequence[Record]) -> Figure:
    """Draw chords on the left and their slopes and intercepts on the right; tangents last."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, RULE, VERMILION

    figure, axes = panels(2 * len(records) + 2, columns=2, size=(3.0, 1.6))
    grid = [-pi + 2 * pi * k / 200 for k in range(201)]
    sine = [sin(x) for x in grid]
    tangents = [cos(x) for x in grid], [sin(x) - x * cos(x) for x in grid]
    for k in range(len(records) + 1):
        left, right = axes[2 * k], axes[2 * k + 1]
        chords = k < len(records)
        left.plot(grid, sine, color=RULE if chords else BLUE)
        right.plot(*tangents, color=RULE if chords else BLUE)
        if chords:
            values = records[k].values
            left.plot(values["knots"], values["values"], ".-", color=BLUE, ms=4)
            right.plot(values["slopes"], values["intercepts"], "o", color=VERMILION, ms=4)
        left.set_ylabel(_words(records[k].settings["pieces"]) if chords else "tangents")
        right.set_ylabel("intercept")
    axes[-2].set_xlabel("x")
    axes[-1].set_xlabel("slope")
    return figure


def _words(chords: int) -> str:
    return f"{chords} chord{'s' * (chords > 1)}"


EXPERIMENT = Experiment(
    shows="Figure 5.4",
    title="Sine by 1, 3 and 9 chords, and their slopes and intercepts",
    settings=AXES,
    cell=cell,
    seconds=lambda settings: 1.0,
    analyse=analyse,
    draw=draw,
    claims=claims(
        {
            "zero: mse/1 = 0.5 ± 1e-12": "The zero function, which is the single chord, has a "
            "mean squared error of 0.5. | 1 chord | mean squared error",
            **{
                f"pieces-{pieces}: pieces/{pieces} = {pieces} ± 0": "The approximation by "
                f"{pieces} lines has {pieces} linear region{'s' * (pieces > 1)}. | "
                f"{_words(pieces)} | linear regions | figure 5.4"
                for pieces in (1, 3, 9)
            },
            "better: falls > 0": "More lines give increasingly reasonable approximations. | | "
            "section 5.3",
        },
        source="Eq. (5.16)",
        test="smallest decrease of the exact error",
    ),
)
