r"""Linear centred kernel alignment (CKA) of two sets of features, from sums over batches.

.. math:: \mathrm{CKA}(X, Y) = \frac{\mathrm{HSIC}(X, Y)}
          {\sqrt{\mathrm{HSIC}(X, X) \, \mathrm{HSIC}(Y, Y)}}

Biased, as printed in most papers, :math:`\mathrm{HSIC}(X, Y) = \lVert Y^T X \rVert_F^2` of centred
columns. For independent features it is about :math:`p / (n + p)` and not 0. The debiased form takes
the unbiased estimate of HSIC (Song et al., 2012), whose diagonal of both kernels is left out.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.result import ROUNDING

#: Examples without which there is no unbiased estimate.
FEWEST = 4
#: Examples that are added at once: no copy of all features is made.
ROWS = 1024


@dataclass(frozen=True, kw_only=True)
class LinearAlignment:
    """Three forms of the alignment; NaN where the features of one side are constant."""

    biased: float
    debiased: float
    uncentred: float


class LinearMoments:
    """Sums over examples from which the alignment follows; features are added in batches."""

    def __init__(self) -> None:
        self._n = 0
        self._sums: list[Tensor] = []
        self._products: list[_Products] = []

    def add(self, x: Float64[Tensor, "n p"], y: Float64[Tensor, "n q"]) -> None:
        """Add the features of some examples."""
        if not self._n:  # both sides are moved near zero, against cancellation
            self._origins = x.mean(0), y.mean(0)
            self._products = [_Products((x, y)[i], (x, y)[j], same=i == j) for i, j in PAIRS]
        moved = [side - origin for side, origin in zip((x, y), self._origins, strict=True)]
        squares = [side.square().sum(1) for side in moved]
        for product, (left, right) in zip(self._products, _pairs(*moved), strict=True):
            product.add(left, right)
        parts = [
            *(side.sum(0) for side in moved),
            *(side.T @ square for side in moved for square in squares),
            *((left * right).sum() for left, right in _pairs(*squares)),
            *(square.sum() for square in squares),
        ]
        if self._n:
            for total, part in zip(self._sums, parts, strict=True):
                total += part
        else:
            self._sums = parts
        self._n += len(x)

    def alignment(self) -> LinearAlignment:
        """Return the alignment of all features that were added."""
        n, sums, totals = self._n, self._sums, self._sums[:2]
        products = {k: p.total() for k, p in zip(PAIRS, self._products, strict=True)}
        weighted = dict(zip(WEIGHTED, sums[2:6], strict=True))
        fourth, traces = dict(zip(PAIRS, sums[6:9], strict=True)), sums[9:11]
        biased, unbiased, uncentred = {}, {}, {}
        for i, j in PAIRS:
            centred = products[i, j] - torch.outer(totals[i], totals[j]) / n
            biased[i, j] = float(centred.square().sum())
            around_zero = self._around_zero(products[i, j], totals, i, j)
            uncentred[i, j] = float(around_zero.square().sum())
            unbiased[i, j] = unbiased_hsic(
                n,
                trace=float(products[i, j].square().sum() - fourth[i, j]),
                ones=[float(totals[k] @ totals[k] - traces[k]) for k in (i, j)],
                between=float(
                    totals[i] @ products[i, j] @ totals[j]
                    - totals[i] @ weighted[i, j]
                    - totals[j] @ weighted[j, i]
                    + fourth[i, j]
                ),
            )
        if self._is_constant(biased, traces):
            return LinearAlignment(biased=math.nan, debiased=math.nan, uncentred=_ratio(uncentred))
        return LinearAlignment(
            biased=_ratio(biased),
            debiased=_debiased(unbiased, biased, n),
            uncentred=_ratio(uncentred),
        )

    def _around_zero(self, product: Tensor, totals: list[Tensor], i: int, j: int) -> Tensor:
        """Return the product of features as they were before they were moved."""
        origins = [self._origins[k] for k in (i, j)]
        return (
            product
            + torch.outer(totals[i], origins[1])
            + torch.outer(origins[0], totals[j])
            + self._n * torch.outer(*origins)
        )

    def _is_constant(self, biased: dict[tuple[int, int], float], traces: list[Tensor]) -> bool:
        """Tell whether a side varies by no more than rounding."""
        for k in (0, 1):
            size = float(traces[k]) + self._n * float(self._origins[k].square().sum())
            if math.sqrt(biased[k, k]) <= ROUNDING**2 * size:
                return True
        return False


class _Products:
    """The sum of ``x.T @ y`` over batches; of one side with itself, half of it is computed."""

    def __init__(self, x: Tensor, y: Tensor, *, same: bool) -> None:
        self._same = same and x.device.type == "cpu"
        self._sum = x.new_zeros(x.shape[1], y.shape[1])

    def add(self, x: Float64[Tensor, "n p"], y: Float64[Tensor, "n q"]) -> None:
        if self._same:
            from scipy.linalg.blas import dsyrk

            # what is a row to torch is a column to LAPACK: its upper triangle is our lower one
            into = self._sum.numpy().T
            dsyrk(1.0, x.detach().contiguous().numpy().T, beta=1.0, c=into, overwrite_c=1)
        else:
            self._sum.addmm_(x.T, y)

    def total(self) -> Float64[Tensor, "p q"]:
        if not self._same:
            return self._sum
        return self._sum.tril() + self._sum.tril(-1).T


#: Sides of each product, and of sums of one side weighted by the squared norms of another.
PAIRS = ((0, 0), (0, 1), (1, 1))
WEIGHTED = ((0, 0), (0, 1), (1, 0), (1, 1))


def linear_alignment(x: Float64[Tensor, "n p"], y: Float64[Tensor, "n q"]) -> LinearAlignment:
    """Return the alignment of two sets of features of the same examples.

    >>> import torch
    >>> x = torch.arange(10.0, dtype=torch.float64).reshape(5, 2).sqrt()
    >>> round(linear_alignment(x, -2 * x).debiased, 12)
    1.0
    """
    moments = LinearMoments()
    for parts in zip(torch.split(x, ROWS), torch.split(y, ROWS), strict=True):
        moments.add(*parts)
    return moments.alignment()


def kernel_alignment(
    k: Float64[Tensor, "n n"], other: Float64[Tensor, "n n"]
) -> tuple[float, float]:
    """Return the biased and the debiased alignment of two kernel matrices of the same examples."""
    n, sides = len(k), (k, other)
    biased, unbiased = {}, {}
    centred = [side - side.mean(0) - side.mean(1, keepdim=True) + side.mean() for side in sides]
    hollow = [side - torch.diag(side.diagonal()) for side in sides]
    rows = [side.sum(1) for side in hollow]
    for i, j in PAIRS:
        biased[i, j] = float((centred[i] * centred[j]).sum())
        unbiased[i, j] = unbiased_hsic(
            n,
            trace=float((hollow[i] * hollow[j]).sum()),
            ones=[float(rows[m].sum()) for m in (i, j)],
            between=float(rows[i] @ rows[j]),
        )
    return _ratio(biased), _debiased(unbiased, biased, n)


def _pairs(first: Tensor, second: Tensor) -> list[tuple[Tensor, Tensor]]:
    return [(first, first), (first, second), (second, second)]


def unbiased_hsic(n: int, *, trace: float, ones: list[float], between: float) -> float:
    r"""Return the unbiased estimate of HSIC from kernels K, L without their diagonals.

    .. math:: \frac{1}{n (n - 3)} \Bigl( \mathrm{tr} K L +
              \frac{1^T K 1 \; 1^T L 1}{(n - 1)(n - 2)} - \frac{2}{n - 2} 1^T K L 1 \Bigr)
    """
    if n < FEWEST:
        return math.nan
    sums = ones[0] * ones[1] / ((n - 1) * (n - 2))
    return (trace + sums - 2 * between / (n - 2)) / (n * (n - 3))


def _debiased(
    unbiased: dict[tuple[int, int], float], biased: dict[tuple[int, int], float], n: int
) -> float:
    if any(is_rounding(n, unbiased[k, k], biased[k, k]) for k in (0, 1)):
        return math.nan
    return _ratio(unbiased)


def is_rounding(n: int, unbiased: float, biased: float) -> bool:
    """Tell whether the unbiased size of a kernel is rounding: no two examples are alike in it."""
    return n >= FEWEST and (n - 3) * unbiased <= ROUNDING**2 * biased


def _ratio(products: dict[tuple[int, int], float]) -> float:
    norms = products[0, 0] * products[1, 1]
    return products[0, 1] / math.sqrt(norms) if norms > 0 else math.nan
