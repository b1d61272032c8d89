"""Networks that compute a Boolean function, with weights that can be checked by hand.

Theorems 3.3.2 to 3.3.4 with errata S3, S23 and S24, and the narrow networks of section 3.3.1. All
of them read an input as one number, a weighted sum of its entries, and change sign wherever the
function does along it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from inscape._core import UnsupportedModelError, checks
from inscape.boolean.line_networks import activation, alternating, deep_classifier, linear
from inscape.boolean.truth_table import TruthTable


@dataclass(frozen=True, kw_only=True)
class Projection:
    """A function along one weighted sum: where it starts, where it changes, and its first value."""

    weights: tuple[float, ...]
    start: float
    end: float
    zeros: tuple[float, ...]
    first: int

    @property
    def changes(self) -> int:
        """Return how often the function changes; the swaps value, if the weights are the best."""
        return len(self.zeros)


def binary_weights(n: int) -> list[float]:
    """Return the weights of the binary number that the inputs spell, first input first."""
    return [float(2**k) for k in reversed(range(n))]


def projected(table: TruthTable, weights: Sequence[float]) -> Projection:
    """Return the function as it runs along a weighted sum of its inputs -1 and 1.

    Args:
        table: The function.
        weights: One for each input; inputs of different value must not fall on one place.
    """
    if len(weights) != table.n or not np.isfinite(weights).all():
        raise ValueError(
            f"weights must be {table.n} finite numbers, one for each input, found "
            f"{list(weights)}: give one for each."
        )
    places = table.points @ np.asarray(weights, dtype=float)
    order = np.argsort(places, kind="stable")
    along, values = places[order], np.asarray(table.bits)[order]
    changing = np.flatnonzero(np.diff(values.astype(int)))
    zeros = (along[changing] + along[changing + 1]) / 2
    if (along[changing] == along[changing + 1]).any():
        raise ValueError(
            f"weights must not put inputs of different value on one place, found {list(weights)}, "
            "which do: take the witness of swaps, or powers of two."
        )
    return Projection(
        weights=tuple(float(weight) for weight in weights),
        start=float(along[0]),
        end=float(along[-1]),
        zeros=tuple(zeros.tolist()),
        first=1 if values[0] else -1,
    )


def wide_network(
    table: TruthTable, weights: Sequence[float], *, leak: float = 0.0
) -> nn.Sequential:
    """Return the network of theorem 3.3.2: one hidden layer, a unit for each change of class.

    A function of swaps value s, with the weights that show it, has s units (S3); a constant has
    one, which does nothing. With a ReLU and integer weights every number in it is exact.

    Args:
        table: The function; its values are the signs of the network.
        weights: One for each input.
        leak: Slope of the leaky ReLU below zero; 0 for a ReLU.

    >>> from inscape.boolean.truth_table import TruthTable
    >>> wide_network(TruthTable(2, 6), [1, 1])[0].out_features  # XOR
    2
    """
    line = projected(table, weights)
    if not line.changes:
        return _constant(table.n, 1, line.first, leak)
    network = alternating(line.zeros, start=line.start, first=line.first, leak=leak)
    return _reading(
        network,
        torch.tensor([line.weights], dtype=torch.float64),
        torch.zeros(1, dtype=torch.float64),
    )


def narrow_network(
    table: TruthTable, weights: Sequence[float] | None = None, *, leak: float = 0.0
) -> nn.Sequential:
    r"""Return a network of width two for any Boolean function, as section 3.3.1 promises.

    One unit carries the weighted sum t, the other adds one change of sign in each layer: with
    zeros :math:`z_1 < \ldots < z_s`, :math:`h_1 = \pm (t - z_1)` and
    :math:`h_{k+1} = \max(h_k, t - z_{k+1})` or :math:`\min(h_k, z_{k+1} - t)`, in turn. So s
    changes need s - 1 hidden layers, at least one; by the binary number that the inputs spell, any
    function of n inputs needs at most :math:`2^n - 2`.

    Args:
        table: The function; its values are the signs of the network.
        weights: One for each input; powers of two by default.
        leak: Slope of the leaky ReLU below zero; 0 for a ReLU.

    >>> from inscape.boolean.truth_table import TruthTable
    >>> len(narrow_network(TruthTable(2, 6)))  # XOR: 0, 1, 1, 0 at 0, 1, 2, 3
    3
    """
    line = projected(table, binary_weights(table.n) if weights is None else weights)
    if not line.changes:
        return _constant(table.n, 2, line.first, leak)
    zeros = [zero - line.start for zero in line.zeros]
    if len(zeros) == 1:
        zeros.append(line.end - line.start + 1)  # a second change, beyond all inputs
    modules: list[nn.Module] = []
    side = line.first
    # (t, h) as an affine map of what the layer before wrote; at first that is t alone.
    reading = torch.tensor([[1.0], [-side]], dtype=torch.float64)
    offset = torch.tensor([0.0, side * zeros[0]], dtype=torch.float64)
    for past, zero in pairwise(zeros):
        slope, height = _bound(side, past, zero, leak)
        mixing = torch.tensor([[1.0, 0.0], [-side * slope, side]], dtype=torch.float64)
        shift = torch.tensor([0.0, -side * height], dtype=torch.float64)
        modules += [linear(mixing @ reading, mixing @ offset + shift), activation(leak)]
        reading = torch.tensor([[1.0, 0.0], [slope, side]], dtype=torch.float64)
        offset = torch.tensor([0.0, height], dtype=torch.float64)
        side = -side
    network = nn.Sequential(*modules, linear(reading[1:], offset[1:]))
    weight, bias = (
        torch.tensor([line.weights], dtype=torch.float64),
        torch.tensor([-line.start], dtype=torch.float64),
    )
    return _reading(network, weight, bias)


def _bound(side: int, past: float, zero: float, leak: float) -> tuple[float, float]:
    """Return slope and height of the line l that gives h its next zero.

    A layer turns h into l + side * kink(side * (h - l)), which is max(h, l) or min(h, l) for a
    ReLU. A leak keeps a part of h, which is side * (past - t) there: l leans against it.
    """
    slope = side * (1 + leak) / (1 - leak)
    height = -side * (zero + leak * past) / (1 - leak)
    return slope, height


def parity_network(n: int, *, width: int, depth: int = 1, leak: float = 0.0) -> nn.Sequential:
    """Return the network of theorem 3.3.4: parity of n inputs, as long as n <= width^depth (S23).

    It counts the ones and folds the count upon itself. With a ReLU every weight is an integer
    or a half.

    Args:
        n: Number of inputs -1 and 1.
        width: Units of each hidden layer.
        depth: Number of hidden layers.
        leak: Slope of the leaky ReLU below zero; 0 for a ReLU.
    """
    checks.at_least(1, n=n, width=width, depth=depth)
    if n > width**depth:
        raise ValueError(
            f"n must be at most width^depth = {width}^{depth} = {width**depth}, found {n}: make "
            "the network wider or deeper."
        )
    network = deep_classifier(width, depth, low=0.0, high=float(width**depth), leak=leak)
    halves = torch.full((1, n), 0.5, dtype=torch.float64)
    return _reading(network, halves, torch.tensor([n / 2], dtype=torch.float64))


def represents(model: nn.Sequential, table: TruthTable) -> bool:
    """Return whether the signs of a network are a function's values, in rational arithmetic.

    Exact: the weights are taken as the fractions that they are, so that no rounding can decide. A
    value of zero has no sign and is wrong.

    Args:
        model: Linear layers with ReLU or leaky ReLU between them and one output.
        table: The function.
    """
    steps = _steps(model)
    values = (_run(steps, point) for point in table.points.tolist())
    wanted = np.asarray(table.bits).tolist()
    return all(
        value != 0 and (value > 0) == bool(bit) for value, bit in zip(values, wanted, strict=True)
    )


def exact_value(model: nn.Sequential, point: Sequence[float]) -> Fraction:
    """Return the output of a network at one point as a fraction."""
    return _run(_steps(model), point)


#: A layer as rows of (weights, bias), or the leak of an activation.
_Step = list[tuple[list[Fraction], Fraction]] | Fraction


def _steps(model: nn.Sequential) -> list[_Step]:
    """Return the layers of a network in fractions."""
    steps: list[_Step] = []
    for module in model:
        match module:
            case nn.Linear():
                rows = zip(module.weight.tolist(), module.bias.tolist(), strict=True)
                steps.append([([*map(Fraction, row)], Fraction(bias)) for row, bias in rows])
            case nn.ReLU():
                steps.append(Fraction(0))
            case nn.LeakyReLU():
                steps.append(Fraction(module.negative_slope))
            case _:
                raise UnsupportedModelError(
                    "exact_value supports Linear, ReLU and LeakyReLU, found "
                    f"{type(module).__name__}: rewrite the network with those."
                )
    return steps


def _run(steps: Sequence[_Step], point: Sequence[float]) -> Fraction:
    state = [Fraction(entry) for entry in point]
    for step in steps:
        if isinstance(step, Fraction):
            state = [entry if entry > 0 else step * entry for entry in state]
        else:
            state = [
                sum((a * x for a, x in zip(row, state, strict=True) if a), bias)
                for row, bias in step
            ]
    return state[0]


def _reading(network: nn.Sequential, weight: Tensor, bias: Tensor) -> nn.Sequential:
    """Return a network that reads an affine map of its inputs instead."""
    first, *rest = network
    assert isinstance(first, nn.Linear)
    first_weight = first.weight.detach()
    composed = linear(first_weight @ weight, first_weight @ bias + first.bias.detach())
    return nn.Sequential(composed, *rest).eval()


def _constant(n: int, width: int, value: int, leak: float) -> nn.Sequential:
    """Return a network with one hidden layer that has one value everywhere."""
    hidden = linear(
        torch.zeros(width, n, dtype=torch.float64), torch.zeros(width, dtype=torch.float64)
    )
    output = linear(
        torch.zeros(1, width, dtype=torch.float64),
        torch.tensor([float(value)], dtype=torch.float64),
    )
    return nn.Sequential(hidden, activation(leak), output).eval()
