"""A piecewise-linear graph at points of segments: outputs, activation patterns, gradients."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from jaxtyping import Float64, Int64, Integer
from torch import Tensor

from inscape._core.checks import Function
from inscape.functional.jacobians import MEMORY
from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.lines.rounding import settled_run

#: Rows beyond this many gain nothing.
MOST = 4096

#: Fewer rows than these are costly, for a batch that cuts lines has some that are no knots.
LEAST = 64

#: Bytes that the working set may take unless the caller says otherwise.
ROOM = 2**30


@dataclass(frozen=True, eq=False)
class SegmentEvaluation:
    """A network at points a + t (b - a) of segments, evaluated in batches."""

    net: Piecewise
    a: Float64[Tensor, "n *d"]
    b: Float64[Tensor, "n *d"]
    memory: int

    @cached_property
    def most(self) -> int:
        """Return the batch size that fits into the memory and is fast, at least four."""
        nodes = [node.meta.get("val") for node in self.net.program.nodes]
        sizes = [prod(map(int, v.shape[1:])) for v in nodes if isinstance(v, Tensor)]
        largest = max([self.net.inputs, self.net.outputs, *sizes])
        quick = max(LEAST, MEMORY // (8 * 6 * largest))
        return max(4, min(MOST, quick, self.memory // (8 * 6 * largest)))

    def at(self, segment: Int64[Tensor, " k"], t: Float64[Tensor, " k"]) -> Tensor:
        """Return the points at parameters t of given segments."""
        return torch.lerp(self.a[segment], self.b[segment], t.reshape(-1, *[1] * (self.a.ndim - 1)))

    def parts(
        self, segment: Int64[Tensor, " k"], t: Float64[Tensor, " k"]
    ) -> Iterator[tuple[Int64[Tensor, " m"], Float64[Tensor, "m *d"]]]:
        """Yield batches of segments and points that fit into the memory."""
        for first in range(0, len(t), self.most):
            part = slice(first, first + self.most)
            yield segment[part], self.at(segment[part], t[part])

    def values(
        self, segment: Int64[Tensor, " k"], t: Float64[Tensor, " k"]
    ) -> Float64[Tensor, "k c"]:
        """Return the outputs at parameters t of given segments."""
        return torch.cat([self.net.values(at) for _, at in self.parts(segment, t)])


def differentiable(net: Piecewise) -> Function:
    """Return the network as a float64 function that autograd can differentiate.

    On a kink its gradient is that of the pattern there, with ties off: autograd has a convention
    of its own for each operation.
    """

    def call(x: Tensor) -> Tensor:
        return settled_run(net, x)[0]

    return call


@torch.no_grad()
def settled_patterns(net: Piecewise, x: Float64[Tensor, "n *d"]) -> list[Integer[Tensor, "n _"]]:
    """Return the activation patterns; units within rounding of their kink are ties."""
    return settled_run(net, x)[1]
