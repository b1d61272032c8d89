"""The exported graph of a model, with its live weights, ready to be read or run in part."""

import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from typing import Any

import torch
from torch import Tensor, fx, nn

from inscape._core.checks import Function
from inscape._core.errors import UnsupportedModelError
from inscape._core.pieces.ops import is_random, place_of
from inscape._core.pieces.pairs import values_alone


class _Call(nn.Module):
    """A plain function as a module, for the exporter."""

    def __init__(self, f: Function) -> None:
        super().__init__()
        self.f = f

    def forward(self, x: Tensor) -> Any:  # whatever it is: what does not fit is refused by name
        return self.f(x)


@dataclass(frozen=True, eq=False)
class Program:
    """A graph of ATen operations without in-place forms: one input, one output."""

    nodes: tuple[fx.Node, ...]
    input: fx.Node
    output: fx.Node
    constants: dict[fx.Node, Tensor]

    @property
    def batch(self) -> Any:
        """Return the symbol of the number of rows."""
        return self.input.meta["val"].shape[0]

    def run(self, known: dict[fx.Node, Any], wanted: Iterable[fx.Node]) -> list[Any]:
        """Evaluate the nodes that ``wanted`` needs, given the values of ``known``."""
        values: dict[fx.Node, Any] = {**self.constants, **known}
        needed = self._needed(wanted := list(wanted), values)
        for node in self.nodes:
            if node in needed:
                values[node] = self.step(node, values)
        return [values[node] for node in wanted]

    def step(self, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
        """Evaluate one node from the values of its arguments."""
        args = fx.node.map_arg(node.args, lambda arg: values[arg])
        kwargs = fx.node.map_arg(node.kwargs, lambda arg: values[arg])
        assert callable(node.target)
        return node.target(*args, **kwargs)

    def _needed(self, wanted: list[fx.Node], known: dict[fx.Node, Any]) -> set[fx.Node]:
        needed: set[fx.Node] = set()
        stack = [node for node in wanted if node not in known]
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                stack += [arg for arg in node.all_input_nodes if arg not in known]
        return needed


def export(f: Function, x: Tensor) -> Program:
    """Export ``f`` for batches of any size and return its graph with the live weights.

    In-place, functional and reused forms all come out as the same operations. Raises
    ``UnsupportedModelError`` where the exporter cannot follow the code.
    """
    module = f if isinstance(f, nn.Module) else _Call(f)
    sample = torch.cat([x[:1].detach()] * 3)
    try:
        with _silence(), torch.no_grad():
            batch = ({0: torch.export.Dim.DYNAMIC},)
            shown = torch.export.export(module, (sample,), dynamic_shapes=batch)
            if not _is_plain(shown.graph):
                shown = shown.run_decompositions({})
    except Exception as error:
        raise UnsupportedModelError(
            "the model's structure must be readable by torch.export with any batch size, but the "
            f"exporter raised {type(error).__name__}: {_first_line(error)}; {_cure(error)}"
        ) from error
    _refuse_several(shown)
    values_alone(shown.graph)
    program = _program(shown, module)
    _refuse_random(program)
    return program


def _refuse_several(shown: torch.export.ExportedProgram) -> None:
    """Refuse a model that returns anything but one tensor, and say how to take one."""
    spec = shown.call_spec.out_spec
    if spec is None or spec.is_leaf():
        (*_, last) = next(n for n in shown.graph.nodes if n.op == "output").args[0]
        if not isinstance(last, fx.Node):
            raise UnsupportedModelError(
                f"the model must return one tensor, but it returns {last!r}: pass another model."
            )
        return
    keys = spec.context if isinstance(spec.context, list) and spec.context else [0]
    raise UnsupportedModelError(
        f"the model must return one tensor, but it returns a {spec.type.__name__} of "
        f"{spec.num_children}: wrap it, as in lambda x: model(x)[{keys[0]!r}]."
    )


def _refuse_random(program: Program) -> None:
    """Refuse a model that draws at random: it has no values to be exact about."""
    needed = program._needed([program.output], {program.input: None, **program.constants})
    found = next((node for node in program.nodes if node in needed and is_random(node)), None)
    if found is not None:
        raise UnsupportedModelError(
            "the model must return the same values for the same input, but "
            f"{place_of(found)} draws at random: switch it off in eval mode, "
            "as with training=self.training."
        )


def _is_plain(graph: fx.Graph) -> bool:
    """Tell whether nothing is written in place or nested: that need not be translated, slowly."""
    targets = [node.target for node in graph.nodes if node.op == "call_function"]
    return all(
        not target._schema.is_mutable
        if isinstance(target, torch._ops.OpOverload)
        else not isinstance(target, torch._ops.HigherOrderOperator)
        for target in targets
    ) and not any(node.op in ("get_attr", "call_module") for node in graph.nodes)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep the exporter's warnings, logs and half-made graphs from the user: our error says it."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _cure(error: Exception) -> str:
    if "Constraints violated" in str(error):
        return "the batch size became a fixed number: write x.shape[0] for len(x), or flatten(1)."
    return "avoid control flow on tensor values and fixed batch sizes."


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no text")


def _program(shown: torch.export.ExportedProgram, module: nn.Module) -> Program:
    signature = shown.graph_signature
    live = {
        **shown.constants,
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    names = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    constants: dict[fx.Node, Tensor] = {}
    inputs = []
    for node in shown.graph.nodes:
        if node.op != "placeholder":
            continue
        if node.name in names:
            constants[node] = live[names[node.name]]
        else:
            inputs.append(node)
    (output,) = (node for node in shown.graph.nodes if node.op == "output")
    results = output.args[0]
    nodes = tuple(node for node in shown.graph.nodes if node.op == "call_function")
    return Program(nodes=nodes, input=inputs[0], output=results[-1], constants=constants)
