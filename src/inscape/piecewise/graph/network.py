"""A network as affine maps between its piecewise-linear operations, in float64."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import torch
from jaxtyping import Float, Float64, Integer
from torch import Tensor, fx, nn

from inscape._core import checks
from inscape._core.checks import Function
from inscape._core.inference import no_grad
from inscape._core.precision import converted_copy, real_dtype
from inscape.errors import UnsupportedModelError
from inscape.piecewise.graph.cache import export
from inscape.piecewise.graph.ops import (
    SHAPES,
    arguments,
    is_affine,
    keeps_batch,
    line_of,
    name_of,
    place_of,
)
from inscape.piecewise.graph.piecewise_ops import PiecewiseOp, piecewise_op
from inscape.piecewise.graph.program import Program

_OF_THE_BATCH = "without running statistics it depends on the whole batch: track them."

#: What to do about operations that are often found at the end or in the middle of a network.
_ADVICE = {
    "softmax": "it turns scores into probabilities: analyse the logits, without that layer.",
    "_softmax": "it turns scores into probabilities: analyse the logits, without that layer.",
    "log_softmax": "it turns scores into probabilities: analyse the logits, without that layer.",
    "_log_softmax": "it turns scores into probabilities: analyse the logits, without that layer.",
    "sigmoid": "where it is the last layer, analyse the logits, without it.",
    "batch_norm": _OF_THE_BATCH,
    "_native_batch_norm_legit": _OF_THE_BATCH,
    "round": "it rounds integers, such as masks, in rows of several inputs: pass those inputs as "
    "fixed={...} to inscape.adapt.",
    "to": "it rounds: keep one precision throughout.",
    "_to_copy": "it rounds: keep one precision throughout.",
}
_OTHERWISE = (
    "write it by other operations if it is affine; local_maps and grid_regions take any module."
)

#: Activation patterns of the piecewise-linear operations in order: a row per point, or one for all.
Patterns = Sequence[Integer[Tensor, "_ _"]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Piecewise:
    """A piecewise-linear network: its graph in float64 and its piecewise-linear operations."""

    program: Program
    ops: tuple[PiecewiseOp, ...]
    input_shape: tuple[int, ...]
    outputs: int
    converted: torch.dtype | None = None

    @property
    def inputs(self) -> int:
        """Return how many numbers one input has."""
        return prod(self.input_shape)

    @cached_property
    def _position(self) -> dict[fx.Node, int]:
        return {op.node: k for k, op in enumerate(self.ops)}

    @torch.no_grad()
    def functions(
        self, x: Float64[Tensor, "n *d"], at: int, patterns: Patterns | None = None
    ) -> Float64[Tensor, "n m"]:
        """Return the pre-activations of piecewise-linear operation ``at``, for each row of ``x``.

        With the ``patterns`` of all earlier operations the affine functions of those linear regions
        are extended to ``x``, wherever it lies.
        """
        op = self.ops[at]
        args, kwargs = self._arguments(x, op.node, patterns)
        functions = op.source(*args, **kwargs)
        return functions.expand(len(x), -1)

    @torch.no_grad()
    def values(
        self, x: Float64[Tensor, "n *d"], patterns: Patterns | None = None
    ) -> Float64[Tensor, "n c"]:
        """Return the outputs, flat; with ``patterns`` the affine maps of these regions at ``x``."""
        return self.traced(x, patterns)

    def traced(
        self, x: Float64[Tensor, "n *d"], patterns: Patterns | None = None
    ) -> Float64[Tensor, "n c"]:
        """Return the same outputs, differentiable by autograd."""
        values = self._run(x, [self.program.output], patterns)
        y: Tensor = values[self.program.output]
        return y.expand(len(x), *y.shape[1:]).reshape(len(x), -1)

    @torch.no_grad()
    def patterns(self, x: Float64[Tensor, "n *d"]) -> list[Integer[Tensor, "n _"]]:
        """Return the activation patterns of all operations at each point; ties go to the lowest."""
        patterns: list[Tensor] = []
        for at, op in enumerate(self.ops):
            patterns.append(op.pattern(self.functions(x, at, patterns)))
        return patterns

    @no_grad
    def in_turn(
        self, x: Float64[Tensor, "n *d"], patterns: Patterns | None = None
    ) -> Iterator[Float64[Tensor, "n m"] | None]:
        """Yield the pre-activations of each operation, then the outputs, in one forward pass.

        None is yielded after every operation.
        """
        yield from self.traced_in_turn(x, patterns)

    def traced_in_turn(
        self, x: Float64[Tensor, "n *d"], patterns: Patterns | None = None
    ) -> Iterator[Float64[Tensor, "n m"] | None]:
        """Yield the same, differentiable by autograd."""
        program, last = self.program, self._last_use([self.program.output])
        values: dict[fx.Node, Any] = {**program.constants, program.input: x}
        for node in program.nodes:
            if node not in last:
                continue
            k = self._position.get(node)
            args = fx.node.map_arg(node.args, values.__getitem__)
            kwargs = fx.node.map_arg(node.kwargs, values.__getitem__)
            if k is not None:
                yield self.ops[k].source(*args, **kwargs).expand(len(x), -1)
            if patterns is None or k is None:
                values[node] = program.step(node, values)
            else:
                values[node] = self.ops[k].chosen(patterns[k], *args, **kwargs)
            for arg in node.all_input_nodes:
                if last[arg] is node and arg not in program.constants:
                    del values[arg]
            yield None
        y: Tensor = values[program.output]
        yield y.expand(len(x), *y.shape[1:]).reshape(len(x), -1)

    def _arguments(
        self, x: Tensor, node: fx.Node, patterns: Patterns | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        values = self._run(x, arguments(node), patterns)
        args: tuple[Any, ...] = fx.node.map_arg(node.args, values.__getitem__)
        kwargs: dict[str, Any] = fx.node.map_arg(node.kwargs, values.__getitem__)
        return args, kwargs

    def _run(
        self, x: Tensor, wanted: Sequence[fx.Node], patterns: Patterns | None
    ) -> dict[fx.Node, Any]:
        """Evaluate the wanted nodes, with fixed activation patterns where they are given."""
        program = self.program
        values: dict[fx.Node, Any] = {**program.constants, program.input: x}
        kept, last = set(values) | set(wanted), self._last_use(wanted)
        for node in program.nodes:
            if node not in last:
                continue
            k = self._position.get(node)
            if patterns is None or k is None:
                values[node] = program.step(node, values)
            else:
                args = fx.node.map_arg(node.args, values.__getitem__)
                kwargs = fx.node.map_arg(node.kwargs, values.__getitem__)
                values[node] = self.ops[k].chosen(patterns[k], *args, **kwargs)
            for arg in node.all_input_nodes:
                if last.get(arg) is node and arg not in kept:
                    del values[arg]
        return values

    def _last_use(self, wanted: Sequence[fx.Node]) -> dict[fx.Node, fx.Node | None]:
        """Return the nodes that are needed, each with the last one that reads it."""
        last: dict[fx.Node, fx.Node | None] = dict.fromkeys(wanted)
        for node in reversed(self.program.nodes):
            if node in last:
                for arg in node.all_input_nodes:
                    last.setdefault(arg, node)
        return last


def piecewise(f: Function, x: Float[Tensor, "n *d"]) -> Piecewise:
    """Read a network in eval mode as affine and piecewise-linear operations, in float64.

    Raises ``UnsupportedModelError`` that names the first operation which is neither, and its
    place in the module, before anything is computed.
    """
    checks.in_eval_mode(f)
    checks.points(x)
    f, converted = _in_double(f, x.dtype)
    program = export(f, x.double())
    return Piecewise(
        program=program,
        ops=tuple(_ops(program)),
        input_shape=tuple(x.shape[1:]),
        outputs=prod(int(size) for size in program.output.meta["val"].shape[1:]),
        converted=converted,
    )


def _in_double(f: Function, dtype: torch.dtype) -> tuple[Function, torch.dtype | None]:
    """Return a float64 copy of a module, and the precision that it had if that was another."""
    if not isinstance(f, nn.Module):
        return f, dtype if dtype != torch.float64 else None
    dtypes = {kind for kind in map(real_dtype, f.parameters()) if kind.is_floating_point}
    dtypes -= {torch.float64}
    checks.weights(f, torch.empty(0, dtype=next(iter(dtypes), torch.float64)))
    return (converted_copy(f, torch.float64), next(iter(dtypes))) if dtypes else (f, None)


def _ops(program: Program) -> list[PiecewiseOp]:
    """Return the piecewise-linear operations in order, or refuse the first other nonlinear one."""
    moving, ops = {program.input}, []
    used = program.needed([program.output], {})  # others only change buffers
    for node in program.nodes:
        if (
            node not in used
            or name_of(node) in SHAPES
            or not any(arg in moving for arg in arguments(node))
        ):
            continue
        moving.add(node)
        if not keeps_batch(node, program.batch):
            raise UnsupportedModelError(
                f"the batch must stay the first dimension, but {place_of(node)} moves it"
                f"{line_of(node)}: keep the rows first."
            )
        if is_affine(node, moving.__contains__):
            continue
        operation = piecewise_op(node, moving.__contains__)
        if operation is None:
            raise UnsupportedModelError(
                "the network must be made of affine operations that are known to be so, and of "
                "ReLU, LeakyReLU, PReLU, ReLU6, Hardtanh, abs, MaxPool, maximum and minimum; found "
                f"{place_of(node)}{line_of(node)}: {_ADVICE.get(name_of(node), _OTHERWISE)}"
            )
        ops.append(operation)
    if program.output not in moving:
        raise UnsupportedModelError(
            "the model's output must depend on its input, but it does not: pass another model."
        )
    return ops
