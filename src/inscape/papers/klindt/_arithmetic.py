"""Networks that learn addition or multiplication on the disc, with Eq. (7) and without it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from inscape.lab.experiment import Estimate
from inscape.lab.statistics import bootstrap_estimate, kendall_tau
from inscape.lab.store import Record
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


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return contrasts of training points, and how ridges change with 1 / sigma."""
    found: dict[str, Estimate] = {}
    inverses = sorted({r.settings["inverse_sigma"] for r in records})
    for target in TARGETS:
        columns = {
            inverse: _maps.by_seed(records, "crossings", target=target, inverse_sigma=inverse)
            for inverse in inverses
        }
        for inverse in inverses:
            chosen = {"target": target, "inverse_sigma": inverse}
            pair = (_maps.by_seed(records, f"mse_{name}", **chosen) for name in ("test", "train"))
            if (ratio := _maps.log_ratio(*pair)) is not None:
                found[f"contrast, {target}, {kind(inverse)}"] = ratio
            if (ratio := _maps.log_ratio(columns[inverse], columns[inverses[-1]])) is not None:
                found[f"ridges, {target}, {kind(inverse)} over {kind(inverses[-1])}"] = ratio
        held = [columns[inverse] for inverse in inverses if inverse]
        if len(held) > 1 and (seeds := set.intersection(*map(set, held))):
            lines = [[column[seed] for column in held] for seed in sorted(seeds)]
            found[f"ridges with 1/sigma, {target}"] = bootstrap_estimate(lines, _tau, draws=1000)
    return found


def _tau(lines: Sequence[Any]) -> float:
    means = np.mean(np.array(lines), axis=0)
    return kendall_tau(range(len(means)), means)


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how often the error changes its sign, and how large it is."""
    said = []
    for target in TARGETS:
        for inverse in sorted({r.settings["inverse_sigma"] for r in records}):
            chosen = {"target": target, "inverse_sigma": inverse}
            means = {
                name: float(np.mean(list(_maps.by_seed(records, name, **chosen).values())))
                for name in ("crossings", "mse_test", "mse_ood")
            }
            said.append(
                f"{target.capitalize()}, weights {kind(inverse)}: {means['crossings']:.2f} changes "
                f"of sign on a way of length 1, error {means['mse_test']:.1e} on test points and "
                f"{means['mse_ood']:.1e} beside the disc."
            )
    return said
