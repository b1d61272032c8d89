"""A look at one Boolean function: class, metrics, swaps, networks, and what training finds."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil, log2
from pathlib import Path
from typing import Any

import torch
from torch import nn

from inscape._core import checks
from inscape.boolean import npn
from inscape.boolean.constructions import (
    narrow_network,
    parity_network,
    represents,
    wide_network,
)
from inscape.boolean.fourier import Fourier, fourier
from inscape.boolean.swaps import Swaps, swaps
from inscape.boolean.swaps_bound import swaps_bound
from inscape.boolean.truth_table import TruthTable, parity
from inscape.report.boolean.trials import EarlierTrial, Trial, seen_before, trials
from inscape.report.look.facts import provenance
from inscape.report.look.parts import Provenance

#: Classes and swaps are exact up to this number of inputs.
EXACT = 6
#: Functions of more inputs are not looked at.
MOST_INPUTS = 10
#: No wider networks are trained.
WIDEST = 24


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network that is known to compute the function.

    Attributes:
        how: Which theorem it comes from.
        size: Inputs, hidden units of each layer, output.
        width: Units of each hidden layer.
        depth: Number of hidden layers.
        parameters: Number of weights and biases.
        checked: Whether its signs are right; None for a network of another function of the class.
    """

    how: str
    size: str
    width: int
    depth: int
    parameters: int
    checked: bool | None


@dataclass(frozen=True, eq=False, kw_only=True)
class BooleanLook:
    """The results of a look at a Boolean function."""

    written: str
    table: TruthTable
    canonical: int | None
    class_size: int | None
    fourier: Fourier
    swaps: Swaps
    networks: tuple[Network, ...]
    trials: tuple[Trial, ...]
    left_out: tuple[str, ...]
    earlier: tuple[EarlierTrial, ...]
    command: str
    provenance: Provenance

    @property
    def smallest(self) -> Network:
        """The network with the fewest parameters among those that were constructed."""
        return min(self.networks, key=lambda network: network.parameters)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what is known of the function itself, one row for each quantity."""
        weights = " ".join(map(str, self.swaps.weights.tolist()))
        if self.canonical is not None:
            yield _row("class", self.canonical, "exact", "smallest number of its NPN class")
            yield _row("class size", self.class_size, "exact", "functions in that class")
        yield _row("true inputs", int(self.table.bits.sum()), "exact", f"of {1 << self.table.n}")
        yield _row("swaps", self.swaps.swaps, self.swaps.kind, f"along weights {weights}")
        yield _row("degree", self.fourier.degree, "exact", "largest Fourier set")
        yield _row("influence", self.fourier.influence, "exact", "total, at most n")
        yield _row("entropy", self.fourier.entropy, "exact", "Fourier entropy in bits")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "function": {
                "asked": self.written,
                "inputs": self.table.n,
                "number": self.table.number,
                "table": str(self.table),
            },
            "measurements": list(self.rows()),
            "weights": self.swaps.weights.tolist(),
            "networks": [asdict(network) for network in self.networks],
            "smallest": asdict(self.smallest),
            "training": [asdict(trial) for trial in self.trials],
            "left_out": list(self.left_out),
            "records": [asdict(trial) for trial in self.earlier],
            "command": self.command,
            "provenance": asdict(self.provenance),
        }

    def save(self, path: Path) -> Path:
        """Write the page, or everything as JSON, by the suffix of ``path``."""
        from inscape.report.boolean.page import save

        return save(self, path)


def _row(quantity: str, value: Any, mark: str, basis: str) -> dict[str, Any]:
    return {"quantity": quantity, "value": value, "mark": mark, "basis": basis}


def look_at_function(
    table: TruthTable,
    *,
    written: str = "",
    networks: int | None = None,
    seed: int = 0,
    budget: float = 60.0,
    threads: int | None = None,
    results: Path = Path("results"),
    command: str = "",
    quiet: bool | None = None,
) -> BooleanLook:
    """Look at a Boolean function in every way that we have.

    Args:
        table: The function, of at most ten inputs; of more than six, swaps is a bound.
        written: How the user wrote it.
        networks: How many networks of each size and activation are trained; 100 by default, or 20
            for more than six inputs.
        seed: Seed of the first of them.
        budget: Seconds after which no further size is tried.
        threads: Threads that training may use.
        results: Folder of records, in which figure 3.5 may be.
        command: The command that repeats the look.
        quiet: Whether to show no progress.
    """
    check_inputs(table)
    checks.at_least(1, networks=1 if networks is None else networks)
    start = time.perf_counter()
    exact = table.n <= EXACT
    canonical = npn.canonical(table.number, table.n) if exact else None
    table_swaps = swaps(table) if exact else swaps_bound(table)
    trained, left_out = trials(
        table,
        sizes(table.n, table_swaps.swaps),
        networks=networks or (100 if exact else 20),
        seed=seed,
        until=start + budget,
        threads=threads,
        quiet=quiet,
    )
    spent = time.perf_counter() - start
    return BooleanLook(
        written=written or f"{table.number}:{table.n}",
        table=table,
        canonical=canonical,
        class_size=int(npn.class_sizes([table.number], table.n)[0]) if exact else None,
        fourier=fourier(table),
        swaps=table_swaps,
        networks=tuple(constructed(table, table_swaps, canonical)),
        trials=trained,
        left_out=left_out,
        earlier=seen_before(canonical, results) if table.n == 4 and canonical is not None else (),
        command=command,
        provenance=provenance(torch.zeros(1), seed=seed, budget=budget, spent=spent),
    )


def check_inputs(table: TruthTable) -> None:
    """Refuse a function of more inputs than a look can take."""
    if table.n > MOST_INPUTS:
        raise ValueError(
            f"a function must have at most {MOST_INPUTS} inputs to be looked at, found {table.n}: "
            "measure it with inscape.boolean.fourier and swaps_bound."
        )


def sizes(n: int, swaps: int) -> list[tuple[int, int]]:
    """Return which widths and depths are trained: about the bound, below it, and two layers."""
    wide = {max(1, swaps - 1), max(1, swaps), swaps + 1, 2 * swaps + 1}
    widths = sorted({min(width, WIDEST) for width in wide})
    return [*((width, 1) for width in widths), (2, 2), (3, 2), (max(4, n), 2)]


def constructed(table: TruthTable, table_swaps: Swaps, canonical: int | None) -> Iterator[Network]:
    """Yield the networks of theorem 3.3.2, of section 3.3.1 and, for parity, of theorem 3.3.4."""
    weights = table_swaps.weights.tolist()
    wide = wide_network(table, weights)
    yield _network("theorem 3.3.2: one unit for each swap", wide, _right(wide, table))
    narrow = narrow_network(table, weights)
    yield _network("section 3.3.1: width two", narrow, _right(narrow, table))
    n = table.n
    if n > 1 and canonical == parity(n).number:
        depth = ceil(log2(n))
        own = parity_network(n, width=2, depth=depth)
        same = table.number == parity(n).number
        checked = _right(own, table) if same else None
        yield _network("theorem 3.3.4: parity, by folding", own, checked)


def _right(model: nn.Sequential, table: TruthTable) -> bool:
    """Tell whether a network is right: in fractions, or, for large tables, in float64."""
    if table.n <= EXACT:
        return represents(model, table)
    with torch.no_grad():
        signs = model(torch.from_numpy(table.points))[:, 0] > 0
    return bool((signs.numpy() == table.bits.astype(bool)).all())


def _network(how: str, model: nn.Sequential, checked: bool | None) -> Network:
    layers = [part for part in model if isinstance(part, nn.Linear)]
    hidden = [layer.out_features for layer in layers[:-1]]
    return Network(
        how=how,
        size="-".join(map(str, [layers[0].in_features, *hidden, 1])),
        width=max(hidden),
        depth=len(hidden),
        parameters=sum(part.numel() for part in model.parameters()),
        checked=checked,
    )


def description(look: BooleanLook) -> str:
    """Say in a few sentences what was found."""
    exactly = "" if look.swaps.kind == "exact" else "at most "
    best = look.smallest
    times = "once" if look.swaps.swaps == 1 else f"{look.swaps.swaps} times"
    sentences = [
        f"Along its best line, function {look.table.number} of {look.table.n} inputs changes "
        f"{exactly}{times}, so that {best.size} computes it with {best.parameters} weights."
    ]
    solving = [trial for trial in look.trials if trial.solved]
    if solving:
        small = min(solving, key=lambda trial: (trial.parameters, -trial.fraction))
        rate = f"{100 * small.fraction:.0f}% of {small.networks}"
        sentences.append(
            f"The smallest network that training found is {small.size} with {small.activation}: "
            f"{rate} learned it."
        )
    elif look.trials:
        sentences.append("Training found it at none of the sizes that were tried.")
    return " ".join(sentences)


def hypothetical(swaps: int, widths: Sequence[int] = (2, 3, 4)) -> list[dict[str, int]]:
    """Return depths at which section 3.3.2 expects, without proof, that w^l >= swaps is enough."""
    networks = []
    for width in widths:
        depth = 1
        while width**depth < swaps:
            depth += 1
        networks.append({"width": width, "depth": depth})
    return networks
