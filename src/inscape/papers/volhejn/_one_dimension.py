"""Table 4.1's design: functions drawn from a Gaussian process, learned from 2 to 10 points."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from inscape._core.result import CORRELATION
from inscape.lab.experiment import CellValues, Estimate, Settings
from inscape.lab.statistics import (
    bootstrap_estimate,
    kendall_tau,
    mean_estimate,
    paired_difference,
    proportion_estimate,
)
from inscape.lab.store import Record
from inscape.papers.volhejn._growing import own_seed
from inscape.papers.volhejn._line import measured, polynomial
from inscape.papers.volhejn._measures import FIRST_ORDER, SECOND_ORDER, THESIS

#: What a run writes down, one list over the networks of a cell for each.
COLUMNS = ("epochs", "converged", "loss", *THESIS)


def together(cells: Sequence[Settings]) -> Iterator[tuple[int, CellValues]]:
    """Train the networks of all cells at once; a cell is done when its last network is."""
    curves = [index for index, settings in enumerate(cells) if settings["kind"] == "polynomial"]
    for index in curves:
        yield index, _polynomial(cells[index])
    yield from _networks([i for i in range(len(cells)) if i not in curves], cells)


def _networks(chosen: Sequence[int], cells: Sequence[Settings]) -> Iterator[tuple[int, CellValues]]:
    from inscape.ensembles import fit_many

    if not chosen:
        return
    owners: list[tuple[int, int]] = []
    models, data = [], []
    for index in chosen:
        settings = cells[index]
        for repeat in range(settings["repeats"]):
            owners.append((index, repeat))
            models.append(_network(settings, repeat))
            data.append(_data(settings))
    first = cells[chosen[0]]  # alike() saw to it that they share these
    members = fit_many(
        models,
        [one.x for one in data],
        [one.y for one in data],
        lr=first["lr"],
        epochs=first["epochs"],
        stop_loss=first["stop_loss"],
        progress=False,
    )
    waiting: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
    for member in members:
        index, repeat = owners[member.index]
        assert isinstance(member.model, nn.Sequential)
        test = data[member.index].x_test
        assert test is not None
        waiting[index][repeat] = {
            "epochs": member.epochs,
            "converged": member.stopped == "loss",
            "loss": member.loss,
            **measured(member.model, test, seed=_own(cells[index], repeat)),
        }
        if len(waiting[index]) == cells[index]["repeats"]:
            rows = [row for _, row in sorted(waiting.pop(index).items())]
            yield index, {column: [row[column] for row in rows] for column in COLUMNS}


def alike(settings: Settings) -> tuple[Any, ...]:
    """Return what cells must share to be trained together."""
    return tuple(settings[name] for name in ("lr", "epochs", "stop_loss", "hidden"))


def _network(settings: Settings, repeat: int) -> nn.Sequential:
    from inscape.models import two_layer

    seed = _own(settings, repeat)
    return two_layer(1, settings["hidden"], init="glorot", scale=settings["scale"], seed=seed)


def _own(settings: Settings, repeat: int) -> int:
    """Return the seed of one network: of its first weights, and of the pairs it is measured on."""
    return own_seed("gp", settings["seed"], settings["size"], repeat)


def _data(settings: Settings) -> Any:
    from inscape.data import gaussian_process

    return gaussian_process(n=settings["size"], seed=settings["seed"], draw="thesis")


def _polynomial(settings: Settings) -> CellValues:
    """Measure the interpolating polynomial of one data set, by the instruments themselves."""
    from inscape.papers.volhejn._measures import measured as by_instruments

    data = _data(settings).to(dtype=_double())
    model = polynomial(data.x, data.y, data.x_test)
    values = by_instruments(
        model, data.x_test, data.y_test, measures=list(THESIS.values()), start=model
    )
    return {"epochs": [0], "converged": [True], "loss": [0.0]} | {
        name: [value] for name, value in values.items()
    }


def _double() -> Any:
    import torch

    return torch.float64


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: 5 ms a point and network, and measuring."""
    if settings["kind"] == "polynomial":
        return 1.5
    steps = min(settings["epochs"], 8000)
    return float(settings["repeats"] * (0.03 + steps * settings["size"] * 5e-7))


Rows = Mapping[int, list[tuple[int, dict[str, float]]]]


def rows(records: Sequence[Record], kind: str, *, unconverged: bool = False) -> Rows:
    """Return size and measures of every run, by data set; without those that did not converge."""
    found: dict[int, list[tuple[int, dict[str, float]]]] = defaultdict(list)
    for record in records:
        if record.settings["kind"] != kind:
            continue
        for k, converged in enumerate(record.values["converged"]):
            if converged or unconverged:
                values = {name: record.values[name][k] for name in (*THESIS, "loss")}
                found[record.settings["seed"]].append((record.settings["size"], values))
    return dict(sorted(found.items()))


def taus(runs: Rows, measure: str) -> dict[int, float]:
    """Return Kendall's tau of size and measure for each data set."""
    return {
        seed: kendall_tau([size for size, _ in pairs], [values[measure] for _, values in pairs])
        for seed, pairs in runs.items()
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return taus of networks and polynomials, and the claims made in passing."""
    nets, curves = rows(records, "network"), rows(records, "polynomial")
    everything = rows(records, "network", unconverged=True)
    found: dict[str, Estimate] = {}
    if not nets or not curves:
        return found
    tau = {measure: taus(nets, measure) for measure in THESIS}
    for measure in THESIS:
        smooth = taus(curves, measure)
        shared = [seed for seed in tau[measure] if seed in smooth]
        found[f"tau/{measure}"] = mean_estimate(list(tau[measure].values()))
        found[f"sd/{measure}"] = _spread(list(tau[measure].values()))
        found[f"polynomial/{measure}"] = mean_estimate(list(smooth.values()))
        found[f"above polynomial/{measure}"] = paired_difference(
            [tau[measure][seed] for seed in shared], [smooth[seed] for seed in shared]
        )
        kept = taus(everything, measure)
        shift = [kept[seed] - tau[measure][seed] for seed in tau[measure]]
        found[f"shift/{measure}"] = mean_estimate(shift)
        found[f"plateau/{measure}"] = _plateau(nets, measure)
    found["gap"] = _gap(tau)
    found["unconverged"] = _unconverged(records)
    return found | _agreement(nets)


def _spread(values: Sequence[float]) -> Estimate:
    """Return the standard deviation over data sets."""
    return bootstrap_estimate(list(values), lambda some: float(np.std(some, ddof=1)))


def _gap(tau: Mapping[str, Mapping[int, float]]) -> Estimate:
    orders = [
        [float(np.mean([tau[m][seed] for m in group])) for seed in tau["GN"]]
        for group in (SECOND_ORDER, FIRST_ORDER)
    ]
    return paired_difference(*orders)


def _unconverged(records: Sequence[Record]) -> Estimate:
    """Return how many settings have no network that converged, as a count."""
    nets = [record for record in records if record.settings["kind"] == "network"]
    count = float(sum(not any(record.values["converged"]) for record in nets))
    part = proportion_estimate(int(count), len(nets), over=f"{len(nets)} settings")
    return replace(
        part, value=count, low=part.low * part.n, high=part.high * part.n, se=part.se * part.n
    )


def _plateau(nets: Rows, measure: str) -> Estimate:
    """Return the growth from 8 to 10 points over that from 2 to 8, of the mean over data sets."""

    def level(pairs: Sequence[tuple[int, dict[str, float]]], wanted: int) -> float:
        values = [row[measure] for size, row in pairs if size == wanted]
        return float(np.mean(values)) if values else float("nan")

    def late_growth(sets: Sequence[Any]) -> float:
        low, middle, high = (_mean([level(pairs, size) for pairs in sets]) for size in (2, 8, 10))
        return (high - middle) / (middle - low)

    return bootstrap_estimate(list(nets.values()), late_growth, draws=500)


def _mean(values: Sequence[float]) -> float:
    """Return the mean of those that are numbers, if there are any."""
    there = [value for value in values if not np.isnan(value)]
    return float(np.mean(there)) if there else float("nan")


def _agreement(nets: Rows) -> dict[str, Estimate]:
    """Return how measures of one order, and of two, and the loss, rank the runs alike."""
    pairs = {
        "agreement/first order": [("GN", "PL0")],
        "agreement/second order": [("PL1", "WP")],
        "agreement/across orders": [(a, b) for a in FIRST_ORDER for b in SECOND_ORDER],
    }

    def tau(runs: Sequence[tuple[int, dict[str, float]]], a: str, b: str) -> float:
        return kendall_tau([row[a] for _, row in runs], [row[b] for _, row in runs])

    return {
        name: bootstrap_estimate(
            [float(np.mean([tau(runs, a, b) for a, b in both])) for runs in nets.values()],
            within=CORRELATION,
        )
        for name, both in pairs.items()
    }
