"""Figure 11: a tanh network learns addition where the data are dense."""

from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Mean, Quantities
from inscape.lab.records import Record, Records
from inscape.lab.statistics import kendall_tau
from inscape.papers.klindt import _maps

LIMIT = 3.0
RINGS = 12
#: 1 / sigma of Eq. (7); 0 for weights without it.
KINDS = {0.0: "plain", 1.0: "normalised"}
ONCE = grid(width=1024, n=128, steps=50_000)
WHOLE = grid(inverse_sigma=list(KINDS), seed=range(10), **ONCE)


def cell(inverse_sigma: float, seed: int, width: int, n: int, steps: int) -> dict[str, Any]:
    """Train on normal points and return the mean log error in rings around the origin."""
    import torch

    from inscape.data.draws import regression
    from inscape.papers.klindt import _addition as task

    x = torch.randn(n, 2, generator=torch.Generator().manual_seed(task.FIRST_SEED + seed))
    y, none = x.sum(1, keepdim=True), torch.zeros(0, 2)
    data = regression("normal", (x, y), (none, none[:, :1]), dtype=torch.float32, settings={})
    net = task.trained(
        data, width=width, activation="tanh", steps=steps, seed=seed, inverse_sigma=inverse_sigma
    )
    f = task.double(net)
    at = task.plane(LIMIT, 256)
    square = task.error(f, at).square().numpy()
    logs = np.log10(np.maximum(square, 1e-30))
    ring = np.floor(at.norm(dim=1).numpy() / LIMIT * RINGS).astype(int)
    rings = [float(logs[ring == k].mean()) for k in range(RINGS)]
    found: dict[str, Any] = {"rings": rings, "mse_train": float(task.error(f, x).square().mean())}
    if seed == 0:
        found |= {"map": task.shown_map(f, LIMIT), "x": x.numpy()}
    return found


def seconds(settings: Any) -> float:
    """Guess the time of a cell."""
    return 1 + 1.1e-9 * float(settings["width"] * settings["n"] * settings["steps"])


def _tau(record: Record) -> float:
    return kendall_tau(range(RINGS), record.values["rings"])


def _decades(record: Record) -> float:
    """Return how much worse the three outermost rings are than the three in the middle."""
    rings = record.values["rings"]
    return float(np.mean(rings[-3:]) - np.mean(rings[:3]))


QUANTITIES = Quantities(
    {
        f"{name}, {kind}": Mean(of, interval="bootstrap").where(inverse_sigma=inverse)
        for inverse, kind in KINDS.items()
        for name, of in (("tau", _tau), ("decades", _decades))
    }
)


def conclude(records: Records) -> list[str]:
    """Say how much worse the outskirts are."""
    found = QUANTITIES(records)
    return [
        f"From the centre (|x| < 0.75) to the outskirts (|x| > 2.25) the squared error of "
        f"{kind} networks grows by {found[f'decades, {kind}'].value:.1f} decades."
        for kind in KINDS.values()
        if f"decades, {kind}" in found
    ]


def draw(records: Records) -> Figure:
    """Draw the map of the first repeat of both kinds."""
    titles = {0.0: "plain", 1.0: "normalised, $1/\\sigma$ = 1"}
    maps = {
        title: records.where(inverse_sigma=inverse).first("map")
        for inverse, title in titles.items()
    }
    return _maps.rows_of_maps([maps], LIMIT)


EXPERIMENT = Experiment(
    shows="Figure 11",
    title="Error of a tanh network that learned addition from normal inputs",
    smoke=grid(inverse_sigma=list(KINDS), seed=[0, 1], width=16, n=24, steps=40),
    settings=WHOLE,
    departures={"smoke": ("16 units, 24 points, 40 steps, two seeds.",)},
    cell=cell,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            f"density-{kind}: tau, {kind} > 0.5": "The error map follows the density of the "
            f"data: it is worse the farther out. | | A.2.6, figure 11; {kind} weights"
            for kind in KINDS.values()
        },
        test="Kendall's tau of ring and mean log error, bootstrap over seeds",
    ),
    errata=("K1", "K2", "K3", "K10"),
    notes=(
        "Width, number of points and sigma are not printed: 1024 and 128 as the largest of figure "
        "1, and both weights without Eq. (7) and with 1/sigma = 1.",
    ),
)
