"""Tropical form: a small network as the difference of two maxima of affine functions."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log10
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import (
    BudgetError,
    NotApplicable,
    Result,
    Row,
    Summary,
    UnsupportedModelError,
    checks,
    instrument,
)
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.precision import name_of
from inscape.piecewise.graph.matrix_chain import MatrixChain, layers
from inscape.piecewise.graph.network import Piecewise, piecewise
from inscape.regions._expressions import difference, quotient
from inscape.regions._maxima import Array, Maximum, constant, most_terms, pruned, total
from inscape.regions.region_bounds import arrangement
from inscape.runtime.progress import progress

#: A unit as a difference of two maxima.
Pair = tuple[Maximum, Maximum]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Tropical(Result):
    """Each output as max of its ``plus`` terms less max of its ``minus`` terms.

    A term is slopes x + constant; ``plus_outputs`` and ``minus_outputs`` tell the output of each.
    """

    range: ClassVar[Range] = NONNEGATIVE

    plus_slopes: Float64[Tensor, "f D"]
    plus_constants: Float64[Tensor, " f"]
    plus_outputs: Int64[Tensor, " f"]
    minus_slopes: Float64[Tensor, "g D"]
    minus_constants: Float64[Tensor, " g"]
    minus_outputs: Int64[Tensor, " g"]
    outputs: int
    converted: str | None

    def values(self, x: Float[Tensor, "n *d"]) -> Float64[Tensor, "n c"]:
        """Evaluate the two maxima and return their difference: the network's own values."""
        flat = x.double().flatten(1)
        columns = []
        for k in range(self.outputs):
            plus, minus = (
                (flat @ slopes.T + constants).amax(1) for slopes, constants in self.terms(k)
            )
            columns.append(plus - minus)
        return torch.stack(columns, 1)

    def __call__(self, x: Float[Tensor, "n *d"]) -> Float64[Tensor, "n c"]:
        """Evaluate the network in this form."""
        return self.values(x)

    def terms(self, output: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Return slopes and constants of the plus terms, then of the minus terms, of an output."""
        if not 0 <= output < self.outputs:
            raise ValueError(
                f"output must be one of {self.outputs}, found {output}: choose 0 to "
                f"{self.outputs - 1}."
            )
        plus, minus = self.plus_outputs == output, self.minus_outputs == output
        return (
            (self.plus_slopes[plus], self.plus_constants[plus]),
            (self.minus_slopes[minus], self.minus_constants[minus]),
        )

    def expression(self, output: int = 0, *, digits: int = 4) -> str:
        """Return an output as text: ``max{-1, x1 + x2 + 1} - max{0, 2 x1 + 2 x2}``."""
        return difference(self.terms(output), digits)

    def tropical_expression(self, output: int = 0, *, digits: int = 4) -> str:
        """Return an output in max-plus algebra: a sum is a maximum, a product a sum.

        A power is a multiple and a quotient a difference; the zero of the semiring is minus
        infinity (S14).
        """
        return quotient(self.terms(output), digits)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each term."""
        for part in ("plus", "minus"):
            slopes = getattr(self, f"{part}_slopes")
            named = zip(
                getattr(self, f"{part}_outputs").tolist(),
                slopes.tolist(),
                getattr(self, f"{part}_constants").tolist(),
                strict=True,
            )
            for output, slope, number in named:
                coefficients = {f"x{k + 1}": value for k, value in enumerate(slope[:20])}
                yield {"output": output, "part": part, "constant": number} | coefficients

    def summary(self) -> Summary:
        """Return the number of terms."""
        plus, minus = len(self.plus_constants), len(self.minus_constants)
        basis = f"{plus} plus and {minus} minus terms, {self.outputs} outputs"
        return Summary(value=float(plus + minus), kind="exact", basis=basis)


@instrument(
    reads="function",
    larger="more linear regions",
    cost="seconds",
    work=lambda n, c: 1,
    setup=2.0,
    meaning="Written as a difference of two maxima, the network needs {value} affine terms.",
    cites="sattelberg2026linearity, section 5.4, Eqs. (5.17)-(5.24)",
    by_default=False,
)
def tropical(
    f: Function, x: Float[Tensor, "n *d"], *, terms: int = 5000
) -> Tropical | NotApplicable:
    r"""Write a small network as a difference of two maxima of affine functions.

    .. math:: v(x) = \max\{F_1 x + m_1, \ldots, F_f x + m_f\}
              - \max\{G_1 x + n_1, \ldots, G_g x + n_g\}

    Exact up to rounding: a unit with slope a below zero turns F - G into max(F + aG, aF + G) -
    (G + aG), and sums of maxima are maxima of sums. Terms that are nowhere the largest are
    removed at every step, by the convex hull or by linear programmes. Which two maxima it comes
    to is that of the layers; other pairs have the same difference. The number of terms grows
    exponentially with depth: a network whose bound on it passes ``terms`` is refused before
    anything is built. Not applicable to other graphs than chains of layers.

    Args:
        f: A network in eval mode: affine maps with ReLU, LeakyReLU, PReLU or abs between them.
        x: Points of the data, which give the shape of an input.
        terms: Most terms that any maximum may be expected to need.

    >>> import torch
    >>> tropical(torch.abs, torch.zeros(1, 1)).expression()
    'max{-x1, x1} - max{0}'
    """
    checks.whole(1, terms=terms)
    try:
        net = piecewise(f, x)
    except UnsupportedModelError as error:
        return NotApplicable(what="tropical", reason=str(error))
    chained = layers(net) if net.ops else None
    if net.ops and chained is None:
        return NotApplicable(
            what="tropical",
            reason="it takes a chain of affine maps with units of one kink between them",
        )
    if chained is not None:
        _check_size(chained, net.inputs, terms)
    return _result(net, _built(net, chained))


def _result(net: Piecewise, pairs: list[Pair]) -> Tropical:
    fields: dict[str, Tensor] = {}
    for at, part in enumerate(("plus", "minus")):
        maxima = [pair[at] for pair in pairs]
        outputs = [np.full(len(maximum), k) for k, maximum in enumerate(maxima)]
        fields[f"{part}_slopes"] = torch.from_numpy(np.concatenate([m.slopes for m in maxima]))
        constants = np.concatenate([m.constants for m in maxima])
        fields[f"{part}_constants"] = torch.from_numpy(constants)
        fields[f"{part}_outputs"] = torch.from_numpy(np.concatenate(outputs))
    return Tropical(outputs=net.outputs, converted=name_of(net.converted), **fields)


def _check_size(chained: MatrixChain, inputs: int, terms: int) -> None:
    """Refuse a network whose maxima may need more terms than allowed."""
    narrowest, cells = inputs, 1
    dimension = min(inputs, len(chained.slopes[0]))
    units = [(1, 1)] * len(chained.slopes[0])
    for at, (weight, slopes) in enumerate(zip(chained.weights, chained.slopes, strict=True)):
        cells *= arrangement(len(slopes), narrowest)
        narrowest = min(narrowest, len(slopes))
        activated = [
            _activated_terms(unit, a, dimension) for unit, a in zip(units, slopes, strict=True)
        ]
        units = [_sum_terms(activated, row, dimension, cells) for row in weight]
        worst = max(max(unit) for unit in units)
        if worst > terms:
            name = "an output" if at == len(chained.weights) - 1 else f"a unit of layer {at + 2}"
            raise BudgetError(
                f"the network must need at most {terms} terms in a maximum, but {name} may need "
                f"{_size(worst)}: take a smaller network, raise terms, or use plane_regions or "
                "local_maps, which do not write it out."
            )


def _size(count: int) -> str:
    return str(count) if count < 10**6 else f"10^{log10(count):.1f}"


def _sum_terms(
    units: list[tuple[int, int]], row: Array, dimension: int, cells: int
) -> tuple[int, int]:
    """Return the most terms of both maxima of a weighted sum of units.

    Both are affine on every cell of the layers before, so that they need no more terms than there
    are cells.
    """
    weights = row.tolist()
    plus = [unit[w < 0] for unit, w in zip(units, weights, strict=True) if w]
    minus = [unit[w > 0] for unit, w in zip(units, weights, strict=True) if w]
    return min(cells, most_terms(plus, dimension)), min(cells, most_terms(minus, dimension))


def _activated_terms(unit: tuple[int, int], slope: float, dimension: int) -> tuple[int, int]:
    """Return the most terms of both maxima of a unit's activation; see ``_activated``."""
    if slope == 1.0:
        return unit
    if unit == (1, 1):
        return (2, 1) if slope < 1 else (1, 2)
    if slope == 0.0:
        return sum(unit), unit[1]
    both = most_terms(unit, dimension)
    if slope > 1:
        return unit[0], 2 * both
    return 2 * both, both if slope < 0 else unit[1]


def _built(net: Piecewise, chained: MatrixChain | None) -> list[Pair]:
    """Return every output as a difference of two maxima."""
    d = net.inputs
    probes = torch.cat([torch.zeros(1, d), torch.eye(d)]).double().reshape(-1, *net.input_shape)
    start = net.values(probes).numpy() if chained is None else chained.first(probes)
    units = [_affine(start[1:, k] - start[0, k], start[0, k]) for k in range(start.shape[1])]
    if chained is None:
        return units
    with progress(sum(map(len, chained.biases)), label="maxima") as bar:
        for weight, bias, slopes in zip(
            chained.weights, chained.biases, chained.slopes, strict=True
        ):
            activated = [
                _activated(*unit, slope) for unit, slope in zip(units, slopes.tolist(), strict=True)
            ]
            units = []
            for row, number in zip(weight, bias.tolist(), strict=True):
                units.append(_sum(activated, row, number, d))
                bar.advance()
    return units


def _affine(slope: Array, number: float) -> Pair:
    return Maximum(slope[None].copy(), np.full(1, number)), constant(len(slope))


def _sum(units: list[Pair], row: Array, number: float, d: int) -> Pair:
    """Return a weighted sum of differences: positive weights keep their sides, negative swap."""
    weights = row.tolist()
    plus = [(abs(w), unit[w < 0]) for w, unit in zip(weights, units, strict=True)]
    minus = [(abs(w), unit[w > 0]) for w, unit in zip(weights, units, strict=True)]
    up = total(plus, d)
    return Maximum(up.slopes, up.constants + number), total(minus, d)


def _activated(plus: Maximum, minus: Maximum, slope: float) -> Pair:
    """Return kink(plus - minus) as a difference, for a kink with that slope below zero.

    It is the larger of z and slope z for slopes up to one, the smaller above.
    """
    if slope == 1.0:
        return plus, minus
    if len(plus) == len(minus) == 1:
        z = Maximum(plus.slopes - minus.slopes, plus.constants - minus.constants)
        other = Maximum(slope * z.slopes, slope * z.constants)
        if slope < 1:
            return z | other, constant(z.slopes.shape[1])
        turned = Maximum(-z.slopes, -z.constants) | Maximum(-other.slopes, -other.constants)
        return constant(z.slopes.shape[1]), turned
    if slope == 0.0:
        return plus | minus, minus
    up, down = max(slope, 0.0), max(-slope, 0.0)
    if slope > 1.0:
        rest = pruned((1.0 + slope) * plus)
        return rest, (minus + up * plus) | (up * minus + plus)
    straight = (1.0 + down) * plus + up * minus
    turned = up * plus + (1.0 + down) * minus
    return straight | turned, (1.0 + up) * minus + down * plus
