"""Figure 7: straight ways between initial, trained and exact weights, last layer re-solved."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Mean, Quantities
from inscape.lab.records import Record, Records

PATHS = ("start to trained", "start to exact", "trained to exact")
#: Even places, of which one is left out near the end, and ever finer ones towards it.
PLACES = (*np.linspace(0, 1, 51)[:-1].tolist(), *(1 - 10.0**-k for k in np.arange(2, 8, 0.5)), 1.0)
EVEN = 51
#: Errors below this are rounding.
LEAST = 1e-36
PAPER = grid(seed=range(10), width=256, n=128, steps=50_000)


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


def _at(fraction: float) -> int:
    """Return the place of a coefficient."""
    return int(np.searchsorted(np.array(PLACES), fraction - 1e-9))


FIRST, SECOND, THIRD = PATHS
#: Of each quantity the line that it is taken of, and how.
MEASURES: dict[str, tuple[str, Callable[[npt.NDArray[Any]], float]]] = {
    "falls to trained": (FIRST, _falls),
    "falls to exact": (SECOND, _falls),
    "end at exact": (SECOND, lambda line: line[-1]),
    "range to trained, solved": (f"{FIRST}, solved", np.ptp),
    "range to trained": (FIRST, np.ptp),
    "to 0.9 of exact, solved": (f"{SECOND}, solved", lambda line: line[_at(0.9)] - line[0]),
    "from 0.99 of exact, solved": (f"{SECOND}, solved", lambda line: line[-1] - line[_at(0.99)]),
    "rise between": (THIRD, _rise),
    "rise between, solved": (f"{THIRD}, solved", _rise),
}


def _taken(line: str, of: Callable[[npt.NDArray[Any]], float]) -> Callable[[Record], float]:
    return lambda record: float(of(np.array(record.values[line])))


def _lower(record: Record) -> float:
    """Return the part of the way to the trained weights that is lower than that to exact ones."""
    trained, exact = (np.array(record.values[path])[:EVEN] for path in (FIRST, SECOND))
    return float(np.mean(trained < exact))


QUANTITIES = Quantities(
    {
        **{
            name: Mean(_taken(*measure), interval="bootstrap") for name, measure in MEASURES.items()
        },
        "trained lower": Mean(_lower, interval="bootstrap"),
        "exact below trained": Mean(
            lambda r: r.values[SECOND][-1] - r.values[FIRST][-1], interval="bootstrap"
        ),
    }
)


def conclude(records: Records) -> list[str]:
    """Say how large the steps and barriers are."""
    found = QUANTITIES(records)
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


def draw(records: Records) -> Figure:
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


EXPERIMENT = Experiment(
    shows="Figure 7",
    title="Test error on straight ways between initial, trained and exact weights",
    smoke=grid(seed=[0, 1], width=8, n=12, steps=10),
    settings=PAPER,
    departures={"smoke": ("8 units, 12 points, 10 steps, two seeds.",)},
    cell=cell,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                f"monotone-to-{end}: falls to {end} > 0.95": "The test error falls all the way "
                f"from the initial to the {end} weights. | share of steps at which it falls, "
                "bootstrap over seeds"
                for end in ("trained", "exact")
            },
            "trained-lower: trained lower > 0.5": "The way to the trained weights is lower than "
            "that to the exact ones for most of its length. | share of the coefficients, "
            "bootstrap over seeds",
            "exact-ends-lower: exact below trained < -3": "The way to the exact weights ends much "
            "lower: three decades or more. | decades between the ends, bootstrap over seeds",
            "exact-is-exact: end at exact < -13": "The exact solution has a test error of machine "
            "precision (single, squared). | log10 of the error, bootstrap over seeds",
            "flat-modulo-ols: range to trained, solved < 1": "With the last layer re-solved the "
            "error is nearly constant from the initial to the trained weights: within one decade. "
            "| decades between largest and smallest, bootstrap over seeds",
            "flat-to-exact-modulo-ols: to 0.9 of exact, solved > -1": "With the last layer "
            "re-solved the error is nearly constant for nine tenths of the way to the exact "
            "weights: it falls by less than one decade. | decades from the start to 0.9, "
            "bootstrap over seeds",
            "drop-at-exact-modulo-ols: from 0.99 of exact, solved < -3": "It drops sharply next "
            "to the exact weights: three decades or more in the last hundredth. | decades from "
            "0.99 to the end, bootstrap over seeds",
            f"barrier: rise between > {float(np.log10(2))}": "Between trained and exact weights "
            "there is a barrier: the error doubles or worse.",
            f"no-barrier-modulo-ols: rise between, solved < {float(np.log10(2))}": "The barrier "
            "disappears with the last layer re-solved: the error does not double.",
        },
        source="A.2.2, figure 7; the bound is ours",
        test="decades above the higher end, bootstrap over seeds",
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
