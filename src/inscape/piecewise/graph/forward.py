"""Forward-mode differentiation: values and derivatives sent through a piecewise-linear graph."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Integer
from torch import Tensor, fx

from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.graph.ops import SHAPES, arguments, name_of
from inscape.piecewise.graph.piecewise_ops import PiecewiseOp

Values = dict[fx.Node, Any]


class ForwardPass:
    """Forward passes of values and derivatives through a graph, its constants computed once.

    A batch has rows of values, then rows of derivatives, and a last row for input zero: what an
    affine operation returns for it is its constant, which derivatives do not have.
    """

    def __init__(self, net: Piecewise) -> None:
        program, self.net = net.program, net
        self.ops = {op.node: at for at, op in enumerate(net.ops)}
        self.last = _last_readers(program.nodes, program.output)
        self.moving = {program.input}
        self.constant: Values = dict(program.constants)
        self.of_rows: list[fx.Node] = []  # constants but for the number of rows
        for node in program.nodes:
            if node not in self.last:
                continue
            read = arguments(node)
            if name_of(node) not in SHAPES and any(arg in self.moving for arg in read):
                self.moving.add(node)
            elif all(arg in self.constant for arg in read):
                self.constant[node] = program.step(node, self.constant)
            else:
                self.of_rows.append(node)
        self.order = [n for n in program.nodes if n in self.last and n in self.moving]

    def constants(self, rows: int) -> Values:
        """Return all values that do not depend on the input, for this number of rows."""
        if not self.of_rows:
            return self.constant
        known = dict(self.constant)
        for node in self.of_rows:
            for arg in arguments(node):
                if arg in self.moving:  # only its shape is read
                    shape = [rows, *map(int, arg.meta["val"].shape[1:])]
                    known[arg] = torch.zeros((), dtype=torch.float64).expand(shape)
            known[node] = self.net.program.step(node, known)
        return {node: value for node, value in known.items() if node not in self.moving}

    def affine(self, node: fx.Node, values: Values, rows: int, points: int) -> Any:
        """Apply an affine operation to a batch whose first ``rows`` rows are values."""
        out = self.net.program.step(node, {**self.constants(rows), **values})
        return each(out, lambda z: without_constant(z, points))

    def arguments(
        self, node: fx.Node, values: Values, rows: int, block: slice
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a block of rows of the arguments of a node."""
        known = {**self.constants(rows), **values}

        def part(arg: fx.Node) -> Any:
            is_batch = arg in self.moving or arg in self.of_rows
            return known[arg][block] if is_batch and isinstance(known[arg], Tensor) else known[arg]

        args: tuple[Any, ...] = fx.node.map_arg(node.args, part)
        kwargs: dict[str, Any] = fx.node.map_arg(node.kwargs, part)
        return args, kwargs

    def derivatives(
        self,
        op: PiecewiseOp,
        pattern: Integer[Tensor, "k units"],
        values: Values,
        rows: int,
        block: slice,
    ) -> Tensor:
        """Return the JVP of a piecewise-linear operation with a given activation pattern."""
        args, kwargs = self.arguments(op.node, values, rows, block)
        if op.linear is not None:
            return op.linear(pattern, *args, **kwargs)
        read = [node for node in arguments(op.node) if node in self.moving]
        zeros = {**values, **{node: torch.zeros_like(values[node]) for node in read}}
        others, more = self.arguments(op.node, zeros, rows, block)
        return op.chosen(pattern, *args, **kwargs) - op.chosen(pattern, *others, **more)


def _last_readers(nodes: tuple[fx.Node, ...], output: fx.Node) -> dict[fx.Node, fx.Node]:
    """Return the nodes that an output depends on, each with the last node that reads it."""
    last = {output: output}
    for node in reversed(nodes):
        if node in last:
            for arg in node.all_input_nodes:
                last.setdefault(arg, node)
    return last


def each(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function to a tensor, or to each of several; empty ones of batch norm are kept."""
    if isinstance(value, tuple | list):
        return type(value)(change(z) if z.numel() else z for z in value)
    return change(value)


def without_constant(rows: Tensor, points: int) -> Tensor:
    """Subtract the constant of an affine operation from its rows of derivatives."""
    if not bool(rows[-1].any()):
        return rows
    rows = rows.contiguous()
    rows[points:] -= rows[-1:].clone()
    return rows
