"""Figure 11: a tanh network learns addition where the data are dense."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.lab.experiment import Axes, Estimate, Experiment, Trend
from inscape.lab.statistics import bootstrap_estimate, kendall_tau
from inscape.lab.store import Record
from inscape.papers.klindt import _maps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT = 3.0
RINGS = 12
#: 1 / sigma of Eq. (7); 0 for weights without it.
KINDS = {0.0: "plain", 1.0: "normalised"}
ONCE: Axes = {"width": [1024], "n": [128], "steps": [50_000]}
WHOLE: Axes = {"inverse_sigma": list(KINDS), "seed": range(10), **ONCE}


def cell(inverse_sigma: float, seed: int, width: int, n: int, steps: int) -> dict[str, Any]:
    """Train on normal points and return the mean log error in rings around the origin."""
    import torch

    from inscape.data.draws import regression
    from inscape.papers.klindt import _addition as task

    x = torch.randn(n, 2, generator=torch.Generator().manual_seed(task.FIRST_SEED + seed))
    y, none = x.sum(1, keepdim=True), torch.zeros(0, 2)
    data = regression("normal", (x, y), (none, none[:, :1]), dtype=torch.float32, settings={})
    net = task.trained(
        data,
        width=width,
        activation="tanh",
        steps=steps,
        seed=seed,
        inverse_sigma=inverse_sigma,
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


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the rank correlation of radius and error, seed by seed, and the step outwards."""
    found = {}
    for inverse, kind in KINDS.items():
        rings = [r.values["rings"] for r in records if r.settings["inverse_sigma"] == inverse]
        if rings:
            taus = [kendall_tau(range(RINGS), one) for one in rings]
            found[f"tau, {kind}"] = bootstrap_estimate(taus)
            steps = [float(np.mean(one[-3:]) - np.mean(one[:3])) for one in rings]
            found[f"decades, {kind}"] = bootstrap_estimate(steps)
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how much worse the outskirts are."""
    found = analyse(records)
    return [
        f"From the centre (|x| < 0.75) to the outskirts (|x| > 2.25) the squared error of "
        f"{kind} networks grows by {found[f'decades, {kind}'].value:.1f} decades."
        for kind in KINDS.values()
        if f"decades, {kind}" in found
    ]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the map of the first repeat of both kinds."""
    row = []
    for inverse, kind in KINDS.items():
        record = _maps.first_map(records, inverse_sigma=inverse)
        if record is not None:
            words = ", $1/\\sigma$ = 1" if inverse else ""
            row.append((f"{kind}{words}", record))
    return _maps.rows_of_maps([row], LIMIT)


EXPERIMENT = Experiment(
    shows="Figure 11",
    title="Error of a tanh network that learned addition from normal inputs",
    smoke={"inverse_sigma": list(KINDS), "seed": [0, 1], "width": [16], "n": [24], "steps": [40]},
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("16 units, 24 points, 40 steps, two seeds.",)},
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=tuple(
        Trend(
            name=f"density-{kind}",
            says="The error map follows the density of the data: it is worse the farther out.",
            of=f"tau, {kind}",
            side="above",
            bound=0.5,
            test="Kendall's tau of ring and mean log error, bootstrap over seeds",
            source=f"A.2.6, figure 11; {kind} weights",
        )
        for kind in KINDS.values()
    ),
    errata=("K1", "K2", "K3", "K10"),
    notes=(
        "Width, number of points and sigma are not printed: 1024 and 128 as the largest of figure "
        "1, and both weights without Eq. (7) and with 1/sigma = 1.",
    ),
)
