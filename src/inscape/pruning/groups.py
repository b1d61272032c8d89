"""Which units of a network can be taken out, read from its traced graph.

A group is what has to be cut together: the layers that make its units, the batch norms on the way,
and the layers that read them. Layers that a shortcut adds up share one group.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, fx, nn
from torch.fx.passes.shape_prop import ShapeProp
from torch.nn import functional

from inscape._core import checks
from inscape.errors import UnsupportedModelError
from inscape.functional.fx_sources import without_graph_sources

Kind = Literal["node", "channel"]

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
LAYERS = (nn.Linear, *CONVOLUTIONS)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
#: Modules that treat every unit alone, whatever the shape.
ELEMENTWISE = (
    *(nn.ReLU, nn.LeakyReLU, nn.ReLU6, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish),
    *(nn.Tanh, nn.Sigmoid, nn.Softplus, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid),
    *(nn.Softsign, nn.Tanhshrink, nn.Softshrink, nn.Hardshrink, nn.LogSigmoid, nn.Threshold),
    *(nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d),
)
#: Modules that treat every channel alone, with the dimensions of the data that they need.
POOLS: dict[type[nn.Module], int] = {
    **dict.fromkeys((nn.MaxPool1d, nn.AvgPool1d, nn.AdaptiveAvgPool1d, nn.AdaptiveMaxPool1d), 3),
    **dict.fromkeys((nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d), 4),
    **dict.fromkeys((nn.MaxPool3d, nn.AvgPool3d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool3d), 5),
}
ELEMENTWISE_CALLS: tuple[Callable[..., Any], ...] = (
    *(functional.relu, functional.leaky_relu, functional.relu6, functional.elu, functional.selu),
    *(functional.gelu, functional.silu, functional.softplus, functional.hardtanh),
    *(functional.celu, functional.mish, functional.hardswish, functional.hardsigmoid),
    *(functional.softsign, functional.tanhshrink, functional.softshrink, functional.logsigmoid),
    *(functional.tanh, functional.sigmoid, functional.dropout, functional.dropout2d),
    *(torch.relu, torch.relu_, torch.tanh, torch.sigmoid, torch.abs, torch.sin, torch.cos),
)
POOL_CALLS: dict[Callable[..., Any], int] = {
    functional.max_pool1d: 3,
    functional.max_pool2d: 4,
    functional.avg_pool2d: 4,
    functional.adaptive_avg_pool2d: 4,
    torch.max_pool2d: 4,
}
ELEMENTWISE_METHODS = ("relu", "relu_", "tanh", "tanh_", "sigmoid", "abs", "contiguous", "clone")
SUMS = (operator.add, operator.iadd, torch.add)


@dataclass(frozen=True)
class Group:
    """Units that are cut together.

    Attributes:
        name: Path of the first layer that makes them.
        kind: ``"node"``: units of dense layers; ``"channel"``: channels of convolutions.
        units: How many there are.
        makers: Layers whose outputs they are; several where a shortcut adds them up.
        norms: Batch norms on their way.
        readers: Layers that take them in, with the number of inputs that stand for one unit (a
            flattened channel is as many as it has pixels).
    """

    name: str
    kind: Kind
    units: int
    makers: tuple[str, ...]
    norms: tuple[str, ...]
    readers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class Structure:
    """What can be cut in a network, and what cannot and why."""

    groups: tuple[Group, ...]
    fixed: Mapping[str, str]
    graph: fx.GraphModule
    model: nn.Module

    def of(self, kind: Kind) -> tuple[Group, ...]:
        """Return the groups of one kind."""
        return tuple(group for group in self.groups if group.kind == kind)

    def group(self, layer: str) -> Group:
        """Return the group that a layer makes, or say why there is none."""
        for group in self.groups:
            if layer in group.makers:
                return group
        if layer in self.fixed:
            raise UnsupportedModelError(
                f"layer {layer!r} cannot be cut, since {self.fixed[layer]}: leave it out."
            )
        known = ", ".join(repr(group.name) for group in self.groups) or "none"
        raise ValueError(f"layer must be one that can be cut ({known}), found {layer!r}.")


def structure(model: nn.Module, x: Float[Tensor, "n *d"]) -> Structure:
    """Read which units of ``model`` can be taken out; two rows of ``x`` give the shapes.

    Chains and shortcuts of dense layers, convolutions, batch norms, activations, pools and
    flattenings are known, as modules or as functions; what else reads a layer keeps it whole.
    """
    checks.in_eval_mode(model)
    graph = traced(model)
    with torch.no_grad():
        checks.call(model, x[:2].clone())
        ShapeProp(graph).propagate(x[:2].clone())
    reader = _Reader(graph)
    for node in graph.graph.nodes:
        reader.visit(node)
    groups = tuple(reader.groups())
    return Structure(groups, reader.fixed(), graph, model)


def traced(model: nn.Module) -> fx.GraphModule:
    """Return the graph of a module's forward, or say that it has none."""
    try:
        with without_graph_sources():
            return fx.symbolic_trace(model)
    except Exception as error:
        message = str(error).splitlines()[0] if str(error) else "no text"
        raise UnsupportedModelError(
            f"the model's forward must be a fixed row of calls to be cut, but tracing it raised "
            f"{type(error).__name__}: {message}; take branches on data out of it."
        ) from error


@dataclass
class _Units:
    """A group while it is being found; ``into`` is the group that a shortcut has merged it with."""

    makers: list[str]
    kind: Kind
    units: int
    norms: list[str] = field(default_factory=list)
    readers: list[tuple[str, int]] = field(default_factory=list)
    why: str = ""
    into: "_Units | None" = None


@dataclass(frozen=True)
class _Flow:
    """What a value of the graph carries: units, each as so many numbers along dimension 1."""

    units: _Units
    per: int


class _Reader:
    """Walks a graph from the input to the output."""

    def __init__(self, graph: fx.GraphModule) -> None:
        self.modules = dict(graph.named_modules())
        self.flows: dict[fx.Node, _Flow] = {}
        self.units_found: list[_Units] = []
        self.shared = dict(_shared(graph))

    def visit(self, node: fx.Node) -> None:
        """Note what a node does to the units that reach it."""
        match node.op:
            case "call_module":
                self._module(node, self.modules[str(node.target)])
            case "call_function":
                self._function(node)
            case "call_method":
                self._method(node)
            case "output":
                self._stop(node, "its units are outputs of the model")

    def _module(self, node: fx.Node, module: nn.Module) -> None:
        kind, flow = type(module), self._flow(node)
        if _hooked(module):
            self._stop(node, f"{node.target!r} ({kind.__name__}) has hooks")
        elif isinstance(module, LAYERS) and kind in LAYERS:
            self._layer(node, module)
        elif flow is None:
            self._stop(node, f"{node.target!r} ({kind.__name__}) reads it")
        elif kind in NORMS and str(node.target) in self.shared:
            self._stop(node, f"{node.target!r} ({kind.__name__}) is used in several places")
        elif kind in NORMS and flow.per == 1:
            flow.units.norms.append(str(node.target))
            self._pass(node, flow)
        elif kind in ELEMENTWISE or _dimensions(node) == POOLS.get(kind):
            self._pass(node, flow)
        elif isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
            self._flatten(node, flow)
        else:
            self._stop(node, f"{node.target!r} ({kind.__name__}) reads all its units at once")

    def _layer(self, node: fx.Node, module: nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d) -> None:
        """Let a layer read what reaches it and make units of its own."""
        name, flow = str(node.target), self._flow(node)
        dense = isinstance(module, nn.Linear)
        is_standard = _dimensions(node) == (2 if dense else module.weight.ndim)
        grouped = not dense and module.groups != 1
        why = ""
        if name in self.shared:
            why = f"{name!r} shares its weights with {self.shared[name]}"
        elif not is_standard or grouped:
            problem = "convolves its channels in groups" if grouped else "is used along other axes"
            why = f"{name!r} ({type(module).__name__}) {problem}"
        units = _Units([name], "node" if dense else "channel", len(module.weight), why=why)
        self.units_found.append(units)
        if why:
            self._stop(node, why)
        elif flow is not None:
            flow.units.readers.append((name, flow.per))
        self._pass(node, _Flow(units, 1))

    def _function(self, node: fx.Node) -> None:
        flow, target = self._flow(node), node.target
        # Numbers that are no tensors are sizes, which a cut would change.
        tensors = [arg for arg in node.all_input_nodes if _shape(arg) or not _is_tensor(arg)]
        if target in (getattr, operator.getitem) and not _shape(node):
            return  # a size, not a value
        if target in SUMS and len(tensors) == 2:
            self._sum(node, *tensors)
        elif flow is None:
            self._stop(node, f"{_called(node)} reads it")
        elif _unit_by_unit(node, len(tensors)):
            self._pass(node, flow)
        elif _flattens(node):
            self._flatten(node, flow)
        else:
            self._stop(node, f"{_called(node)} reads all its units at once")

    def _method(self, node: fx.Node) -> None:
        flow, name = self._flow(node), str(node.target)
        if not _shape(node):
            return
        if flow is None:
            self._stop(node, f"{_called(node)} reads it")
        elif name in ELEMENTWISE_METHODS:
            self._pass(node, flow)
        elif _flattens(node):
            self._flatten(node, flow)
        else:
            self._stop(node, f"{_called(node)} reads all its units at once")

    def _flow(self, node: fx.Node) -> _Flow | None:
        """Return what the first argument carries."""
        first = node.args[0] if node.args else None
        return self.flows.get(first) if isinstance(first, fx.Node) else None

    def _pass(self, node: fx.Node, flow: _Flow) -> None:
        self.flows[node] = flow

    def _flatten(self, node: fx.Node, flow: _Flow) -> None:
        shape = _shape(node.args[0])
        if len(_shape(node)) != 2 or _shape(node)[0] != shape[0]:
            self._stop(node, f"{_called(node)} reads all its units at once")
            return
        self._pass(node, _Flow(flow.units, _shape(node)[1] // flow.units.units))

    def _sum(self, node: fx.Node, a: fx.Node, b: fx.Node) -> None:
        """Merge the groups of a shortcut's two ends."""
        first_flow, second_flow = self.flows.get(a), self.flows.get(b)
        alike = (
            first_flow
            and second_flow
            and first_flow.per == second_flow.per
            and _shape(a) == _shape(b)
        )
        if (
            not first_flow
            or not second_flow
            or not alike
            or _root(first_flow.units).kind != _root(second_flow.units).kind
        ):
            self._stop(node, f"{_called(node)} adds something else to it")
            return
        first, second = _root(first_flow.units), _root(second_flow.units)
        if first is not second:
            second.into = first
        self._pass(node, first_flow)

    def _stop(self, node: fx.Node, why: str) -> None:
        """Keep whole every group that reaches a node."""
        for arg in node.all_input_nodes:
            if arg in self.flows:
                units = self.flows[arg].units
                units.why = units.why or why

    def groups(self) -> Iterator[Group]:
        """Yield the groups that can be cut, from the input on."""
        for root, parts in self._merged():
            readers = tuple(reader for part in parts for reader in part.readers)
            if readers and not any(part.why for part in parts):
                makers = tuple(maker for part in parts for maker in part.makers)
                norms = tuple(norm for part in parts for norm in part.norms)
                yield Group(makers[0], root.kind, root.units, makers, norms, readers)

    def fixed(self) -> dict[str, str]:
        """Return the layers that must stay whole, each with the reason."""
        reasons: dict[str, str] = {}
        for _, parts in self._merged():
            why = next((part.why for part in parts if part.why), "")
            if not why and not any(part.readers for part in parts):
                why = "no layer reads it"
            if why:
                reasons |= {maker: why for part in parts for maker in part.makers}
        return reasons

    def _merged(self) -> Iterator[tuple[_Units, list[_Units]]]:
        for root in self.units_found:
            if root.into is None:
                yield root, [part for part in self.units_found if _root(part) is root]


def _unit_by_unit(node: fx.Node, tensors: int) -> bool:
    """Tell whether a function treats every unit alone."""
    target: Any = node.target
    if target in (*SUMS, operator.mul):
        return tensors == 1
    return target in ELEMENTWISE_CALLS or _dimensions(node) == POOL_CALLS.get(target)


def _flattens(node: fx.Node) -> bool:
    """Tell whether a call makes one row of everything but the batch, whatever its size."""
    if node.target in ("view", "reshape"):
        return bool(len(node.args) == 3 and node.args[2] == -1)
    from_first = node.args[1:] == (1,) and not node.kwargs
    return bool(from_first and node.target in ("flatten", torch.flatten))


def _root(units: _Units) -> _Units:
    while units.into is not None:
        units = units.into
    return units


def _shared(graph: fx.GraphModule) -> Iterator[tuple[str, str]]:
    """Yield modules that are called twice, or whose weights are used elsewhere too."""
    modules = dict(graph.named_modules())
    parts = dict(graph.named_parameters(remove_duplicate=False))
    owners: dict[int, list[str]] = {}
    for node in graph.graph.nodes:
        name = str(node.target)
        if node.op == "call_module":
            module = modules[name]
            for part in (module, *module.parameters(recurse=False)):
                owners.setdefault(id(part), []).append(name)
        elif node.op == "get_attr" and name in parts:
            owners.setdefault(id(parts[name]), []).append(name)
    for names in owners.values():
        for name in names:
            if len(names) > 1:
                others = [repr(other) for other in dict.fromkeys(names) if other != name]
                yield name, ", ".join(others) or "itself: it is called more than once"


def _hooked(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _shape(node: Any) -> tuple[int, ...]:
    """Return the shape of a tensor in the graph, nothing for any other value."""
    meta = node.meta.get("tensor_meta") if isinstance(node, fx.Node) else None
    return tuple(getattr(meta, "shape", ()))


def _is_tensor(node: fx.Node) -> bool:
    return "tensor_meta" in node.meta


def _dimensions(node: fx.Node) -> int:
    return len(_shape(node.args[0])) if node.args else 0


def _called(node: fx.Node) -> str:
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return f"the call of {name!r} in forward"
