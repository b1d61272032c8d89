"""A network of an ONNX file as a plain module with its own parameters and buffers."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from inscape.errors import BudgetError, UnsupportedModelError
from inscape.files.size_limits import in_bytes, memory
from inscape.loaders.files import short
from inscape.loaders.onnx.constants import plan, run_on_host, with_inner
from inscape.loaders.onnx.nodes import Node, shown
from inscape.loaders.onnx.operators import OPERATORS, SETTINGS_AT, TOLD
from inscape.loaders.onnx.operators_shape import BOOL, FLOATS, WHOLE
from inscape.loaders.onnx.reader import Input, OnnxGraph
from inscape.loaders.onnx.shape_arithmetic import on_host

#: Inputs, by shape, that are remembered to fit into memory.
_REMEMBERED = 1000
_DOUBLE = 11
#: What torch, or a step, raises where settings or shapes do not fit.
_FAULTS = (RuntimeError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


class OnnxNetwork(nn.Module):
    """The steps of an ONNX graph; several outputs are returned as a dictionary by name.

    Attributes:
        inputs: Names, kinds and sizes of its inputs, in order.
    """

    def __init__(self, graph: OnnxGraph) -> None:
        super().__init__()
        planned = plan(graph)
        self.inputs: tuple[Input, ...] = graph.inputs
        self._outputs = graph.outputs
        self._nodes = planned.nodes
        self._fixed = dict(planned.fixed)
        self._attributes: dict[str, str] = {}
        dtype = torch.float64 if graph.inputs[0].kind == _DOUBLE else torch.float32
        self.register_buffer("_like", torch.empty(0, dtype=dtype), persistent=False)
        for name, array in planned.weights.items():
            weight = nn.Parameter(torch.from_numpy(np.array(array)).to(dtype))
            self.register_parameter(self._attribute(name), weight)
        for name, array in planned.buffers.items():
            tensor = torch.from_numpy(np.array(array))
            tensor = tensor.to(dtype) if tensor.is_floating_point() else tensor
            self.register_buffer(self._attribute(name), tensor)
        self._last = _last_uses(self._nodes, self._outputs)
        self._fitting: set[tuple[Any, ...]] = set()
        self.eval()

    @property
    def input_names(self) -> tuple[str, ...]:
        """Return the names of the inputs, in order."""
        return tuple(declared.name for declared in self.inputs)

    @property
    def rewritten(self) -> int:
        """Return how many shapes name the number of examples, and now follow it."""
        return sum(node.rows is not None for node in with_inner(self._nodes))

    def forward(
        self, first: Tensor | None = None, /, *more: Tensor | int, **named: Tensor | int
    ) -> Tensor | dict[str, Tensor]:
        """Return what the network makes of its inputs, in order or by name."""
        arguments = () if first is None else (first, *more)
        inputs = self.as_declared(self._checked(arguments, named))
        shapes = tuple(_key(value) for value in inputs.values())
        if not torch.compiler.is_compiling() and shapes not in self._fitting:
            self._check_memory(inputs, shapes)
        values = self._run({**self._constants(), **inputs})
        return next(iter(values.values())) if len(values) == 1 else values

    def extra_repr(self) -> str:
        """Say how long the graph is."""
        return f"ONNX graph, {len(self._nodes)} steps"

    def _attribute(self, name: str) -> str:
        """Return a name that a module can have, and keep what it stands for."""
        attribute = re.sub(r"\W", "_", name)[:80] or "_"
        used = {*self._attributes.values(), *dir(self)}
        while attribute in used:
            attribute += "_"
        self._attributes[name] = attribute
        return attribute

    def _constants(self) -> dict[str, Any]:
        return {name: getattr(self, attribute) for name, attribute in self._attributes.items()}

    def _checked(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs by name, all of them and no others."""
        names = self.input_names
        by_name = dict(zip(names, arguments, strict=False)) | dict(named)
        if len(arguments) > len(names) or set(by_name) != set(names):
            listed = ", ".join(f"{shown(name)}: ..." for name in names)
            raise UnsupportedModelError(
                f"the network takes the inputs {', '.join(map(shown, names))}, found "
                f"{len(arguments) + len(named)} of them: in Python, inscape.adapt(open_model(FILE)"
                f".model, inputs={{{listed}}}) makes one of them."
            )
        return by_name

    def as_declared(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return inputs in the kinds of numbers and the sizes that the file says."""
        return {
            declared.name: self._as_declared(declared, inputs[declared.name])
            for declared in self.inputs
        }

    def _as_declared(self, declared: Input, x: Any) -> Any:
        if declared.single:
            return on_host(int(x))
        sizes = zip(declared.sizes[1:], x.shape[1:], strict=False)
        if declared.sizes and (
            len(declared.sizes) != x.ndim or any(a not in (None, b) for a, b in sizes)
        ):
            wanted = " x ".join(str(size or "any") for size in declared.sizes[1:])
            raise ValueError(
                f"the input {shown(declared.name)} must have samples of shape "
                f"{wanted or 'one number'}, found {tuple(x.shape)}: give the data another "
                "--input-shape."
            )
        if declared.kind in FLOATS:
            return x
        if declared.kind == BOOL:
            return x != 0
        return (x.round() if x.is_floating_point() else x).to(WHOLE[declared.kind])

    def _run(self, values: dict[str, Any], watch: "_CostMeter | None" = None) -> dict[str, Tensor]:
        rows = values[self.inputs[0].name].shape[:1]
        for node, forget in zip(self._nodes, self._last, strict=True):
            self._take(node, values, rows, watch)
            for name in forget:
                values.pop(name, None)
        return {name: self._tensor(name, values) for name in self._outputs}

    def _take(
        self, node: Node, values: dict[str, Any], rows: Any, watch: "_CostMeter | None"
    ) -> None:
        """Take one step; of an ``If`` those of the branch that its condition says."""
        if not node.branches:
            values |= zip(node.outputs, self._step(node, values, rows), strict=False)
        else:
            condition = np.ravel(self._setting(node.inputs[0], values))
            branch = node.branches[0 if len(condition) == 1 and bool(condition[0]) else 1]
            for inner in branch.nodes:
                self._take(inner, values, rows, watch)
            outputs = [values[n] if n in values else self._fixed[n] for n in branch.outputs]
            values |= zip(node.outputs, outputs, strict=False)
        if watch is not None:
            watch.see(node, values)

    def _step(self, node: Node, values: Mapping[str, Any], rows: Any) -> tuple[Any, ...]:
        """Return what one step makes; sizes are computed apart from numbers."""
        if node.on_host:
            return (run_on_host(node, {**values, **self._fixed}),)
        if node.op in ("Shape", "Size"):
            return (_shape(node, values.get(node.inputs[0], self._fixed.get(node.inputs[0]))),)
        settings = SETTINGS_AT.get(node.op, ())
        read: list[Any] = [
            None
            if not name
            else self._setting(name, values)
            if at in settings
            else self._tensor(name, values)
            for at, name in enumerate(node.inputs)
        ]
        if node.rows is not None:
            read[1] = [*rows, *np.ravel(read[1])[1:]]
        if node.op in TOLD:
            read.append(self._like_of(values))
        try:
            output = OPERATORS[node.op](node, *read)
        except _FAULTS as error:
            ours = isinstance(error, UnsupportedModelError | BudgetError)
            if ours or torch.compiler.is_compiling():
                raise
            raise UnsupportedModelError(
                f"{node.place} must be computed as the file says, but that raised {short(error)}: "
                "export the model another way, for example as .pt2."
            ) from error
        return output if isinstance(output, tuple) else (output,)

    def _setting(self, name: str, values: Mapping[str, Any]) -> Any:
        return self._fixed[name] if name in self._fixed else values[name]

    def _tensor(self, name: str, values: Mapping[str, Any]) -> Tensor:
        """Return a value as a tensor of the network's own precision, where it is one of sizes."""
        value = values[name] if name in values else self._fixed[name]
        if isinstance(value, Tensor):
            return value
        like = self._like_of(values)
        dtype = like.dtype if value.dtype.kind == "f" else None
        return torch.tensor(value.tolist(), dtype=dtype, device=like.device)

    def _like_of(self, values: Mapping[str, Any]) -> Tensor:
        first = values.get("", self._like)
        assert isinstance(first, Tensor)
        return first

    @torch.no_grad()
    def _check_memory(self, inputs: Mapping[str, Any], shapes: tuple[Any, ...]) -> None:
        """Refuse inputs for which the steps would take more memory than there is.

        A few steps of a small file can describe tensors of any size, so the shapes are computed
        first, on the device ``meta``, which stores no numbers.
        """
        self.watched(inputs)
        if len(self._fitting) >= _REMEMBERED:
            self._fitting.clear()
        self._fitting.add(shapes)

    @torch.no_grad()
    def watched(self, inputs: Mapping[str, Any]) -> "_CostMeter":
        """Return what the steps would take, by shapes alone."""
        values = {"": self._like, **self._constants(), **inputs}
        empty = {name: _shape_only(value) for name, value in values.items()}
        watch = _CostMeter(set(values) - set(inputs), memory() * 3 // 4)
        self._run(empty, watch)
        return watch


class _CostMeter:
    """Adds up what the steps take: bytes held at a time, and products of numbers in all."""

    def __init__(self, own: set[str], limit: int) -> None:
        self._own, self._limit, self.products = own, limit, 0

    def see(self, node: Node, values: Mapping[str, Any]) -> None:
        """Look at the values after a step."""
        tensors = {n: v for n, v in values.items() if isinstance(v, Tensor) and n not in self._own}
        memory = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        if memory > self._limit:
            raise BudgetError(
                f"a network must fit into {in_bytes(self._limit)}, three quarters of the memory "
                f"here, found {in_bytes(memory)} at {node.place}: use smaller batches."
            )
        output = values[node.outputs[0]]
        if isinstance(output, Tensor):
            self.products += output.numel() * _products(node, values)


def _products(node: Node, values: Mapping[str, Any]) -> int:
    """Return how many products make one number of what a step makes."""
    first, second = ([*(values.get(name) for name in node.inputs), None, None])[:2]
    if node.op in ("Gemm", "MatMul") and isinstance(first, Tensor):
        return int(first.shape[-1])
    if node.op in ("Conv", "ConvTranspose") and isinstance(second, Tensor):
        return int(second.numel() // max(second.shape[0], 1))
    return 1


def _shape(node: Node, value: Any) -> Any:
    sizes = list(value.shape)
    if node.op == "Size":
        total = np.empty((), object)
        total[()] = np.prod(np.array(sizes, dtype=object)) if sizes else 1
        return total
    start, end = node.integer("start", 0), node.integer("end", len(sizes))
    return np.array(sizes, dtype=object)[start:end]


def _shape_only(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return torch.empty(value.shape, dtype=value.dtype, device="meta")


def _key(value: Any) -> Any:
    return value.shape if isinstance(value, Tensor) else value.item()


def _last_uses(nodes: tuple[Node, ...], outputs: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return for each step what no later step reads."""
    later, backwards = set(outputs), []
    for node in reversed(nodes):
        inner = {name for step in with_inner(node.steps) for name in step.outputs}
        touched = (node.reads | inner | {*node.outputs}) - {""}
        backwards.append(tuple(sorted(touched - later)))
        later |= touched
    return backwards[::-1]
