"""Procrustes distance: how far apart the layers of two networks are after the best rotation."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import NotApplicable, checks, instrument
from inscape._core.checks import Function
from inscape._core.result import Range
from inscape.similarity._layers import LayeredNetwork, Layers, layered
from inscape.similarity._orthogonal import centred, permutations, rotated
from inscape.similarity._pair import NO_OTHER, Other, perturbed
from inscape.similarity.layer_matrix import LayerMatrix, empty

CONSTANT = "the features of a layer are equal for all examples, so that they have no scale"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ProcrustesDistance(LayerMatrix):
    """The distance of each pair of layers, a metric from 0 to the square root of 2."""

    range: ClassVar[Range] = (0.0, math.sqrt(2) + 1e-12)

    @property
    def squares(self) -> Float64[Tensor, "k m"]:
        """Return the squared distances, which many papers call the Procrustes distance."""
        return self.values.square()


@instrument(
    reads="pair",
    larger="farther apart representations",
    cost="seconds",
    work=lambda n, c: 2 * n * (1 + n / 50),
    meaning="After the best rotation, the last hidden layers of both networks are {value} apart, "
    "where 1.41 is farthest.",
    cites="williams2021generalized; ding2021grounding; klabunde2025similarity",
    example=perturbed,
    by_default=False,
    least_rows=2,
)
def procrustes_distance(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    other: Other = None,
    other_x: Float[Tensor, "m *e"] | None = None,
    layers: Layers = None,
    other_layers: Layers = None,
    permuted: int = 3,
    seed: int = 0,
) -> ProcrustesDistance | NotApplicable:
    r"""Measure the orthogonal Procrustes distance of the layers of two networks.

    .. math:: \min_{Q^T Q = I} \lVert X Q - Y \rVert_F = \sqrt{2 - 2 \lVert X^T Y \rVert_*}

    where the rows of ``X`` and ``Y`` are the features of each example, centred and divided by their
    Frobenius norm, the fewer features filled up with zeros. A metric: symmetric, zero exactly up to
    a rotation, a shift and a scale, with the triangle inequality. ``squares`` is the form without
    the root, which is none. Exact for these examples, in float64; ``baseline`` is the mean over
    random permutations of the second network's examples.

    Args:
        f: The first network; of a function that is no module, only the output is compared.
        x: Examples.
        other: The second network; without one the result is "not applicable".
        other_x: The same examples as the second network takes them, where it takes another form.
        layers: Names of modules of the first network, as for ``layer_alignment``.
        other_layers: Names of modules of the second network.
        permuted: Permutations of the baseline.
        seed: Seed of the permutations.

    >>> import torch
    >>> turn = torch.tensor([[0.0, 2.0], [-2.0, 0.0]])
    >>> points = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> result = procrustes_distance(lambda x: x, points, other=lambda x: x @ turn + 1)
    >>> round(result.summary().value, 12)
    0.0
    """
    checks.whole(1, permuted=permuted)
    checks.seed(seed)
    checks.points(x)
    if other is None:
        return NotApplicable(what="procrustes_distance", reason=NO_OTHER)
    if len(x) < 2:
        return NotApplicable(what="procrustes_distance", reason="one example has no direction")
    first, second = layered(f, x, other, other_x, layers, other_layers)
    return _all_pairs(first, second, permutations(len(x), permuted, seed))


def _all_pairs(
    first: LayeredNetwork, second: LayeredNetwork, orders: list[Tensor]
) -> ProcrustesDistance | NotApplicable:
    sides = [[_normalised(net.features(net.x, [name])[0]) for name in net.names]
             for net in (first, second)]  # fmt: skip
    values, baseline = (empty(*map(len, sides)) for _ in range(2))
    for i, left in enumerate(sides[0]):
        for j, right in enumerate(sides[1]):
            if left is None or right is None:
                continue
            values[i, j] = distance(left, right)
            by_chance = [_from_products(left, right[order]) for order in orders]
            baseline[i, j] = sum(by_chance) / len(by_chance)
    if not bool(values.isfinite().any()):
        return NotApplicable(what="procrustes_distance", reason=CONSTANT)
    return ProcrustesDistance(
        layers=first.names,
        other_layers=second.names,
        values=values,
        baseline=baseline,
        examples=len(first.x),
    )


def _normalised(features: Float64[Tensor, "n p"]) -> Float64[Tensor, "n q"] | None:
    moved = centred(features)
    return None if moved is None else rotated(moved / moved.norm())


def distance(x: Float64[Tensor, "n p"], y: Float64[Tensor, "n q"]) -> float:
    """Return the distance after the best rotation, of features of norm one.

    From the residual itself: near zero, the nuclear norm would lose half of the digits.
    """
    left, _, right = torch.linalg.svd(x.T @ y, full_matrices=False)
    x_turned, y_turned = x @ left, y @ right.T
    squares = (x_turned - y_turned).square().sum()
    for side, turned, basis in ((x, x_turned, left), (y, y_turned, right.T)):
        if basis.shape[0] > basis.shape[1]:  # what the smaller side has no room for
            squares = squares + (side - turned @ basis.T).square().sum()
    return min(math.sqrt(2), math.sqrt(float(squares)))


def _from_products(x: Float64[Tensor, "n p"], y: Float64[Tensor, "n q"]) -> float:
    nuclear = float(torch.linalg.svdvals(x.T @ y).sum())
    return math.sqrt(max(0.0, 2 - 2 * nuclear))
