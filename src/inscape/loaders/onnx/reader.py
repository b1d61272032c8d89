"""An ONNX file as a list of steps and tensors; everything that is not known is refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from inscape.errors import UnsupportedModelError
from inscape.files.size_limits import check_size
from inscape.loaders.files import short
from inscape.loaders.onnx.nodes import Branch, Node, shown
from inscape.loaders.onnx.operators import KNOWN
from inscape.loaders.onnx.operators_shape import BOOL, FLOATS, WHOLE
from inscape.loaders.onnx.tensors import TensorReader
from inscape.runtime.extras import need

#: Versions of the standard operators that are read.
OLDEST, NEWEST = 7, 28

_STANDARD = ("", "ai.onnx")
_GRAPH = 5  # the kind of a setting that is a graph
#: Those that need two inputs at least; every other one needs its first.
_OF_TWO = ("Conv", "ConvTranspose", "Expand", "Gemm", "MatMul", "PRelu", "Reshape")
_CONTROL = ("Loop", "Scan", "SequenceMap")
#: How deep branches may lie in branches.
_DEEPEST = 16


@dataclass(frozen=True, kw_only=True)
class Input:
    """An input: its name, ONNX's kind of its numbers, and its sizes; None for any."""

    name: str
    kind: int
    sizes: tuple[int | None, ...]
    single: bool = False  # one integer for all examples, such as a sampling rate


@dataclass(frozen=True, kw_only=True)
class OnnxGraph:
    """Steps in order, constants by name, inputs, outputs; ``proto`` is what was read."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Any]
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    proto: Any


def read_graph(path: Path, *, max_size: int | None = None) -> OnnxGraph:
    """Return the graph of a file."""
    onnx = need("onnx", extra="onnx", why="opening .onnx files")
    check_size(path, path.stat().st_size, max_size=max_size)
    try:
        proto = onnx.load_model_from_string(path.read_bytes())
    except Exception as error:  # protobuf has several kinds of them
        raise UnsupportedModelError(
            f"{path} must be a whole ONNX file, found one that cannot be read ({short(error)}): "
            "copy it again."
        ) from error
    opset = _opset(path, proto)
    tensors = TensorReader(onnx, path, max_size)
    stored = proto.graph
    if len(stored.sparse_initializer):
        _refuse(path, "dense tensors", "sparse ones")
    constants: dict[str, Any] = {}
    reader = _StepReader(path, opset, tensors, constants)
    graph = OnnxGraph(
        nodes=reader.steps(stored, 0),
        constants=constants,
        inputs=tuple(_input(path, i) for i in stored.input if i.name not in constants),
        outputs=tuple(output.name for output in stored.output),
        proto=proto,
    )
    _check_wiring(path, graph)
    return graph


def _opset(path: Path, proto: Any) -> int:
    versions = {entry.domain: entry.version for entry in proto.opset_import}
    version = next((versions[d] for d in _STANDARD if d in versions), None)
    if version is None:
        _refuse(path, "a version of the standard operators", "none")
    if not OLDEST <= version <= NEWEST:
        _refuse(path, f"operators of a version from {OLDEST} to {NEWEST}", f"version {version}")
    if len(proto.functions):
        _refuse(path, "no functions of its own", proto.functions[0].name)
    return int(version)


class _StepReader:
    """Reads the steps of a graph and of the branches in it; constants are gathered in one place."""

    def __init__(
        self, path: Path, opset: int, tensors: TensorReader, constants: dict[str, Any]
    ) -> None:
        self._path, self._opset, self._tensors = path, opset, tensors
        self._constants = constants

    def steps(self, graph: Any, depth: int) -> tuple[Node, ...]:
        """Return the steps of a graph in order."""
        if depth > _DEEPEST:
            _refuse(self._path, f"branches of at most {_DEEPEST} levels", "more")
        for tensor in graph.initializer:
            self._keep(tensor.name, self._tensors.array(tensor))
        nodes = []
        for step in graph.node:
            node = _node(self._path, step, self._opset, self._tensors)
            if node.op == "Constant":
                self._keep(node.outputs[0], _constant(node))
            elif node.op == "If":
                nodes.append(replace(node, branches=self._branches(step, depth)))
            else:
                nodes.append(node)
        return tuple(nodes)

    def _keep(self, name: str, array: Any) -> None:
        if name in self._constants:
            _refuse(self._path, "a name for each result", f"{name} twice")
        self._constants[name] = array

    def _branches(self, step: Any, depth: int) -> tuple[Branch, ...]:
        """Return what is done where the condition is true, then where it is not."""
        graphs = {a.name: a.g for a in step.attribute if a.type == _GRAPH}
        if set(graphs) != {"then_branch", "else_branch"}:
            _refuse(self._path, "two branches for each If", ", ".join(graphs) or "none")
        branches = []
        for key in ("then_branch", "else_branch"):
            graph = graphs[key]
            if len(graph.input) or len(graph.output) < len(step.output):
                _refuse(self._path, "branches that return what the If does", key)
            outputs = tuple(output.name for output in graph.output)
            branches.append(Branch(nodes=self.steps(graph, depth + 1), outputs=outputs))
        return tuple(branches)


def _node(path: Path, step: Any, opset: int, tensors: TensorReader) -> Node:
    named = step.name or (step.output[0] if len(step.output) else "")
    if step.domain not in _STANDARD:
        operator = f"{step.domain}.{step.op_type} at node {named}"
        if step.domain == "ai.onnx.ml":  # forests, encoders and scalers of scikit-learn
            _refuse(path, "standard operators", operator, "open the model that it was made from")
        _refuse(path, "standard operators", operator)
    if step.op_type in _CONTROL:
        _refuse(path, "no control flow", f"{step.op_type} at node {named}")
    if step.op_type not in (*KNOWN, "If"):
        _refuse(path, "operators that are known here", f"{step.op_type} at node {named}")
    if not len(step.output):
        _refuse(path, "steps that make something", f"{step.op_type} at node {named}")
    needed = 0 if step.op_type == "Constant" else 2 if step.op_type in _OF_TWO else 1
    if sum(map(bool, step.input[:needed])) < needed:
        _refuse(path, f"steps with {needed} inputs", f"fewer for {step.op_type} at node {named}")
    outputs = list(step.output)
    while len(outputs) > 1 and not outputs[-1]:
        outputs.pop()
    return Node(
        op=step.op_type,
        name=step.name,
        inputs=tuple(step.input),
        outputs=tuple(outputs),
        opset=opset,
        settings={
            a.name: _setting(path, named, a, tensors)
            for a in step.attribute
            if not (step.op_type == "If" and a.type == _GRAPH)
        },
    )


def _setting(path: Path, named: str, attribute: Any, tensors: TensorReader) -> Any:
    """Return the value of an attribute: numbers, words or a tensor."""
    kinds = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints", 8: "strings"}
    if attribute.type not in kinds:
        _refuse(path, "settings that are numbers, words or tensors", f"others at node {named}")
    value = getattr(attribute, kinds[attribute.type])
    if attribute.type == 3:
        return value.decode("utf-8", "replace")
    if attribute.type == 4:
        return tensors.array(value)
    if attribute.type == 8:
        return [word.decode("utf-8", "replace") for word in value]
    return list(value) if attribute.type >= 6 else value


def _constant(node: Node) -> Any:
    import numpy as np

    for key, kind in (("value_float", np.float32), ("value_floats", np.float32)):
        if key in node.settings:
            return np.asarray(node.settings[key], kind)
    for key in ("value_int", "value_ints"):
        if key in node.settings:
            return np.asarray(node.settings[key], np.int64)
    if "value" not in node.settings:
        node.refuse("a tensor or numbers as its value", ", ".join(node.settings) or "none")
    return node.settings["value"]


def _input(path: Path, value_info: Any) -> Input:
    kind = value_info.type.WhichOneof("value")
    if kind != "tensor_type":
        _refuse(path, "inputs that are tensors", f"{kind} at {value_info.name}")
    tensor = value_info.type.tensor_type
    if tensor.elem_type not in (*FLOATS, *WHOLE, BOOL):
        _refuse(path, "inputs of numbers", f"kind {tensor.elem_type} at {value_info.name}")
    sizes = tuple(d.dim_value if d.dim_value > 0 else None for d in tensor.shape.dim)
    single = tensor.HasField("shape") and not sizes and tensor.elem_type in WHOLE
    return Input(name=value_info.name, kind=tensor.elem_type, sizes=sizes, single=single)


def _check_wiring(path: Path, graph: OnnxGraph) -> None:
    if not graph.inputs or not graph.outputs:
        _refuse(path, "inputs and outputs", "none")
    known = {"", *graph.constants, *(declared.name for declared in graph.inputs)}
    _check_steps(path, graph.nodes, known)
    missing = [name for name in graph.outputs if name not in known]
    if missing:
        _refuse(path, "outputs that are made", missing[0])


def _check_steps(path: Path, nodes: tuple[Node, ...], known: set[str]) -> None:
    """Add what steps make to the names that are known; in branches, none may be made twice."""
    for node in nodes:
        missing = [name for name in node.inputs if name not in known]
        if missing:
            _refuse(path, f"steps in order, each after what {node.place} reads", missing[0])
        for branch in node.branches:
            _check_steps(path, branch.nodes, known)
            missing = [name for name in branch.outputs if name not in known]
            if missing:
                _refuse(path, f"branches that make what {node.place} returns", missing[0])
        twice = [name for name in node.outputs if name and name in known]
        if twice:
            _refuse(path, "a name for each result", f"{twice[0]} twice")
        known.update(node.outputs)


_AS_PT2 = "export the model another way, for example as .pt2"


def _refuse(path: Path, expected: str, value: str, advice: str = _AS_PT2) -> NoReturn:
    raise UnsupportedModelError(
        f"{path} must be an ONNX file with {expected}, found {shown(value)}: {advice}."
    )
