"""Figure 12: a network that cannot tell x1 + x2 from x2 + x1 still does not add."""

from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Column, LogRatio, Mean, Quantities
from inscape.lab.records import Records
from inscape.papers.klindt import _maps

LIMIT = 1.5
ONCE = grid(inverse_sigma=1.0, width=1024, n=128, steps=50_000, grid=512)
WHOLE = grid(symmetric=[False, True], seed=range(10), **ONCE)


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


NAMES = ("mse_test", "mse_ood", "asymmetry")
QUANTITIES = Quantities(
    {
        **{f"{name}, plain": Mean(name).where(symmetric=False) for name in NAMES},
        **{f"{name}, symmetric": Mean(name).where(symmetric=True) for name in NAMES},
        **{
            f"{name}, symmetric over plain": LogRatio(
                Column(name, symmetric=True), Column(name, symmetric=False)
            )
            for name in NAMES
        },
    }
)


def conclude(records: Records) -> list[str]:
    """Say what symmetry brings."""
    found = QUANTITIES(records)
    names = {"mse_test": "test error", "mse_ood": "error beside the disc"}
    return [
        f"Forced symmetry multiplies the {words} by {10 ** found[key].value:.2g}."
        for name, words in names.items()
        if (key := f"{name}, symmetric over plain") in found
    ]


def draw(records: Records) -> Figure:
    """Draw the map without and with symmetry."""
    titles = {"f": False, "(f(x1, x2) + f(x2, x1)) / 2": True}
    maps = {t: records.where(symmetric=which).first("map") for t, which in titles.items()}
    return _maps.rows_of_maps([maps], LIMIT)


EXPERIMENT = Experiment(
    shows="Figure 12",
    title="Error of a tanh network whose output is averaged over the order of its inputs",
    smoke=grid(
        symmetric=[False, True], seed=[0, 1], inverse_sigma=1.0, width=16, n=24, steps=40, grid=32
    ),
    settings=WHOLE,
    departures={"smoke": ("16 units, 24 points, 40 steps, two seeds.",)},
    cell=cell,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "symmetric: asymmetry, symmetric < 0.01": "Forcing commutativity makes the error map "
            "symmetric.",
            "no-better: mse_ood, symmetric over plain > -1.0": "It does not lead to the right "
            "algorithm: the error beside the disc falls by less than a factor of 10. | log10 of "
            "the ratio of means, bootstrap over seeds | section 5, A.2.7; the factor is ours",
            "not-exact: mse_test, symmetric > 1e-10": "The symmetric network is far from the "
            "exact solution on test points. | mean over seeds, t interval | section 5, A.2.7; "
            "machine precision is below 1e-14",
        },
        source="A.2.7, figure 12",
        test="mean difference of log10 errors of mirrored points, t interval",
    ),
    errata=("K1", "K2", "K3", "K10"),
    notes=(
        "The width is not printed: 1024, the largest of figure 1. One standard deviation for each "
        "weight matrix, biases scaled as in the released code.",
    ),
)
