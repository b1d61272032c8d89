"""Region bounds: how many linear regions networks of these widths can have at most."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log10, prod
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from inscape._core import (
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
from inscape.piecewise.graph.matrix_chain import layers
from inscape.piecewise.graph.network import piecewise


def arrangement(planes: int, dimension: int) -> int:
    r"""Return the most regions that hyperplanes can cut a space into, exactly.

    .. math:: \sum_{i=0}^{n} \binom{k}{i}

    Zaslavsky's count for ``k`` hyperplanes in general position in ``n`` dimensions, Sattelberg's
    Eq. (5.15); ``2 ** k`` where there are no more hyperplanes than dimensions.

    >>> arrangement(3, 2)
    7
    """
    total = term = 1
    for i in range(min(planes, dimension)):
        term = term * (planes - i) // (i + 1)
        total += term
    return total


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RegionBounds(Result):
    """Bounds for ``widths`` of the hidden layers on a space of ``dimension``, and a count if known.

    The bounds are properties: exact integers of any size. Rows hold their logarithms too.
    """

    range: ClassVar[Range] = NONNEGATIVE

    widths: tuple[int, ...]
    inputs: int
    dimension: int
    count: int | None

    @property
    def upper(self) -> int:
        r"""Return the upper bound for networks of these widths, Sattelberg's Eq. (2.26).

        .. math:: \prod_{l=1}^{L} \sum_{i=0}^{k_l} \binom{N_l}{i}, \quad
                  k_l = \min(N_0, N_1, \ldots, N_{l-1})

        Printed with one k for all layers, which is :math:`N_0` where no layer is narrower than
        the input; behind a narrow layer the image has no more dimensions than it has units, before
        it the sum must not be cut. Holds for cells of constant activation pattern, and so for
        regions of one affine map; grows as :math:`O(N^{kL})` (S30).
        """
        narrowest = self.dimension
        bound = 1
        for width in self.widths:
            bound *= arrangement(width, narrowest)
            narrowest = min(narrowest, width)
        return bound

    @property
    def lower(self) -> int | None:
        r"""Return a number that some ReLU network of these widths reaches, Sattelberg's Eq. (2.27).

        .. math:: \left(\prod_{i=1}^{L-1} \lfloor N_i / N_0 \rfloor^{N_0}\right)
                  \sum_{j=0}^{N_0} \binom{N_L}{j}

        A bound on the largest number over all weights: a given network may well have fewer. None
        where a layer is narrower than the input. Grows as Eq. (2.28),
        :math:`\Omega((N/N_0)^{(L-1) N_0} N^{N_0})`.
        """
        d = self.dimension
        if not self.widths or min(self.widths) < d:
            return None
        folds: int = prod((width // d) ** d for width in self.widths[:-1])
        return folds * arrangement(self.widths[-1], d)

    @property
    def first_layer(self) -> int:
        """Return the most regions that the first hidden layer makes alone, Eq. (5.15)."""
        return arrangement(self.widths[0], self.dimension) if self.widths else 1

    @property
    def order(self) -> int:
        """Return the power of a common width in which the upper bound grows, k L by S30.

        Where no layer is narrower than the input the lower bound grows in the same power,
        Eq. (2.28); the printed power k (L - 1) of the upper bound would lie below it.
        """
        narrowest, power = self.dimension, 0
        for width in self.widths:
            power += min(narrowest, width)
            narrowest = min(narrowest, width)
        return power

    def rows(self) -> Iterator[Row]:
        """Yield one row for each bound, and one for the count where there is one."""
        named = {
            "patterns of all units": 2 ** sum(self.widths),
            "upper bound (2.26)": self.upper,
            "first layer alone (5.15)": self.first_layer,
            "reached by some (2.27)": self.lower,
            "count": self.count,
        }
        for name, value in named.items():
            if value is not None:
                yield {
                    "what": name,
                    "log10": log10(value) if value else None,
                    "value": _text(value),
                }

    def summary(self) -> Summary:
        """Return the base-ten logarithm of the upper bound."""
        shape = "-".join(map(str, (self.dimension, *self.widths)))
        return Summary(value=log10(self.upper), kind="upper bound", basis=f"log10, {shape[:60]}")


def _text(value: int) -> str:
    """Return an integer as text, or its size where it is too long to read."""
    power = log10(value) if value else 0.0
    return str(value) if power < 20 else f"10^{power:.2f}"


@instrument(
    reads="parameters",
    larger="that more linear regions are possible",
    cost="instant",
    work=lambda n, c: 1,
    setup=1.0,
    meaning="A network of these widths has a number of linear regions of 10 to the power of "
    "{value}.",
    cites="sattelberg2026linearity, Eqs. (2.26)-(2.28), (5.15)",
    by_default=False,
)
def region_bounds(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    dimension: int | None = None,
    count: int | None = None,
) -> RegionBounds | NotApplicable:
    r"""Bound the number of linear regions from the widths of a network alone.

    .. math:: \left(\prod_{i=1}^{L-1} \lfloor N_i / N_0 \rfloor^{N_0}\right)
              \sum_{j=0}^{N_0} \binom{N_L}{j} \leq \max_\theta R(\theta) \leq
              \prod_{l=1}^{L} \sum_{i=0}^{k_l} \binom{N_l}{i}

    Exact integers, from the widths of a chain of affine maps with units of one kink between
    them; nothing is computed from the weights. Not applicable to other graphs.

    Args:
        f: A network in eval mode.
        x: Points of the data, which give the shape of an input.
        dimension: Dimension of the slice of the input space in which regions are counted (2 for a
            plane); all of the space unless given.
        count: A count to compare with the bounds, such as that of ``plane_regions``.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> found = region_bounds(net.eval(), torch.zeros(1, 2))
    >>> found.upper, found.lower
    (7, 7)
    """
    try:
        net = piecewise(f, x)
    except UnsupportedModelError as error:
        return NotApplicable(what="region_bounds", reason=str(error))
    chained = layers(net) if net.ops else None
    if net.ops and chained is None:
        return NotApplicable(
            what="region_bounds",
            reason="the bounds are for a chain of affine maps with units of one kink between them",
        )
    dimension = net.inputs if dimension is None else dimension
    checks.whole(1, dimension=dimension)
    if dimension > net.inputs:
        raise ValueError(
            f"dimension must be at most the {net.inputs} of the input space, found {dimension}: "
            "lower it."
        )
    if count is not None:
        checks.whole(1, count=count)
    return RegionBounds(
        widths=tuple(len(slopes) for slopes in chained.slopes) if chained else (),
        inputs=net.inputs,
        dimension=dimension,
        count=count,
    )
