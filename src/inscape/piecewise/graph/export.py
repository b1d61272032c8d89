"""The graph of a function by ``torch.export``, which leaves nothing of itself behind."""

import logging
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from traceback import walk_tb
from typing import Any

import torch
from torch import Tensor, fx, nn

from inscape._core.checks import Function
from inscape.errors import UnsupportedModelError
from inscape.functional.fx_sources import without_graph_sources
from inscape.piecewise.graph.max_values import values_alone
from inscape.piecewise.graph.ops import is_random, place_of
from inscape.piecewise.graph.program import Program


class _Call(nn.Module):
    """A plain function as a module, for the exporter."""

    def __init__(self, f: Function) -> None:
        super().__init__()
        self.f = f

    def forward(self, x: Tensor) -> Any:  # whatever it is: what does not fit is refused by name
        return self.f(x)


@dataclass(frozen=True, eq=False, kw_only=True)
class Exported:
    """A graph with its constants as they were, and the names of parameters and buffers among them.

    ``mutated`` names the buffers that a call writes to.
    """

    program: Program
    names: dict[fx.Node, str]
    mutated: tuple[str, ...]


def exported(f: Function, x: Tensor) -> Exported:
    """Return the graph of ``f`` for batches of any size.

    In-place, functional and reused forms all come out as the same operations. Raises
    ``UnsupportedModelError`` where the exporter cannot follow the code. Not for several threads at
    once: while it traces, modules of the whole process are watched, and its log is switched off.
    """
    module = f if isinstance(f, nn.Module) else _Call(f)
    with without_leftovers():
        shown = _shown(module, torch.cat([x[:1].detach()] * 3))
        fakes = [node.meta["val"] for node in shown.graph.nodes if node.op == "placeholder"]
        weakref.finalize(shown.graph, forget, fakes[0].fake_mode)
        for fake in fakes:
            fake.constant = None  # it would keep a tensor of the model alive
    _refuse_several(shown)
    values_alone(shown.graph)
    _drop_unused(shown.graph)
    graph = _graph(shown, module)
    refuse_random(graph.program)
    return graph


def _drop_unused(graph: torch.fx.Graph) -> None:
    """Drop what only other outputs of a model need, random draws too."""
    graph.eliminate_dead_code(is_impure_node=lambda node: node.is_impure(impure_random=False))


def _shown(module: nn.Module, sample: Tensor) -> torch.export.ExportedProgram:
    try:
        with silence(), torch.no_grad():
            batch = ({0: torch.export.Dim.DYNAMIC},)
            shown = torch.export.export(module, (sample,), dynamic_shapes=batch)
            return shown if _is_plain(shown.graph) else shown.run_decompositions({})
    except Exception as error:
        _forget_modes_of(error)
        raise UnsupportedModelError(
            "the model's structure must be readable by torch.export with any batch size, but the "
            f"exporter raised {type(error).__name__}: {_first_line(error)}; {_cure(error)}"
        ) from error


def forget(mode: Any) -> None:
    """Break the cycle of a FakeTensorMode and its symbols, which no garbage collector sees."""
    if mode.shape_env is not None:
        vars(mode.shape_env).clear()


def _forget_modes_of(error: Exception) -> None:
    """Do so for the modes of a trace that ended in an error."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    for frame, _ in walk_tb(error.__traceback__):
        for value in list(frame.f_locals.values()):
            if isinstance(value, FakeTensorMode):
                forget(value)


@contextmanager
def without_leftovers() -> Iterator[None]:
    """Empty the caches of the exporter after a call: they would keep every graph alive."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    try:
        with without_graph_sources():
            yield
    finally:
        FakeTensorMode.cache_clear()
        for method in vars(ShapeEnv).values():
            if hasattr(method, "cache_clear"):
                method.cache_clear()


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


def refuse_random(program: Program) -> None:
    """Refuse a model that draws at random: it has no values to be exact about."""
    needed = program.needed([program.output], {program.input: None, **program.constants})
    random_node = next((node for node in program.nodes if node in needed and is_random(node)), None)
    if random_node is not None:
        raise UnsupportedModelError(
            "the model must return the same values for the same input, but "
            f"{place_of(random_node)} draws at random: switch it off in eval mode, "
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
def silence() -> Iterator[None]:
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
    if "sparse" in str(error):
        return "make its sparse tensors dense, with to_dense()."
    if "UnsupportedOperator" in type(error).__name__:
        return "write it by other operators, or measure what needs no graph."
    return "avoid control flow on tensor values and fixed batch sizes."


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no text")


def _graph(shown: torch.export.ExportedProgram, module: nn.Module) -> Exported:
    signature = shown.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    values = {
        **shown.constants,
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    constants = {**names, **signature.inputs_to_lifted_tensor_constants}
    inputs = [node for node in shown.graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in shown.graph.nodes if node.op == "output")
    program = Program(
        nodes=tuple(node for node in shown.graph.nodes if node.op == "call_function"),
        input=next(node for node in inputs if node.name not in constants),
        output=output.args[0][-1],
        constants={n: values[constants[n.name]] for n in inputs if n.name in constants},
    )
    return Exported(
        program=program,
        names={node: names[node.name] for node in inputs if node.name in names},
        mutated=tuple(signature.buffers_to_mutate.values()),
    )
