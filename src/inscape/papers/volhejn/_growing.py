"""The first design: networks trained to one loss on ever more data (tables 4.2 and 4.3).

A measure that gradient descent keeps as low as the data allow must grow with the data, since every
function that fits the larger set also fits the smaller one. Kendall's tau between size and measure
says how nearly it does.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape._core.result import CORRELATION, PROPORTION
from inscape.lab.experiment import Estimate, Settings
from inscape.lab.statistics import (
    bootstrap_estimate,
    kendall_tau,
    mean_estimate,
    paired_difference,
    proportion_estimate,
    tau_ceiling,
)
from inscape.lab.store import Record
from inscape.papers.volhejn._measures import (
    FIRST_ORDER,
    SECOND_ORDER,
    THESIS,
    check,
    measured,
    squared_error,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from inscape.data import Dataset

#: Ten of the 45 pairs, each digit in two of them.
RING = ("0-1", "1-2", "2-3", "3-4", "4-5", "5-6", "6-7", "7-8", "8-9", "0-9")
ALL_PAIRS = tuple(f"{a}-{b}" for a, b in combinations(range(10), 2))
#: The data sets of both, and the sizes of the thesis.
RING_SETS, ALL_SETS = ([f"mnist-binary:{pair}" for pair in pairs] for pairs in (RING, ALL_PAIRS))
SIZES = [2**k for k in range(6, 14)]


@lru_cache(maxsize=3)
def dataset(name: str) -> "Dataset":
    """Load a data set once for the cells that share it."""
    from inscape.data import load

    return load(name)


@lru_cache(maxsize=1000)
def data_hash(name: str) -> str:
    """Return the hash of a data set."""
    return dataset(name).hash


def hash_of(settings: Settings) -> str:
    """Return the hash of the data that a cell reads."""
    return data_hash(settings["data"])


def cell(
    data: str,
    size: int,
    seed: int,
    scale: float,
    hidden: int,
    lr: float,
    batch: int,
    stop_loss: float,
    epochs: int,
    measures: Sequence[str],
) -> dict[str, Any]:
    """Train one network on the first ``size`` images and measure it on the test images."""
    check(measures)
    own = own_seed(data, size, seed)
    one = trained(
        data,
        size,
        own=own,
        scale=scale,
        hidden=hidden,
        lr=lr,
        batch=batch,
        stop_loss=stop_loss,
        epochs=epochs,
    )
    tested = measured(one.model, *one.test, measures=measures, start=one.start, seed=own)
    return {**one.went, "measures": tested}


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """A network of the thesis: as it began, as it ended, on what, and how the training went."""

    model: "nn.Module"
    start: "nn.Module"
    train: "tuple[Tensor, Tensor]"
    test: "tuple[Tensor, Tensor]"
    went: dict[str, Any]


def trained(data: str, n: int, *, own: int, scale: float, hidden: int, **training: Any) -> Trained:
    """Train a two-layer network on the first ``n`` images of a data set, from a seed of its own."""
    from inscape.models import two_layer
    from inscape.training.shallow import fit_shallow

    whole = dataset(data)
    some = whole.subset(min(n, len(whole.x)))
    assert whole.x_test is not None
    assert whole.y_test is not None
    model = two_layer(some.x.shape[1], hidden, init="glorot", scale=scale, seed=own)
    start = deepcopy(model)
    run = fit_shallow(model, some.x, some.y, seed=own, progress=False, **training)
    train, test = (some.x, some.y), (whole.x_test, whole.y_test)
    return Trained(
        model=model,
        start=start,
        train=train,
        test=test,
        went={
            "epochs": run.epochs,
            "converged": run.stopped == "loss",
            "loss": run.loss,
            "train_loss": squared_error(model, *train),
            "test_loss": squared_error(model, *test),
        },
    )


def own_seed(*settings: str | int) -> int:
    """Return a seed of its own for every network of a design."""
    text = " ".join(map(str, settings)).encode()
    return int(np.random.SeedSequence(list(text)).generate_state(1)[0])


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: steps to the loss, as the thesis counted them, and measuring."""
    size, rank = settings["size"], min(settings["size"], 550)
    epochs = min(settings["epochs"], 5000 if settings["scale"] < 0.1 else 1000 + 0.5 * size)
    return float(3 + epochs * size / settings["batch"] * (6e-5 + 4e-7 * rank))


Runs = Mapping[str, list[tuple[int, float]]]


def runs(records: Sequence[Record], measure: str) -> Runs:
    """Return size and value of every converged run, by data set."""
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for record in records:
        value = record.values["measures"].get(measure)
        if record.values["converged"] and value is not None:
            found[record.settings["data"]].append((record.settings["size"], value))
    return found


def measures_in(records: Sequence[Record]) -> list[str]:
    """Return the measures that every record has, in the order of the first."""
    if not records:
        return []
    first = records[0].values["measures"]
    return [m for m in first if all(r.values["measures"].get(m) is not None for r in records)]


def taus(records: Sequence[Record], measure: str) -> dict[str, float]:
    """Return Kendall's tau of size and measure for each data set; repeats are not averaged."""
    return {
        name: kendall_tau([size for size, _ in pairs], [value for _, value in pairs])
        for name, pairs in runs(records, measure).items()
    }


def ceiling(records: Sequence[Record]) -> float:
    """Return the largest tau that the ties in size allow, over the data sets on average."""
    by_data: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for record in records:
        if record.values["converged"]:
            by_data[record.settings["data"]][record.settings["size"]] += 1
    tops = [tau_ceiling(list(counts.values())) for counts in by_data.values() if len(counts) > 1]
    return float(np.mean(tops)) if tops else float("nan")


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return taus, means by size, the gap between the orders, and how measures go together."""
    names = measures_in(records)
    converged = [float(record.values["converged"]) for record in records]
    found: dict[str, Estimate] = (
        {"converged": mean_estimate(converged, within=PROPORTION)} if converged else {}
    )
    names = [name for name in names if taus(records, name)]
    if not names or np.isnan(ceiling(records)):
        return found
    by_measure = {name: taus(records, name) for name in names}
    top = ceiling(records)
    for name, values in by_measure.items():
        found[f"tau/{name}"] = mean_estimate(list(values.values()), within=CORRELATION)
        rising, over = sum(tau > 0 for tau in values.values()), f"{len(values)} data sets"
        found[f"rising/{name}"] = proportion_estimate(rising, len(values), over=over)
        shares = [tau / top for tau in values.values()]
        found[f"share/{name}"] = bootstrap_estimate(shares, within=CORRELATION)
        found |= _means(records, name)
    first, second = ([m for m in order if m in names] for order in (FIRST_ORDER, SECOND_ORDER))
    if first and second:
        found["gap"] = _gap(by_measure, first, second)
    if len(first + second) == len(THESIS):
        found |= agreement(records)
    return found


def _means(records: Sequence[Record], measure: str) -> dict[str, Estimate]:
    """Return the mean at each size, over data sets of the means of their networks."""
    cells: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name, pairs in runs(records, measure).items():
        for size, value in pairs:
            cells[size][name].append(value)
    return {
        f"mean/{measure}/{size}": mean_estimate([float(np.mean(v)) for v in by_data.values()])
        for size, by_data in sorted(cells.items())
    }


def _gap(
    by_measure: Mapping[str, Mapping[str, float]], first: Sequence[str], second: Sequence[str]
) -> Estimate:
    """Return by how much second-order measures follow the size more closely, data set by set."""
    orders = [
        [float(np.mean([by_measure[m][name] for m in group])) for name in by_measure[first[0]]]
        for group in (second, first)
    ]
    return paired_difference(*orders)


def agreement(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how measures of one order, and of two, rank the runs of a data set alike."""
    groups: dict[str, Callable[[Mapping[str, list[float]]], float]] = {
        "agreement/first order": lambda v: kendall_tau(*(v[m] for m in FIRST_ORDER)),
        "agreement/second order": lambda v: kendall_tau(*(v[m] for m in SECOND_ORDER)),
        "agreement/across orders": lambda v: float(
            np.mean([kendall_tau(v[a], v[b]) for a, b in product(FIRST_ORDER, SECOND_ORDER)])
        ),
    }
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.values["converged"]:
            for name in FIRST_ORDER + SECOND_ORDER:
                values[record.settings["data"]][name].append(record.values["measures"][name])
    return {
        name: bootstrap_estimate([of(one) for one in values.values()], within=CORRELATION)
        for name, of in groups.items()
    }


def conclude(records: Sequence[Record]) -> list[str]:
    """Say which measures grow with the data as they would if they were regularised implicitly."""
    names, top = measures_in(records), ceiling(records)
    if np.isnan(top):
        return ["Too few networks converged for a conclusion."]
    shares = {
        name: bootstrap_estimate(
            [tau / top for tau in taus(records, name).values()], within=CORRELATION
        )
        for name in names
    }
    ranked = sorted(names, key=lambda name: -shares[name].value)
    yes = [name for name in ranked if shares[name].low > 0.9]
    no = [name for name in ranked if shares[name].high < 0.9]
    open_ = [name for name in ranked if name not in yes + no]
    said = {
        "Regularised implicitly, by the look of it (at least 0.9 of the largest possible tau)": yes,
        "Not so": no,
        "Undecided": open_,
    }
    return [
        f"{what}: {', '.join(f'{n} {shares[n].value:.2f}' for n in group)}.".replace("_", " ")
        for what, group in said.items()
        if group
    ]
