"""Adaptive Gauss-Legendre quadrature of gradients along the updates of a training."""

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.kernels.path.linear_chain import Average, Network
from inscape.kernels.path.module_network import QuadratureNodes

#: How often the number of nodes may double.
DOUBLINGS = 4

#: Doubling continues while it reduces the residual by this factor; at kinks it is about 1/2.
CONVERGENCE = 1 / 8

#: Most cuts of a step where more nodes do not help, because of kinks.
CUTS = 64

#: Most breakpoints of all queries together to begin with.
MOST_BREAKPOINTS = 256

#: Relative residual that more cuts do not reduce.
ROUNDING = 1e-13

#: Fractions of an interval within which a kink is near its end, or so near that it is bisected.
NEAR, SHORT = 0.05, 1e-6

#: Bytes of a block of dense query gradients, beyond those of one query.
BLOCK = 2**24


class StepQuadrature:
    """Averages of the gradients of all outputs at some queries along steps of the weights."""

    def __init__(self, network: Network, queries: Tensor, *, exact: bool, tolerance: float) -> None:
        self._network, self._queries = network, queries
        self._exact, self._tolerance = exact, tolerance
        self._first_rule_sufficed = False
        self.nodes = 0

    def average(
        self,
        start: Float64[Tensor, " p"],
        end: Float64[Tensor, " p"],
        change: Float64[Tensor, "q c"],
        largest: float,
    ) -> Average:
        """Return the average gradient along one step.

        Args:
            start: Weights before the step.
            end: Weights after the step.
            change: Change of the outputs.
            largest: Largest absolute output.
        """
        step, queries = end - start, self._queries
        if not self._exact:
            zero = queries.new_zeros(len(queries), 1)
            return self._network.average(
                start, step, queries, QuadratureNodes(t=zero, weights=zero + 1)
            )
        scale = max(1.0, largest)
        breakpoints = self._network.breakpoints(start, step, queries)
        average, error = self._with_more_nodes(
            start, step, change, breakpoints, self._tolerance * scale
        )
        if error <= max(self._tolerance, ROUNDING) * scale:
            return average
        refined = self._with_more_cuts(
            start, step, breakpoints, max(self._tolerance, ROUNDING) * scale
        )
        return (
            refined
            if float((refined.directional_derivatives() - change).abs().max()) < error
            else average
        )

    def _with_more_nodes(
        self, start: Tensor, step: Tensor, change: Tensor, breakpoints: Tensor, tolerance: float
    ) -> tuple[Average, float]:
        """Return the average with nodes doubled while that reduces the residual, and the residual.

        Where the first rule sufficed for the previous step, gradients are computed immediately.
        """
        best: Average | None = None
        error, nodes = math.inf, self._network.nodes
        for _ in range(DOUBLINGS):
            likely = self._first_rule_sufficed and best is None
            rule = replace(_gauss_legendre(breakpoints, nodes), likely=likely)
            average = self._network.average(start, step, self._queries, rule)
            residual = float((average.directional_derivatives() - change).abs().max())
            self.nodes = max(self.nodes, nodes)
            improved = residual < error * CONVERGENCE
            if residual < error or best is None:
                best, error = average, residual
            if error <= tolerance or not improved:
                break
            nodes *= 2
        assert best is not None
        self._first_rule_sufficed = error <= tolerance and nodes == self._network.nodes
        return best, error

    def _with_more_cuts(
        self, start: Tensor, step: Tensor, known: Tensor, tolerance: float
    ) -> Average:
        """Return the average over intervals of the step, the worst of which is cut repeatedly.

        Begins with the intervals between the known breakpoints of all queries, unless these are
        too many.
        """
        breakpoints = sorted(set(known.flatten().tolist()))
        breakpoints = breakpoints if len(breakpoints) <= MOST_BREAKPOINTS else [0.0, 1.0]
        ends = {t: self._value_and_derivative(start, step, t) for t in breakpoints}
        residuals = {
            interval: self._residual(start, step, interval, ends)
            for interval in pairwise(breakpoints)
        }
        while len(residuals) < len(breakpoints) - 1 + CUTS:
            if float(torch.stack(list(residuals.values())).abs().sum(0).max()) <= tolerance:
                break
            low, high = max(residuals, key=lambda interval: float(residuals[interval].abs().max()))
            worst = int(residuals.pop((low, high)).abs().argmax())
            cut = _tangent_intersection(low, high, ends, worst)
            ends[cut] = self._value_and_derivative(start, step, cut)
            for interval in ((low, cut), (cut, high)):
                residuals[interval] = self._residual(start, step, interval, ends)
        rule = _gauss_legendre(
            self._for_all_queries((*sorted(low for low, _ in residuals), 1.0)), self._network.nodes
        )
        return self._network.average(start, step, self._queries, rule)

    def _residual(
        self,
        start: Tensor,
        step: Tensor,
        interval: tuple[float, float],
        ends: dict[float, tuple[Tensor, Tensor]],
    ) -> Float64[Tensor, "q c"]:
        """Return the residual of the quadrature on one interval of the step."""
        rule = _gauss_legendre(self._for_all_queries(interval), self._network.nodes)
        average = self._network.average(start, step, self._queries, rule)
        return ends[interval[1]][0] - ends[interval[0]][0] - average.directional_derivatives()

    def _value_and_derivative(self, start: Tensor, step: Tensor, t: float) -> tuple[Tensor, Tensor]:
        """Return the outputs at a point of the step, and their directional derivative."""
        t_of_query = self._queries.new_full((len(self._queries), 1), t)
        node = QuadratureNodes(t=t_of_query, weights=torch.ones_like(t_of_query))
        slope = self._network.average(start, step, self._queries, node).directional_derivatives()
        return self._network.values(start + t * step, self._queries), slope

    def _for_all_queries(self, points: tuple[float, ...]) -> Float64[Tensor, "q e"]:
        return torch.tensor(points, dtype=torch.float64).expand(len(self._queries), -1)


def _tangent_intersection(
    low: float, high: float, ends: dict[float, tuple[Tensor, Tensor]], entry: int
) -> float:
    """Return where the tangents of an output at both ends of an interval meet, or its midpoint.

    An intersection near an end is doubled in distance, so that a kink there is enclosed.
    """
    (f0, g0), (f1, g1) = ((v.flatten()[entry].item() for v in ends[t]) for t in (low, high))
    length = high - low
    if g0 == g1:
        return low + length / 2
    fraction = (f1 - f0 - g1 * length) / (g0 - g1) / length
    if not SHORT < fraction < 1 - SHORT:
        return low + length / 2
    if fraction < NEAR:
        fraction *= 2
    elif fraction > 1 - NEAR:
        fraction = 1 - 2 * (1 - fraction)
    return low + fraction * length


def _gauss_legendre(breakpoints: Float64[Tensor, "q e"], count: int) -> QuadratureNodes:
    """Return the Gauss-Legendre nodes on all intervals of every query."""
    points, weights = _unit_rule(count)
    low, length = breakpoints[:, :-1, None], breakpoints.diff(dim=1)[:, :, None]
    return QuadratureNodes(
        t=(low + length * points).flatten(1), weights=(length * weights).flatten(1)
    )


@cache
def _unit_rule(count: int) -> tuple[Float64[Tensor, " m"], Float64[Tensor, " m"]]:
    """Return Gauss-Legendre nodes and weights on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return torch.from_numpy((points + 1) / 2), torch.from_numpy(weights / 2)


def queries_per_block(query_bytes: int, memory: int, queries: int) -> int:
    """Return for how many queries dense gradients are computed at once."""
    return max(
        1, min(queries, BLOCK // query_bytes, memory // (2 * query_bytes))
    )  # half is for the average
