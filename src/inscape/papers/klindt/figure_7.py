"""Figure 7: straight ways between initial, trained and exact weights, last layer re-solved."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Axes, Estimate, Experiment, Settings, Trend
from inscape.lab.statistics import bootstrap_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATHS = ("start to trained", "start to exact", "trained to exact")
#: Even places, of which one is left out near the end, and ever finer ones towards it.
PLACES = (*np.linspace(0, 1, 51)[:-1].tolist(), *(1 - 10.0**-k for k in np.arange(2, 8, 0.5)), 1.0)
EVEN = 51
#: Errors below this are rounding.
LEAST = 1e-36
PAPER: Axes = {"seed": range(10), "width": [256], "n": [128], "steps": [50_000]}


def cell(seed: int, width: int, n: int, steps: int) -> dict[str, Any]:
    """Train a network, and return the test error on three straight ways, plain and re-solved."""
    import torch

    from inscape.landscape import interpolation
    from inscape.papers.klindt import _addition as task

    data = task.disc_data(n, seed)
    assert data.x_test is not None  # the disc comes with test points
    start = task.network(width, "relu", normal=False, seed=seed).double()
    trained = task.trained(data, width=width, activation="relu", steps=steps, seed=seed).double()
    exact = task.exact_solution(units=width)
    x, test = (part.double() for part in (data.x, data.x_test))
    found: dict[str, Any] = {}
    pairs = ((start, trained), (start, exact), (trained, exact))
    for name, (one, two) in zip(PATHS, pairs, strict=True):
        way = interpolation(
            one,
            test,
            test.sum(1, keepdim=True),
            other=two,
            at=torch.tensor(PLACES, dtype=torch.float64),
            solve=True,
            solve_on=(x, x.sum(1, keepdim=True)),
            bias="zero",
        )
        found[name] = _logs([row["loss"] for row in way.rows()])
        found[f"{name}, solved"] = _logs([row["solved"] for row in way.rows()])
    return found


def _logs(losses: Sequence[Any]) -> list[float]:
    """Return log10, to six digits."""
    return [round(float(np.log10(max(loss, LEAST))), 6) for loss in losses]


def seconds(settings: Settings) -> float:
    """Guess the time of a cell."""
    return 3 + 7e-10 * float(settings["width"] * settings["n"] * settings["steps"])


def _falls(line: npt.NDArray[Any]) -> float:
    """Return the share of steps from place to place at which the error falls."""
    return float((np.diff(line) < 0).mean())


def _rise(line: npt.NDArray[Any]) -> float:
    """Return how many decades the way rises above the higher of its ends."""
    return float(line.max() - max(line[0], line[-1]))


def _climb(line: npt.NDArray[Any]) -> float:
    """Return how many decades a place lies above an earlier one, at most."""
    return float((line - np.minimum.accumulate(line)).max())


def _measures() -> dict[str, tuple[str, Callable[[npt.NDArray[Any]], float]]]:
    """Return of each quantity the line that it is taken of, and how."""
    at = np.array(PLACES)
    most, last = int(np.searchsorted(at, 0.9 - 1e-9)), int(np.searchsorted(at, 0.99 - 1e-9))
    first, second, third = PATHS
    return {
        "falls to trained": (first, _falls),
        "falls to exact": (second, _falls),
        "end at exact": (second, lambda line: float(line[-1])),
        "range to trained, solved": (f"{first}, solved", np.ptp),
        "range to trained": (first, np.ptp),
        "to 0.9 of exact, solved": (f"{second}, solved", lambda line: line[most] - line[0]),
        "from 0.99 of exact, solved": (f"{second}, solved", lambda line: line[-1] - line[last]),
        "rise between": (third, _rise),
        "rise between, solved": (f"{third}, solved", _rise),
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return quantities of the ways, in decades, with intervals over seeds."""
    found = {
        name: bootstrap_estimate([float(of(np.array(r.values[line]))) for r in records])
        for name, (line, of) in _measures().items()
    }
    lower = [
        float(np.mean(np.array(r.values[PATHS[0]])[:EVEN] < np.array(r.values[PATHS[1]])[:EVEN]))
        for r in records
    ]
    gaps = [r.values[PATHS[1]][-1] - r.values[PATHS[0]][-1] for r in records]
    return {
        **found,
        "trained lower": bootstrap_estimate(lower),
        "exact below trained": bootstrap_estimate(gaps),
    }


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how large the steps and barriers are."""
    found = analyse(records)
    rises = {
        end: max(_climb(np.array(r.values[path])) for r in records)
        for end, path in (("trained", PATHS[0]), ("exact", PATHS[1]))
    }
    return [
        f"Where the error does not fall on the way from the start, it climbs by at most "
        f"{rises['trained']:.2g} decades above an earlier place (to trained weights) and "
        f"{rises['exact']:.2g} (to exact ones).",
        f"From the start to the trained weights the test error falls by "
        f"{found['range to trained'].value:.1f} decades, with the last layer re-solved it moves "
        f"within {found['range to trained, solved'].value:.1f}.",
        f"Between trained and exact weights it rises {found['rise between'].value:.1f} decades "
        f"above the trained network, re-solved {found['rise between, solved'].value:.1f}.",
    ]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the errors against the coefficient (above) and against its number (below)."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, GREEN, ORANGE, quiet_grid

    columns = [
        ("plain", [(PATHS[0], BLUE, "to trained"), (PATHS[1], ORANGE, "to exact")]),
        (
            "last layer re-solved",
            [
                (f"{PATHS[0]}, solved", BLUE, "to trained"),
                (f"{PATHS[1]}, solved", ORANGE, "to exact"),
            ],
        ),
        ("trained to exact", [(PATHS[2], BLUE, "plain"), (f"{PATHS[2]}, solved", GREEN, "solved")]),
    ]
    figure, axes = panels(6, columns=3, size=(2.6, 2.2))
    for k, ax in enumerate(axes):
        title, lines = columns[k % 3]
        at = np.array(PLACES) if k < 3 else np.arange(len(PLACES))
        for name, color, label in lines:
            shown = np.array([r.values[name] for r in records])
            ax.plot(at, shown.T, color=color, linewidth=0.5, alpha=0.3)
            ax.plot(at, shown.mean(0), color=color, label=label)
        ax.set(
            title=title if k < 3 else "", xlabel="coefficient" if k < 3 else "number of the place"
        )
        quiet_grid(ax)
        if k < 3:
            ax.legend(fontsize=7)
    for ax in axes[::3]:
        ax.set_ylabel("log10 test error")
    return figure


def _trend(name: str, says: str, of: str, side: Any, bound: float, test: str) -> Trend:
    return Trend(
        name=name,
        says=says,
        of=of,
        side=side,
        bound=bound,
        test=f"{test}, bootstrap over seeds",
        source="A.2.2, figure 7; the bound is ours",
    )


EXPERIMENT = Experiment(
    shows="Figure 7",
    title="Test error on straight ways between initial, trained and exact weights",
    smoke={"seed": [0, 1], "width": [8], "n": [12], "steps": [10]},
    laptop=PAPER,
    paper=PAPER,
    departures={"smoke": ("8 units, 12 points, 10 steps, two seeds.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        *(
            _trend(
                f"monotone-to-{end}",
                f"The test error falls all the way from the initial to the {end} weights.",
                f"falls to {end}",
                "above",
                0.95,
                "share of steps at which it falls",
            )
            for end in ("trained", "exact")
        ),
        _trend(
            "trained-lower",
            "The way to the trained weights is lower than that to the exact ones for most of its "
            "length.",
            "trained lower",
            "above",
            0.5,
            "share of the coefficients",
        ),
        _trend(
            "exact-ends-lower",
            "The way to the exact weights ends much lower: three decades or more.",
            "exact below trained",
            "below",
            -3,
            "decades between the ends",
        ),
        _trend(
            "exact-is-exact",
            "The exact solution has a test error of machine precision (single, squared).",
            "end at exact",
            "below",
            -13,
            "log10 of the error",
        ),
        _trend(
            "flat-modulo-ols",
            "With the last layer re-solved the error is nearly constant from the initial to the "
            "trained weights: within one decade.",
            "range to trained, solved",
            "below",
            1,
            "decades between largest and smallest",
        ),
        _trend(
            "flat-to-exact-modulo-ols",
            "With the last layer re-solved the error is nearly constant for nine tenths of the way "
            "to the exact weights: it falls by less than one decade.",
            "to 0.9 of exact, solved",
            "above",
            -1,
            "decades from the start to 0.9",
        ),
        _trend(
            "drop-at-exact-modulo-ols",
            "It drops sharply next to the exact weights: three decades or more in the last "
            "hundredth.",
            "from 0.99 of exact, solved",
            "below",
            -3,
            "decades from 0.99 to the end",
        ),
        _trend(
            "barrier",
            "Between trained and exact weights there is a barrier: the error doubles or worse.",
            "rise between",
            "above",
            float(np.log10(2)),
            "decades above the higher end",
        ),
        _trend(
            "no-barrier-modulo-ols",
            "The barrier disappears with the last layer re-solved: the error does not double.",
            "rise between, solved",
            "below",
            float(np.log10(2)),
            "decades above the higher end",
        ),
    ),
    errata=("K4", "K5"),
    notes=(
        "The exact solution has four units; the other 252 are zero, which the paper leaves open. "
        "Its weights are 1 and -1.",
        "The coefficients are 50 even ones and twelve ever closer to 1; the paper's are unknown.",
        "The last layer is solved on the training points with b2 = 0 (Eq. 9 with H of one row for "
        "each point) and judged on 1280 test points, in double precision.",
    ),
)
