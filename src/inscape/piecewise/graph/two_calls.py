"""The graph of a function for batches of any size, from calls with two sizes.

For code that ``torch.export`` cannot follow: batch sizes as plain numbers, TorchScript inside,
functions of ``torch.func``, hooks that read values, Python numbers computed from weights. Numbers
that differ between the calls as the batch sizes do are multiples of the batch size.
"""

import weakref
from operator import mul
from typing import Any

import torch
from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from inscape._core.checks import Function
from inscape.piecewise.graph.export import forget, refuse_random, silence, without_leftovers
from inscape.piecewise.graph.max_values import values_alone
from inscape.piecewise.graph.program import Program
from inscape.piecewise.graph.tracing import UnrecordableError, recorded, without_hooks

#: Batch sizes of the two calls: a number that is a multiple of the one in the one call, and the
#: same multiple of the other in the other, follows the batch size.
SIZES = (3, 5)

Traced = tuple[fx.Graph, list[Tensor]]


def traced_twice(f: Function, x: Tensor) -> Program:
    """Return the graph of ``f`` for batches of any size; without its hooks, where they read values.

    Raises ``UnrecordableError`` where the operations depend on the values of the input, or on the
    batch size other than as its multiples.
    """
    with without_leftovers(), silence():
        try:
            program = _traced(f, x)
        except UnrecordableError:
            with without_hooks(f):
                program = _traced(f, x)
    refuse_random(program)
    return program


def _traced(f: Function, x: Tensor) -> Program:
    first, second = (_without_writing(*recorded(f, torch.cat([x[:1]] * n)), n, x) for n in SIZES)
    graph, constants = _united(first, second)
    _with_shapes(graph, constants, x)
    values_alone(graph)
    return _program(graph, constants)


def _without_writing(
    graph: fx.Graph, constants: dict[fx.Node, Tensor], rows: int, x: Tensor
) -> Traced:
    """Return a graph whose operations write over nothing, and its constants in their order."""
    places = [node for node in graph.nodes if node.op == "placeholder"][1:]
    values = [constants[node] for node in places]
    operations = (node.target for node in graph.nodes if node.op == "call_function")
    if any(target._schema.is_mutable for target in operations if hasattr(target, "_schema")):
        module = fx.GraphModule({}, graph)
        sample = torch.cat([x[:1]] * rows).detach()
        with torch.no_grad():
            graph = make_fx(functionalize(module, remove="mutations"))(sample, *values).graph
    return graph, values


def _united(first: Traced, second: Traced) -> Traced:
    """Return one graph of two that differ in their batch sizes alone."""
    ours, theirs = list(first[0].nodes), list(second[0].nodes)
    if len(ours) != len(theirs):
        raise UnrecordableError("the number of operations depends on the batch size")
    united = fx.Graph()
    nodes: dict[fx.Node, fx.Node] = {}
    others = dict(zip(ours, theirs, strict=True))
    size: fx.Node | None = None
    for node, other in others.items():
        if (node.op, node.target) != (other.op, other.target) and node.op != "placeholder":
            raise UnrecordableError(f"{node.target} depends on the batch size")
        if node.op != "placeholder" and size is None:
            size = united.call_function(torch.ops.aten.sym_size.int, (nodes[ours[0]], 0))
        args = _same((node.args, node.kwargs), (other.args, other.kwargs), nodes, others, size)
        nodes[node] = united.create_node(node.op, node.target, args[0], args[1], node.name)
    for tensor, again in zip(first[1], second[1], strict=True):
        if tensor.shape != again.shape:
            raise UnrecordableError("a constant depends on the batch size")
    return united, first[1]


def _same(
    value: Any,
    other: Any,
    nodes: dict[fx.Node, fx.Node],
    others: dict[fx.Node, fx.Node],
    size: fx.Node | None,
) -> Any:
    """Return arguments that two graphs have in common, with multiples of the batch size."""
    if isinstance(value, fx.Node):
        if others.get(value) is not other:
            raise UnrecordableError("the inputs of an operation depend on the batch size")
        return nodes[value]
    if isinstance(value, dict):
        return {key: _same(part, other[key], nodes, others, size) for key, part in value.items()}
    if isinstance(value, tuple | list):
        if not isinstance(other, tuple | list) or len(value) != len(other):
            raise UnrecordableError("a shape depends on the batch size")
        pairs = zip(value, other, strict=True)
        return tuple(_same(part, again, nodes, others, size) for part, again in pairs)
    if value == other or (value != value and other != other):
        return value
    if isinstance(value, int) and value * SIZES[1] == other * SIZES[0] and size is not None:
        times = value // SIZES[0]
        return size if times == 1 else size.graph.call_function(mul, (size, times))
    raise UnrecordableError(f"{value!r} becomes {other!r} in another batch size")


def _with_shapes(graph: fx.Graph, constants: list[Tensor], x: Tensor) -> None:
    """Write the shapes of all values into the nodes of a graph, with a symbol for the batch."""
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    sizes = [DimDynamic.DYNAMIC, *[DimDynamic.STATIC] * (x.ndim - 1)]
    sample = torch.cat([x[:1].detach()] * SIZES[0])
    symbolic = mode.from_tensor(
        sample, symbolic_context=StatelessSymbolicContext(dynamic_sizes=sizes)
    )
    fakes = [mode.from_tensor(tensor.detach(), static_shapes=True) for tensor in constants]
    with torch.no_grad():
        FakeTensorProp(fx.GraphModule({}, graph), mode).propagate_dont_convert_inputs(
            symbolic, *fakes
        )
    weakref.finalize(graph, forget, mode)


def _program(graph: fx.Graph, constants: list[Tensor]) -> Program:
    first, *places = [node for node in graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in graph.nodes if node.op == "output")
    return Program(
        nodes=tuple(node for node in graph.nodes if node.op == "call_function"),
        input=first,
        output=output.args[0],
        constants=dict(zip(places, constants, strict=True)),
    )
