"""Gradients of chosen outputs, and their mean along a segment: exact, or by quadrature."""

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from inscape._core import UnsupportedModelError, checks
from inscape._core.anytime import finished
from inscape._core.checks import Function
from inscape.functional.jacobians import stacked, vjps
from inscape.piecewise.graph.network import Piecewise, piecewise
from inscape.piecewise.lines.evaluation import differentiable
from inscape.piecewise.lines.rounding import NOISE
from inscape.piecewise.lines.segments import CutSegments, cutting_of
from inscape.runtime.deadline import NEVER

#: Units for each allowed piece beyond which no segment is cut: far more than these would switch.
UNITS = 10


def chosen_gradients(
    f: Function, x: Float64[Tensor, "n *d"], outputs: Int64[Tensor, " n"] | None
) -> tuple[Float64[Tensor, "n D"], Int64[Tensor, " n"], Float64[Tensor, " n"]]:
    """Return the gradient of one output at each point, which output it is, and its value.

    Without ``outputs`` it is the largest of each point, the first of several that are equal.
    """
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        y = checks.call(f, leaf)
        y = y.reshape(len(y), -1)
        chosen = y.detach().argmax(1) if outputs is None else outputs
        vectors = torch.nn.functional.one_hot(chosen, y.shape[1])[:, None].to(y)
        products = finished(vjps(y, get_gradient_edge(leaf), vectors=vectors))
        gradients = stacked(products, (len(x), 1, x[0].numel()), leaf)[:, 0]
    values = y.detach().gather(1, chosen[:, None])[:, 0]
    return gradients.detach(), chosen, values


@dataclass(frozen=True, eq=False, kw_only=True)
class PathIntegrals:
    """The mean gradient of one output along straight segments.

    ``net`` is the network as piecewise-linear operations, or None with the reason in ``note``:
    then, and on segments of more than ``pieces`` pieces, the mean is taken at ``steps``
    Gauss-Legendre nodes. A batch has at most ``rows`` points.
    """

    f: Function
    net: Piecewise | None
    note: str
    pieces: int
    steps: int
    rows: int
    memory: int

    @cached_property
    def _units(self) -> int:
        """Return how many units the network has that may switch on a segment."""
        ops = () if self.net is None else self.net.ops
        return sum(prod(map(int, op.node.meta["val"].shape[1:])) for op in ops)

    def mean_gradient(
        self, start: Float64[Tensor, "*d"], stop: Float64[Tensor, "*d"], output: int
    ) -> Generator[None, None, tuple[Tensor, int]]:
        """Return the mean gradient and the number of pieces, 0 for quadrature; pause on the way."""
        cuts = yield from self._cut(start[None], stop[None])
        if cuts is None or self.net is None:
            nodes, weights = np.polynomial.legendre.leggauss(self.steps)
            t, parts = torch.from_numpy((nodes + 1) / 2), torch.from_numpy(weights / 2)
            return (yield from self._sum(self.f, start, stop, t, parts, output)), 0
        f = differentiable(self.net)
        total = yield from self._sum(f, start, stop, cuts.middles, cuts.widths, output)
        return total, len(cuts.middles)

    def _cut(self, start: Tensor, stop: Tensor) -> Generator[None, None, CutSegments | None]:
        """Return the pieces of a segment; None where they are too many, or too short to tell."""
        size = float(torch.maximum(start.abs(), stop.abs()).max())
        is_short = float((stop - start).abs().max()) <= NOISE * size
        if self.net is None or is_short or self._units > UNITS * self.pieces:
            return None
        cutting = cutting_of(self.net, start, stop, memory=self.memory)
        try:
            for _ in cutting.steps(NEVER, watched=True):
                if cutting.pieces > self.pieces:
                    return None
                yield
            return cutting.lines()
        except UnsupportedModelError:  # found to be curved where it was read as linear
            return None

    def _sum(
        self, f: Function, start: Tensor, stop: Tensor, t: Tensor, weights: Tensor, output: int
    ) -> Generator[None, None, Float64[Tensor, " D"]]:
        """Return the weighted sum of the gradients at the fractions ``t`` of a segment."""
        total = start.new_zeros(start.numel())
        for first in range(0, len(t), self.rows):
            part = slice(first, first + self.rows)
            fractions = t[part].reshape(-1, *[1] * start.ndim)
            at = torch.lerp(start.expand(len(fractions), *start.shape), stop, fractions)
            gradients, _, _ = chosen_gradients(f, at, torch.full((len(at),), output))
            total += weights[part] @ gradients
            yield
        return total


def read_piecewise(f: Function, x: Float64[Tensor, "n *d"]) -> tuple[Piecewise | None, str]:
    """Return a network as piecewise-linear operations, or None and why it is not."""
    try:
        return piecewise(f, x), ""
    except UnsupportedModelError as error:
        return None, str(error)


def checked_baseline(baseline: Any, x: Float64[Tensor, "n *d"]) -> Float64[Tensor, "*d"]:
    """Return the point at which paths start: zero unless it is given."""
    if baseline is None:
        return torch.zeros_like(x[0])
    if not isinstance(baseline, Tensor) or baseline.shape != x.shape[1:]:
        shape = tuple(baseline.shape) if isinstance(baseline, Tensor) else type(baseline).__name__
        raise ValueError(
            f"baseline must be one input, of shape {tuple(x.shape[1:])}, found {shape}: pass "
            "a tensor of that shape, e.g. x.mean(0)."
        )
    checks.points(baseline.reshape(1, -1), "baseline")
    return baseline.to(x)
