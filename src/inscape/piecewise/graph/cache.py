"""Exported graphs of functions, kept for the next call with the same structure.

A graph holds no weights: parameters, buffers and other tensors of the function are read anew at
every call, so that a model that is gone is freed, and models of one structure share a graph.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isfinite
from threading import RLock
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.func import functional_call

from inscape._core import checks
from inscape._core.checks import Function
from inscape.errors import UnsupportedModelError
from inscape.piecewise.graph.export import Exported, exported
from inscape.piecewise.graph.program import Program
from inscape.piecewise.graph.structure import FunctionStructure, structure
from inscape.piecewise.graph.two_calls import traced_twice
from inscape.runtime.turns import Turns

#: How many graphs are kept: those that were used last.
KEPT = 32

_GRAPHS: OrderedDict[Hashable, "_Graph"] = OrderedDict()

#: One export at a time, and no call of a function meanwhile: the exporter watches all modules.
_LOCK = RLock()
#: Threads that call functions while others may export share here; an export is alone.
EXPORTS = Turns()


@dataclass(frozen=True, eq=False, kw_only=True)
class _Graph:
    """A graph without weights, and where a function of its structure holds each constant.

    Attributes:
        program: The graph with those constants that the code itself makes.
        names: Parameters and buffers by name.
        places: Other tensors by their place in ``FunctionStructure.tensors``.
        mutated: Buffers that a call writes to.
        same_bits: Whether it reproduced its function bit for bit.
    """

    program: Program
    names: dict[fx.Node, str]
    places: dict[fx.Node, int]
    mutated: tuple[str, ...]
    same_bits: bool = True

    def bound(self, f: Function, tensors: tuple[Tensor, ...]) -> Program:
        """Return the graph with the constants that ``f`` holds now."""
        constants = dict(self.program.constants)
        if self.names and isinstance(f, nn.Module):
            live: dict[str, Tensor] = dict(f.named_parameters(remove_duplicate=False))
            live.update(f.named_buffers(remove_duplicate=False))
            constants.update({node: live[name] for node, name in self.names.items()})
        constants.update({node: tensors[place] for node, place in self.places.items()})
        return replace(self.program, constants=constants)


def export(f: Function, x: Tensor) -> Program:
    """Return the graph of ``f`` for batches of any size, with its live weights.

    A function of a structure that was exported before is not exported again. Each call compares the
    graph with the function, a new one at three rows of ``x`` and a known one at the first; where
    they differ it is exported anew. Where the exporter cannot follow the code, or traces something
    else, the operations of two calls are tried, compared at sixteen rows. Raises
    ``UnsupportedModelError`` where those depend on the input, too.
    """
    with _LOCK:
        known = _known(f, x)
    if known is not None:
        return known
    with EXPORTS.alone(), _LOCK:
        return _export(f, x)


def _key(kind: FunctionStructure | None, x: Tensor) -> Hashable:
    return None if kind is None else (kind.key, x.shape[1:], x.dtype, x.device, x[:1].stride())


def _known(f: Function, x: Tensor) -> Program | None:
    """Return the graph of a function whose structure was exported before, if it still agrees."""
    kind = structure(f)
    key = _key(kind, x)
    graph = _GRAPHS.get(key)
    if graph is None or kind is None:
        return None
    _GRAPHS.move_to_end(key)
    program = graph.bound(f, kind.tensors)
    agrees = _gap_again(program, graph, f, x) <= (0.0 if graph.same_bits else _rounding(x))
    return program if agrees else None


def _export(f: Function, x: Tensor) -> Program:
    """Return the graph of a function, exported now."""
    kind = structure(f)
    key = _key(kind, x)
    try:
        fresh = exported(f, x)
        gap = _gap(fresh.program, fresh.mutated, f, _probes(x, 3))
        if not gap <= _rounding(x):
            raise _differs(gap)
    except UnsupportedModelError as error:
        return _traced(f, x, error)
    if kind is not None:
        _keep(key, fresh, kind, same_bits=gap == 0.0)
    return fresh.program


def _traced(f: Function, x: Tensor, refusal: UnsupportedModelError) -> Program:
    """Return the graph of two calls where the exporter fails; raise its refusal where they do.

    It holds what was computed of the weights, and so is not kept.
    """
    try:
        program = traced_twice(f, x)
    except Exception:  # whatever the code of a model does in a call
        raise refusal from refusal.__cause__
    if not _gap(program, (), f, _probes(x, 16)) <= _rounding(x):
        raise refusal
    return program


def _keep(key: Hashable, fresh: Exported, kind: FunctionStructure, *, same_bits: bool) -> None:
    """Keep a graph for later calls, unless it is not known which of its tensors are which."""
    places, made = dict[fx.Node, int](), dict[fx.Node, Tensor]()
    for node, constant in fresh.program.constants.items():
        if node in fresh.names:
            continue
        at = [k for k, tensor in enumerate(kind.tensors) if _is_same(tensor, constant)]
        if len(at) > 1 and at[0] < kind.free:  # they may have other values one day
            return
        if at:
            places[node] = at[0]
        else:
            made[node] = constant
    graph = _Graph(
        program=replace(fresh.program, constants=made),
        names=fresh.names,
        places=places,
        mutated=fresh.mutated,
        same_bits=same_bits,
    )
    _GRAPHS[key] = graph
    _GRAPHS.move_to_end(key)
    while len(_GRAPHS) > KEPT:
        _GRAPHS.popitem(last=False)


def _is_same(tensor: Tensor, constant: Tensor) -> bool:
    """Tell whether two tensors are the same view of the same memory."""
    if tensor is constant:
        return True
    seen, also = (
        (t.data_ptr(), t.shape, t.stride(), t.dtype, t.device) for t in (tensor, constant)
    )
    return seen == also and tensor.numel() > 0


def _probes(x: Tensor, count: int) -> Tensor:
    """Return some rows of the data: the first, the last, and those evenly between them."""
    return x[torch.linspace(0, len(x) - 1, count).round().long().tolist()].detach()


def _gap_again(program: Program, graph: _Graph, f: Function, x: Tensor) -> float:
    """Return by how much a known graph differs at one row; at three if the function wants more."""
    try:
        return _gap(program, graph.mutated, f, x[:1].detach())
    except Exception:  # training mode refuses a single row
        return _gap(program, graph.mutated, f, _probes(x, 3))


@torch.no_grad()
def _gap(program: Program, mutated: tuple[str, ...], f: Function, rows: Tensor) -> float:
    """Return by how much graph and function differ at some rows, as a fraction of the values."""
    expected = _called(f, mutated, rows)
    try:
        (values,) = program.run({program.input: rows.clone()}, [program.output])
    except Exception:  # a graph of another function
        return inf
    if not isinstance(expected, Tensor) or values.shape != expected.shape:
        return inf
    same = (values == expected) | (values.isnan() & expected.isnan())
    if bool(same.all()):
        return 0.0
    gap, size = float((values - expected)[~same].abs().max()), float(expected.abs().max())
    return gap / size if size > 0 and isfinite(gap) else inf


def _called(f: Function, mutated: tuple[str, ...], rows: Tensor) -> Any:
    """Call a function; copies stand for the buffers that it writes to."""
    call = f
    if mutated and isinstance(f, nn.Module):
        copies = {name: f.get_buffer(name).clone() for name in mutated}
        call = partial(functional_call, f, copies)
    try:
        values = call(rows.clone())
    except Exception:
        return checks.call(call, rows.clone())  # whose error says what to do
    if mutated and isinstance(values, Tensor):
        _refuse_drift(values, call(rows.clone()), mutated)
    return values


def _refuse_drift(values: Tensor, again: Tensor, mutated: tuple[str, ...]) -> None:
    """Refuse a model whose outputs depend on buffers that its own calls change."""
    if not torch.equal(values, again):
        raise UnsupportedModelError(
            "the model must give one output for one input, but two calls with the same batch "
            f"differ, since forward writes to {', '.join(map(repr, mutated))}: take that out."
        )


def _rounding(x: Tensor) -> float:
    """Return which fraction may differ where graph and function sum up in different order."""
    return float(torch.finfo(x.dtype).eps ** 0.5)


def _differs(gap: float) -> UnsupportedModelError:
    return UnsupportedModelError(
        "the graph that torch.export traces must compute what the model computes, but at rows of "
        f"the data they differ by {gap:.2g} of the values: take out of its forward what differs "
        "from call to call or under torch.compiler.is_exporting(), such as random draws of NumPy."
    )
