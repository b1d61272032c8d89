"""The Boolean lab: one function of the page's truth table, by the instruments of the library."""

from collections.abc import Generator, Iterator
from math import ceil, log2
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, field_validator
from torch import nn

from inscape.boolean import (
    Swaps,
    TruthTable,
    fourier,
    from_bits,
    narrow_network,
    npn,
    parity,
    parity_network,
    represents,
    swaps,
    wide_network,
)
from inscape.boolean.constructions import projected
from inscape.boolean.formula import read_function
from inscape.explorer.requests import AnyRequest, FigureFormat
from inscape.explorer.wire import Array
from inscape.report.boolean.trials import named, seen_before, trials
from inscape.runtime.deadline import now

#: Inputs of a function, at most, and networks of one trial.
MOST, NETWORKS = 5, 100
#: Points at which the network along the line is drawn.
DRAWN = 241

Facts = dict[str, Any]
Answer = Generator[None, None, tuple[Facts, dict[str, Array]]]


class FunctionRequest(AnyRequest):
    """A Boolean function by its printed table, or by a formula or number that replaces it."""

    bits: Annotated[str, Field(pattern=r"^[01]{2,32}$")] = "0110"
    formula: Annotated[str, Field(max_length=200)] = ""

    @field_validator("bits")
    @classmethod
    def _has_all_values(cls, bits: str) -> str:
        if len(bits) & (len(bits) - 1):
            raise ValueError("a table must have 2, 4, 8, 16 or 32 values")
        return bits


class FunctionFigureRequest(FunctionRequest):
    """A figure of a function: its inputs along the best line, or its Fourier spectrum."""

    of: Literal["line", "spectrum"] = "line"
    format: FigureFormat = "pdf"


class TrialRequest(FunctionRequest):
    """How often training finds a function with networks of one size."""

    width: Annotated[int, Field(ge=1, le=24)] = 2
    depth: Annotated[int, Field(ge=1, le=4)] = 1
    networks: Annotated[int, Field(ge=1, le=NETWORKS)] = 50
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


def table_of(query: FunctionRequest) -> TruthTable:
    """Return the function of a request; a formula goes before the table."""
    if not query.formula.strip():
        return from_bits([int(bit) for bit in query.bits])
    table = read_function(query.formula)
    if table.n > MOST:
        raise ValueError(
            f"a function must have at most {MOST} inputs here, found {table.n}: look at it with "
            "inscape look --boolean."
        )
    return table


def function_facts(query: FunctionRequest, results: Path) -> Answer:
    """Answer with class, spectrum, swaps with their line, networks, and records of figure 3.5."""
    table = table_of(query)
    yield
    canonical = int(npn.canonical(table.number, table.n))
    yield
    least = swaps(table)
    yield
    spectrum = fourier(table)
    networks = list(_networks(table, least, canonical))
    smallest = min(networks, key=lambda entry: entry["parameters"])
    yield
    earlier = seen_before(canonical, results) if table.n == 4 else ()
    facts = {
        "n": table.n,
        "number": str(table.number),
        "bits": str(table),
        "class": str(canonical),
        "classBits": str(TruthTable(table.n, canonical)),
        "classSize": int(npn.class_sizes([table.number], table.n)[0]),
        "true": int(table.bits.sum()),
        "swaps": least.swaps,
        "weights": least.weights.tolist(),
        "degree": spectrum.degree,
        "influence": spectrum.influence,
        "influences": spectrum.influences.tolist(),
        "entropy": spectrum.entropy,
        "spectrum": list(spectrum.rows()),
        "line": _line(table, least),
        "networks": networks,
        "smallest": networks.index(smallest),
        "earlier": [vars(trial) for trial in earlier],
    }
    return facts, {}


def function_figure(query: FunctionFigureRequest) -> Answer:
    """Answer with a figure of a function, drawn by the library."""
    from inscape.figures.drawing import draw, rendered

    table = table_of(query)
    yield
    result = swaps(table) if query.of == "line" else fourier(table)
    yield
    data = rendered(draw(result), f".{query.format}")
    return {"bytes": len(data)}, {"file": np.frombuffer(data, np.uint8)}


def _line(table: TruthTable, least: Swaps) -> Facts:
    """Return the inputs along the best line, where it changes, and the network over it."""
    line = projected(table, least.weights.tolist())
    pad = 0.03 * (line.end - line.start) or 1.0
    t = torch.linspace(line.start - pad, line.end + pad, DRAWN, dtype=torch.float64)
    values = torch.full_like(t, float(line.first))
    if line.changes:
        first, *rest = wide_network(table, line.weights)
        assert isinstance(first, nn.Linear)
        with torch.no_grad():
            values = nn.Sequential(*rest)(t[:, None] + first.bias)[:, 0]
    return {
        "inputs": list(least.rows()),
        "zeros": list(line.zeros),
        "t": t.tolist(),
        "values": (values / values.abs().max()).tolist(),
    }


def _networks(table: TruthTable, least: Swaps, canonical: int) -> Iterator[Facts]:
    """Yield the networks that are known to compute a function, checked in rational arithmetic."""
    weights = least.weights.tolist()
    yield _network("one unit for each swap (theorem 3.3.2)", wide_network(table, weights), table)
    yield _network("width two (section 3.3.1)", narrow_network(table, weights), table)
    n = table.n
    if n > 1 and table.number == parity(n).number == canonical:
        folded = parity_network(n, width=2, depth=ceil(log2(n)))
        yield _network("parity by folding (theorem 3.3.4)", folded, table)


def _network(how: str, model: nn.Sequential, table: TruthTable) -> Facts:
    layers = [part for part in model if isinstance(part, nn.Linear)]
    return {
        "how": how,
        "sizes": [table.n, *(layer.out_features for layer in layers)],
        "layers": [
            {"weights": layer.weight.tolist(), "bias": layer.bias.tolist()} for layer in layers
        ],
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "isRight": represents(model, table),
    }


def trial_facts(query: TrialRequest) -> Answer:
    """Answer with how many networks of a size learn a function, with ReLU and leaky ReLU."""
    table = table_of(query)
    yield
    outcomes, _ = trials(
        table, [(query.width, query.depth)], networks=query.networks, seed=query.seed,
        until=now() + 60.0, threads=1, quiet=True,
    )  # fmt: skip
    return {
        "size": named(table.n, query.width, query.depth),
        "trials": [vars(trial) for trial in outcomes],
    }, {}
