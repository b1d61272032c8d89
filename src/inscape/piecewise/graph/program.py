"""The graph of a model with its live weights, ready to be read or run in part."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx


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
        needed = self.needed(wanted := list(wanted), values)
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

    def needed(self, wanted: list[fx.Node], known: dict[fx.Node, Any]) -> set[fx.Node]:
        """Return the nodes that some are computed from, themselves included, up to known ones."""
        needed: set[fx.Node] = set()
        stack = [node for node in wanted if node not in known]
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                stack += [arg for arg in node.all_input_nodes if arg not in known]
        return needed
