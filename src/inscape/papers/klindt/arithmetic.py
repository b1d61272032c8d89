"""Figures 13 and 14: networks on addition and multiplication, and with and without Eq. (7)."""

from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Column, LogRatio, Quantities, TauOfMeans
from inscape.lab.records import Records
from inscape.papers.klindt import _maps

LIMIT = 1.5
TARGETS = {"addition": "x1 + x2", "multiplication": "x1 x2"}


def cell(
    target: str,
    seed: int,
    activation: str,
    inverse_sigma: float,
    width: int,
    n: int,
    steps: int,
    grid: int,
) -> dict[str, Any]:
    """Train one network and measure its errors."""
    from inscape.papers.klindt import _addition as task

    data = task.disc_data(n, seed, target)
    net = task.trained(
        data,
        width=width,
        activation=activation,
        steps=steps,
        seed=seed,
        inverse_sigma=inverse_sigma,
    )
    f = task.double(net)
    found = task.errors(f, data, grid=grid, target=target)
    if seed == 0:
        found |= {"map": task.shown_map(f, LIMIT, target), "x": data.x.numpy()}
    return found


def seconds(settings: Any) -> float:
    """Guess the time of a cell."""
    each = 1.1e-9 if settings["activation"] == "tanh" else 7e-10
    return 1 + each * float(settings["width"] * settings["n"] * settings["steps"])


def kind(inverse_sigma: float) -> str:
    """Return a word for the weights."""
    return f"1/sigma {inverse_sigma:g}" if inverse_sigma else "plain"


def analyse(records: Records) -> dict[str, Estimate]:
    """Return contrasts of training points, and how ridges change with 1 / sigma."""
    inverses = records.different("inverse_sigma")
    found: dict[str, Any] = {}
    for target in TARGETS:
        for inverse in inverses:
            chosen = {"target": target, "inverse_sigma": inverse}
            found[f"contrast, {target}, {kind(inverse)}"] = LogRatio(
                Column("mse_test", **chosen), Column("mse_train", **chosen)
            )
            found[f"ridges, {target}, {kind(inverse)} over {kind(inverses[-1])}"] = LogRatio(
                Column("crossings", **chosen),
                Column("crossings", target=target, inverse_sigma=inverses[-1]),
            )
        found[f"ridges with 1/sigma, {target}"] = TauOfMeans("inverse_sigma", "crossings").where(
            lambda record: record.settings["inverse_sigma"] > 0, target=target
        )
    return Quantities(found)(records)


def conclude(records: Records) -> list[str]:
    """Say how often the error changes its sign, and how large it is."""
    said = []
    for target in TARGETS:
        for inverse, own in records.where(target=target).by("inverse_sigma").items():
            turns, test, ood = (
                np.mean(own.values(name)) for name in ("crossings", "mse_test", "mse_ood")
            )
            said.append(
                f"{target.capitalize()}, weights {kind(inverse)}: {turns:.2f} changes "
                f"of sign on a way of length 1, error {test:.1e} on test points and "
                f"{ood:.1e} beside the disc."
            )
    return said


RELU_ONCE = grid(activation="relu", inverse_sigma=0.0, width=1024, n=128, steps=50_000, grid=512)
RELU = grid(target=list(TARGETS), seed=range(10), **RELU_ONCE)


def draw_relu(records: Records) -> Figure:
    """Draw the maps of both tasks."""
    maps = {title: records.where(target=t).first("map") for t, title in TARGETS.items()}
    return _maps.rows_of_maps([maps], LIMIT)


FIGURE_13 = Experiment(
    shows="Figure 13",
    title="Error of a ReLU network on addition and on multiplication",
    smoke=grid(RELU, seed=0, width=16, n=24, steps=40, grid=32),
    settings=RELU,
    departures={"smoke": ("16 units, 24 points, 40 steps, one seed.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw_relu,
    claims=claims(
        {
            f"ridges-{target}: contrast, {target}, plain > 1.0": "Ridges of low error pass "
            f"through the training points of {target}: errors there are less than a tenth of "
            "those elsewhere on the disc."
            for target in TARGETS
        },
        source="A.2.8, figure 13",
        test="log10 of test error over training error, bootstrap over seeds",
    ),
    notes=("The width is not printed: 1024, the largest of figure 1.",),
)
"""Figure 13: a ReLU network cuts the plane for multiplication as it does for addition."""


#: 1 / sigma of Eq. (7); 0 for weights without it, which is what the figure shows.
INVERSES = (0.0, 0.2, 1.0, 5.0)
TANH_ONCE = grid(
    activation="tanh", inverse_sigma=INVERSES, width=1024, n=128, steps=50_000, grid=512
)
TANH = grid(target=list(TARGETS), seed=range(10), **TANH_ONCE)


def draw_tanh(records: Records) -> Figure:
    """Draw the maps of both tasks, a row each, without Eq. (7) and for growing 1 / sigma."""
    words = {inverse: f"$1/\\sigma$ = {inverse:g}" for inverse in INVERSES} | {0.0: "no Eq. (7)"}
    return _maps.rows_of_maps(
        [
            {
                f"{title}, {word}": records.where(target=t, inverse_sigma=inverse).first("map")
                for inverse, word in words.items()
            }
            for t, title in TARGETS.items()
        ],
        LIMIT,
    )


FIGURE_14 = Experiment(
    shows="Figure 14",
    title="Error of a tanh network without weight normalisation, and with it",
    smoke=grid(TANH, seed=0, inverse_sigma=[0.0, 1.0], width=16, n=24, steps=40, grid=32),
    settings=TANH,
    departures={"smoke": ("16 units, 24 points, 40 steps, one seed.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw_tanh,
    claims=claims(
        {
            **{
                f"lost-{target}: ridges, {target}, plain over 1/sigma 5 > 0": "Without Eq. (7) "
                f"the smoothing is lost: the map of {target} has more ridges than with 1/sigma = "
                "5."
                for target in TARGETS
            },
            **{
                f"controls-{target}: ridges with 1/sigma, {target} < -0.9": "Weight normalisation "
                "controls smoothness: the larger 1/sigma, the fewer ridges has the map of "
                f"{target}. | Kendall's tau of 1/sigma and mean changes of sign, bootstrap over "
                "seeds | section 3.4, A.2.8"
                for target in TARGETS
            },
        },
        source="section 3.4, A.2.8, figure 14",
        test="log10 of the ratio of mean changes of the error's sign, bootstrap over seeds",
    ),
    errata=("K1", "K2", "K3", "K10"),
    notes=(
        "Width and sigma are not printed: 1024, the largest of figure 1, and 1/sigma of 0.2, 1 and "
        "5 for comparison.",
        "A ridge is a place where the error changes its sign on a straight way through the disc.",
    ),
)
"""Figure 14: without normalised weights a tanh network is not smooth."""
