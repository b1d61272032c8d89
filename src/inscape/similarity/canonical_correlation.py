"""Canonical correlation: how far linear maps of the layers of two networks agree (SVCCA, PWCCA)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import NotApplicable, Summary, checks, instrument
from inscape._core.checks import Function
from inscape._core.result import PROPORTION, Range
from inscape.similarity._layers import LayeredNetwork, Layers, layered
from inscape.similarity._orthogonal import centred, permutations, rotated
from inscape.similarity._pair import NO_OTHER, Other, perturbed
from inscape.similarity.layer_matrix import UNDEFINED, LayerMatrix, empty

FEW = (
    "the features of a layer span as many directions as the examples have, so that any two layers "
    "correlate perfectly: pass more examples than features"
)
#: Singular values below this fraction of the largest are rounding.
RANK = 1e-10


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CanonicalCorrelation(LayerMatrix):
    """Mean canonical correlation of each pair of layers: SVCCA (``values``) and ``weighted``.

    ``baseline`` is that of SVCCA; ``directions`` are how many of each layer are taken.
    """

    range: ClassVar[Range] = PROPORTION
    nonfinite: ClassVar = dict.fromkeys(("values", "baseline", "weighted"), UNDEFINED)

    weighted: Float64[Tensor, "k m"]
    directions: tuple[int, ...]
    other_directions: tuple[int, ...]

    def summary(self) -> Summary:
        """Return the mean correlation of the last hidden layers."""
        i, j = self.headline
        basis = (
            f"{self.basis}; {self.directions[i]} and {self.other_directions[j]} directions; "
            f"weighted by projection: {float(self.weighted[i, j]):.3g}"
        )
        return Summary(value=float(self.values[i, j]), kind="exact", basis=basis)


@dataclass(frozen=True, kw_only=True)
class _Basis:
    """Centred features, an orthonormal basis of their directions, and how many of it are taken."""

    features: Float64[Tensor, "n p"]
    directions: Float64[Tensor, "n r"]
    count: int

    def most(self) -> Float64[Tensor, "n k"]:
        return self.directions[:, : self.count]


@instrument(
    reads="pair",
    larger="more alike representations up to a linear map",
    cost="seconds",
    work=lambda n, c: 2 * n * (1 + n / 50),
    meaning="The last hidden layers of both networks have a mean canonical correlation (SVCCA) of "
    "{value}.",
    cites="raghu2017svcca; morcos2018insights",
    example=perturbed,
    by_default=False,
    least_rows=3,
)
def canonical_correlation(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    other: Other = None,
    other_x: Float[Tensor, "m *e"] | None = None,
    layers: Layers = None,
    other_layers: Layers = None,
    variance: float = 0.99,
    permuted: int = 3,
    seed: int = 0,
) -> CanonicalCorrelation | NotApplicable:
    r"""Measure the canonical correlations of the layers of two networks: SVCCA and PWCCA.

    .. math:: \mathrm{SVCCA} = \frac{1}{k} \sum_i \rho_i, \qquad
              \mathrm{PWCCA} = \frac{\sum_i \alpha_i \rho_i}{\sum_i \alpha_i}, \quad
              \alpha_i = \sum_j |h_i \cdot x_j|

    with the canonical correlations :math:`\rho_i` of the centred features. SVCCA first keeps the
    directions of either side with the most variance, that make up ``variance`` of it; PWCCA keeps
    all and weighs each correlation by how much of the first network's features :math:`x_j` its
    direction :math:`h_i` carries. Exact for these examples, in float64. Invariant to every
    invertible linear map of a layer (PWCCA of the second network's). Where the features of a layer
    span all that the examples have, every correlation is 1: such a pair is NaN.

    Args:
        f: The first network; of a function that is no module, only the output is compared.
        x: Examples, more than a layer has features.
        other: The second network; without one the result is "not applicable".
        other_x: The same examples as the second network takes them, where it takes another form.
        layers: Names of modules of the first network, as for ``layer_alignment``.
        other_layers: Names of modules of the second network.
        variance: Fraction of the variance of each layer that SVCCA keeps.
        permuted: Permutations of the baseline.
        seed: Seed of the permutations.

    >>> import torch
    >>> points = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    >>> skew = torch.tensor([[1.0, 3.0], [0.0, 1.0]])
    >>> result = canonical_correlation(lambda x: x, points, other=lambda x: x @ skew)
    >>> round(result.summary().value, 6)
    1.0
    """
    checks.number(variance=variance)
    if not 0 < variance <= 1:
        raise ValueError(
            f"variance must be a fraction above 0 and at most 1, found {variance}: write 99% as "
            "0.99."
        )
    checks.whole(1, permuted=permuted)
    checks.seed(seed)
    checks.points(x)
    if other is None:
        return NotApplicable(what="canonical_correlation", reason=NO_OTHER)
    first, second = layered(f, x, other, other_x, layers, other_layers)
    orders = permutations(len(x), permuted, seed)
    return _all_pairs(first, second, variance, orders)


def _all_pairs(
    first: LayeredNetwork, second: LayeredNetwork, variance: float, orders: list[Tensor]
) -> CanonicalCorrelation | NotApplicable:
    sides = [[_basis(net.features(net.x, [name])[0], variance) for name in net.names]
             for net in (first, second)]  # fmt: skip
    values, weighted, baseline = (empty(*map(len, sides)) for _ in range(3))
    n = len(first.x)
    for i, left in enumerate(sides[0]):
        for j, right in enumerate(sides[1]):
            if left is None or right is None:
                continue
            weighted[i, j] = _weighted(left, right)
            if max(left.count, right.count) >= n - 1:
                continue
            values[i, j] = _correlations(left.most(), right.most()).mean()
            by_chance = [_correlations(left.most(), right.most()[order]) for order in orders]
            baseline[i, j] = torch.cat(by_chance).mean()
    if not bool(values.isfinite().any()):
        return NotApplicable(what="canonical_correlation", reason=FEW)
    return CanonicalCorrelation(
        layers=first.names,
        other_layers=second.names,
        values=values,
        weighted=weighted,
        baseline=baseline,
        examples=n,
        directions=tuple(0 if side is None else side.count for side in sides[0]),
        other_directions=tuple(0 if side is None else side.count for side in sides[1]),
    )


def _basis(features: Float64[Tensor, "n p"], variance: float) -> _Basis | None:
    """Return the directions of a layer, those of most variance first; None of a constant one."""
    moved = centred(features)
    if moved is None:
        return None
    directions, sizes, _ = torch.linalg.svd(rotated(moved), full_matrices=False)
    rank = int((sizes > RANK * sizes[0]).sum())
    shares = sizes[:rank].square().cumsum(0) / sizes[:rank].square().sum()
    count = min(rank, 1 + int((shares < variance * (1 - RANK)).sum()))
    return _Basis(features=moved, directions=directions[:, :rank], count=count)


def _correlations(x: Float64[Tensor, "n p"], y: Float64[Tensor, "n q"]) -> Float64[Tensor, " k"]:
    correlations: Tensor = torch.linalg.svdvals(x.T @ y)
    return correlations.clamp(0, 1)


def _weighted(left: _Basis, right: _Basis) -> float:
    """Return the projection-weighted mean correlation; NaN where the examples are too few."""
    if max(left.directions.shape[1], right.directions.shape[1]) >= len(left.features) - 1:
        return torch.nan
    turned, correlations, _ = torch.linalg.svd(
        left.directions.T @ right.directions, full_matrices=False
    )
    weights = (left.features.T @ (left.directions @ turned)).abs().sum(0)
    return float((weights * correlations.clamp(0, 1)).sum() / weights.sum())
