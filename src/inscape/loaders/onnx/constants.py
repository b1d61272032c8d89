"""Constant folding of a graph: sizes that do not depend on the input, and which are weights."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from inscape.errors import UnsupportedModelError
from inscape.loaders.files import short
from inscape.loaders.onnx.nodes import Node
from inscape.loaders.onnx.operators import OPERATORS, SETTINGS_AT
from inscape.loaders.onnx.operators_layers import LAYERS
from inscape.loaders.onnx.operators_recurrent import RECURRENT
from inscape.loaders.onnx.reader import OnnxGraph
from inscape.loaders.onnx.shape_arithmetic import HOST, LARGEST, on_host

_WEIGHED = frozenset({*LAYERS, *RECURRENT, "PRelu"})


@dataclass(frozen=True, kw_only=True)
class FoldedGraph:
    """Steps that are left, sizes that are known, and the constants that are read as tensors."""

    nodes: tuple[Node, ...]
    fixed: Mapping[str, Any]
    weights: Mapping[str, Any]
    buffers: Mapping[str, Any]


def plan(graph: OnnxGraph) -> FoldedGraph:
    """Return how a graph is computed: what is known already is not computed again."""
    graph = _with_flat_slopes(graph)
    small = {name: a for name, a in graph.constants.items() if np.size(a) <= LARGEST}
    fixed = {name: on_host(array) for name, array in small.items()}
    floats = {name for name, array in graph.constants.items() if _is_float(array)}
    single = {declared.name for declared in graph.inputs if declared.single}
    rows = graph.inputs[0].sizes[0] if graph.inputs[0].sizes else None
    planner = _Planner(fixed, floats, {declared.name for declared in graph.inputs} - single, rows)
    planner.on_hosts |= single
    nodes = planner.planned(graph.nodes)
    return FoldedGraph(nodes=nodes, fixed=fixed, **_constants(graph, nodes))


class _Planner:
    """Goes through steps in order, and knows of each name whether it is a size or a tensor."""

    def __init__(
        self, fixed: dict[str, Any], floats: set[str], moving: set[str], rows: int | None
    ) -> None:
        self.fixed, self.floats, self.moving, self.rows = fixed, floats, moving, rows
        self.on_hosts = set(fixed)

    def planned(self, steps: Iterable[Node]) -> tuple[Node, ...]:
        """Return the steps that are left to be computed, marked."""
        return tuple(node for step in steps for node in self._step(step))

    def _step(self, node: Node) -> Iterator[Node]:
        read = {name for name in node.inputs if name}
        if node.op == "If":
            yield self._if(node)
            return
        if node.op in ("Shape", "Size"):
            self.on_hosts.update(node.outputs)
            yield node
            return
        hosted = node.op in HOST and read <= self.on_hosts and not (read and read <= self.floats)
        if hosted and read <= self.fixed.keys() and not _is_long(node, self.fixed):
            self.fixed[node.outputs[0]] = run_on_host(node, self.fixed)
            self.on_hosts.update(node.outputs)
            return
        hosted = hosted and node.op not in ("ConstantOfShape", "Expand")
        if not hosted and node.op not in OPERATORS:
            node.refuse("inputs that do not depend on the values of the input", "others")
        self.on_hosts.update(node.outputs if hosted else ())
        moved = not hosted and not read.isdisjoint(self.moving)
        self.moving.update(node.outputs if moved else ())
        first = self.rows if moved and _names_rows(node, self.fixed, self.rows) else None
        yield replace(node, on_host=hosted, rows=first)

    def _if(self, node: Node) -> Node:
        """Plan both branches; the condition must be known from sizes and settings alone."""
        if node.inputs[0] not in self.on_hosts:
            node.refuse(
                "a condition that does not depend on the values of the input", "one that does"
            )
        branches = tuple(
            replace(branch, nodes=self.planned(branch.nodes)) for branch in node.branches
        )
        for at, name in enumerate(node.outputs):
            outputs = {branch.outputs[at] for branch in branches}
            if outputs <= self.on_hosts:
                self.on_hosts.add(name)
            elif not outputs.isdisjoint(self.moving):
                self.moving.add(name)
        return replace(node, branches=branches)


def _with_flat_slopes(graph: OnnxGraph) -> OnnxGraph:
    """Make slopes of channels flat, as torch has them: so the region instruments read them."""
    read = [(name, node.op) for node in graph.nodes for name in node.inputs]
    alone = {node.inputs[1] for node in graph.nodes if node.op == "PRelu"}
    alone -= {name for name, op in read if op != "PRelu"} | {*graph.outputs}
    alone -= {name for node in graph.nodes if node.branches for name in node.reads}
    flat = {name: graph.constants[name] for name in alone if name in graph.constants}
    flat = {name: array for name, array in flat.items() if array.size == (*array.shape, 1)[0]}
    nodes = [
        replace(node, settings={"slopes": list(flat[node.inputs[1]].shape)})
        if node.op == "PRelu" and node.inputs[1] in flat
        else node
        for node in graph.nodes
    ]
    constants = {**graph.constants, **{name: array.reshape(-1) for name, array in flat.items()}}
    return replace(graph, nodes=tuple(nodes), constants=constants)


def run_on_host(node: Node, values: Mapping[str, Any]) -> Any:
    """Return what a step makes of sizes."""
    try:
        outputs = HOST[node.op](node, *(values[name] if name else None for name in node.inputs))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, UnsupportedModelError):
            raise
        raise UnsupportedModelError(
            f"{node.place} must compute sizes, but that raised {short(error)}: export the model "
            "another way, for example as .pt2."
        ) from error
    return on_host(outputs)


def _is_float(array: Any) -> bool:
    return np.asarray(array).dtype.kind == "f"


def _is_long(node: Node, fixed: Mapping[str, Any]) -> bool:
    """Tell whether a constant would be too long for a list of sizes."""
    if node.op not in ("ConstantOfShape", "Expand"):
        return False
    sizes = [int(size) for size in np.ravel(fixed[node.inputs[-1]])]
    return prod(sizes) > LARGEST


def _names_rows(node: Node, fixed: Mapping[str, Any], rows: int | None) -> bool:
    """Tell whether a new shape begins with the batch size that the file was written for."""
    if node.op != "Reshape" or rows is None or node.inputs[1] not in fixed:
        return False
    sizes = list(np.ravel(fixed[node.inputs[1]]))
    return bool(sizes) and sizes[0] == rows


def _constants(graph: OnnxGraph, nodes: tuple[Node, ...]) -> dict[str, dict[str, Any]]:
    """Return the constants that steps read as tensors: weights, and others."""
    weights: dict[str, Any] = {}
    buffers: dict[str, Any] = {
        name: a for name, a in graph.constants.items() if name in graph.outputs
    }
    nodes = tuple(with_inner(nodes))
    returned = {name for node in nodes for branch in node.branches for name in branch.outputs}
    buffers |= {name: a for name, a in graph.constants.items() if name in returned}
    for node in nodes:
        for at, name in enumerate(node.inputs):
            settings = node.on_host or at in SETTINGS_AT.get(node.op, ())
            if settings or node.op in ("Shape", "Size") or name not in graph.constants:
                continue
            array = graph.constants[name]
            if np.size(array) <= LARGEST and not np.isfinite(array).all():
                continue  # a bound such as -inf, which is no weight: it is read as a setting is
            moves = _is_float(array) and not (node.op == "BatchNormalization" and at > 2)
            long = np.size(array) > 1 or node.op in _WEIGHED or (node.op == "Add" and array.ndim)
            target = weights if moves and (long or name in weights) else buffers
            target[name] = array
    buffers = {name: array for name, array in buffers.items() if name not in weights}
    return {"weights": weights, "buffers": buffers}


def with_inner(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield steps and those in their branches."""
    for node in nodes:
        yield node
        yield from with_inner(node.steps)
