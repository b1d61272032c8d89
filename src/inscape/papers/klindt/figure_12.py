"""Figure 12: a network that cannot tell x1 + x2 from x2 + x1 still does not add."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Trend
from inscape.lab.statistics import mean_estimate
from inscape.lab.store import Record
from inscape.papers.klindt import _maps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT = 1.5
ONCE: Axes = {"inverse_sigma": [1.0], "width": [1024], "n": [128], "steps": [50_000], "grid": [512]}
WHOLE: Axes = {"symmetric": [False, True], "seed": range(10), **ONCE}


def cell(
    symmetric: bool, seed: int, inverse_sigma: float, width: int, n: int, steps: int, grid: int
) -> dict[str, Any]:
    """Train a network, as it is or averaged over both orders of its inputs."""
    import numpy as np

    from inscape.papers.klindt import _addition as task

    data = task.disc_data(n, seed)
    net = task.trained(
        data,
        width=width,
        activation="tanh",
        steps=steps,
        seed=seed,
        inverse_sigma=inverse_sigma,
        symmetric=symmetric,
    )
    f = task.double(net, symmetric=symmetric)
    shown = task.shown_map(f, LIMIT)
    logs = shown.astype(float)
    found = task.errors(f, data, grid=grid)
    found["asymmetry"] = float(np.abs(logs - logs.T).mean())
    return found | ({"map": shown, "x": data.x.numpy()} if seed == 0 else {})


def seconds(settings: Any) -> float:
    """Guess the time of a cell."""
    points = settings["n"] * (1 + settings["symmetric"])
    return 1 + 1.1e-9 * float(settings["width"] * points * settings["steps"])


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how symmetric the maps are, and the ratio of errors with and without symmetry."""
    found = {}
    for name in ("mse_test", "mse_ood", "asymmetry"):
        for word, symmetric in (("plain", False), ("symmetric", True)):
            if values := _maps.by_seed(records, name, symmetric=symmetric):
                found[f"{name}, {word}"] = mean_estimate(list(values.values()))
        pair = (_maps.by_seed(records, name, symmetric=symmetric) for symmetric in (True, False))
        if (ratio := _maps.log_ratio(*pair)) is not None:
            found[f"{name}, symmetric over plain"] = ratio
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what symmetry brings."""
    found = analyse(records)
    names = {"mse_test": "test error", "mse_ood": "error beside the disc"}
    return [
        f"Forced symmetry multiplies the {words} by {10 ** found[key].value:.2g}."
        for name, words in names.items()
        if (key := f"{name}, symmetric over plain") in found
    ]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the map without and with symmetry."""
    row = []
    for title, symmetric in (("f", False), ("(f(x1, x2) + f(x2, x1)) / 2", True)):
        record = _maps.first_map(records, symmetric=symmetric)
        row += [(title, record)] if record is not None else []
    return _maps.rows_of_maps([row], LIMIT)


EXPERIMENT = Experiment(
    shows="Figure 12",
    title="Error of a tanh network whose output is averaged over the order of its inputs",
    smoke={
        "symmetric": [False, True],
        "seed": [0, 1],
        "inverse_sigma": [1.0],
        "width": [16],
        "n": [24],
        "steps": [40],
        "grid": [32],
    },
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("16 units, 24 points, 40 steps, two seeds.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="symmetric",
            says="Forcing commutativity makes the error map symmetric.",
            of="asymmetry, symmetric",
            side="below",
            bound=0.01,
            test="mean difference of log10 errors of mirrored points, t interval",
            source="A.2.7, figure 12",
        ),
        Trend(
            name="no-better",
            says="It does not lead to the right algorithm: the error beside the disc falls by less "
            "than a factor of 10.",
            of="mse_ood, symmetric over plain",
            side="above",
            bound=-1.0,
            test="log10 of the ratio of means, bootstrap over seeds",
            source="section 5, A.2.7; the factor is ours",
        ),
        Trend(
            name="not-exact",
            says="The symmetric network is far from the exact solution on test points.",
            of="mse_test, symmetric",
            side="above",
            bound=1e-10,
            test="mean over seeds, t interval",
            source="section 5, A.2.7; machine precision is below 1e-14",
        ),
    ),
    errata=("K1", "K2", "K3", "K10"),
    notes=(
        "The width is not printed: 1024, the largest of figure 1. One standard deviation for each "
        "weight matrix, biases scaled as in the released code.",
    ),
)
