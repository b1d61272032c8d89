"""Mutual neighbours: how many nearest neighbours of an example two networks' layers share."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import NotApplicable, Summary, checks, instrument, mean_summary
from inscape._core.checks import Function
from inscape._core.result import PROPORTION, Range
from inscape.functional.jacobians import MEMORY
from inscape.similarity._kernel_blocks import squared_distances
from inscape.similarity._layers import LayeredNetwork, Layers, layered
from inscape.similarity._pair import NO_OTHER, Other, perturbed
from inscape.similarity.layer_matrix import LayerMatrix, empty

#: Arrays as large as the distances that are there while they are sorted.
COPIES = 5


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MutualNeighbours(LayerMatrix):
    """Fraction of shared nearest neighbours for each pair of layers.

    ``shared`` is that of each example in the layers of the summary; ``baseline`` is exact.
    """

    range: ClassVar[Range] = PROPORTION
    nonfinite: ClassVar = {}

    shared: Float64[Tensor, " n"]
    count: int

    def per_sample(self) -> Float64[Tensor, " n"]:
        """Return the fraction at each example, in the layers of the summary."""
        return self.shared

    def summary(self) -> Summary:
        """Return the mean over the examples, in the last hidden layers."""
        basis = f"{self.basis}; {self.count} neighbours"
        mean = mean_summary(self.shared, kind="estimate", basis=basis)
        return mean if mean.high is None else replace(mean, high=min(1.0, mean.high))


@instrument(
    reads="pair",
    larger="more alike neighbourhoods",
    cost="seconds",
    work=lambda n, c: 2 * n * (1 + n / 100),
    meaning="In the last hidden layers of both networks, the fraction {value} of an example's "
    "nearest neighbours is the same.",
    cites="huh2024platonic; klabunde2025similarity",
    example=lambda model, x, y: {**perturbed(model, x, y), "count": max(1, min(10, len(x) - 1))},
    by_default=False,
    least_rows=2,
)
def mutual_neighbours(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    other: Other = None,
    other_x: Float[Tensor, "m *e"] | None = None,
    layers: Layers = None,
    other_layers: Layers = None,
    count: int = 10,
    metric: Literal["euclidean", "cosine"] = "euclidean",
    memory: int = MEMORY,
) -> MutualNeighbours | NotApplicable:
    r"""Measure how many nearest neighbours of an example the layers of two networks share.

    .. math:: \frac{1}{n k} \sum_i | N_k(x_i) \cap N_k(y_i) |

    where :math:`N_k` are the ``k`` other examples with the nearest features; of equally near ones
    the first. The mean over the examples is an estimate with its interval; the baseline is exact:
    :math:`k / (n - 1)` for permuted examples. Invariant to orthogonal transforms and the scale of
    either side's features, and to shifts (Euclidean) or to the lengths of feature vectors (cosine).

    Args:
        f: The first network; of a function that is no module, only the output is compared.
        x: Examples.
        other: The second network; without one the result is "not applicable".
        other_x: The same examples as the second network takes them, where it takes another form.
        layers: Names of modules of the first network, as for ``layer_alignment``.
        other_layers: Names of modules of the second network.
        count: Neighbours of each example, ``k``.
        metric: Distance of features.
        memory: Bytes that distances may take.

    >>> import torch
    >>> points = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
    >>> mutual_neighbours(lambda x: x, points, other=lambda x: -x, count=1).summary().value
    1.0
    """
    checks.whole(1, count=count, memory=memory)
    checks.one_of(("euclidean", "cosine"), metric=metric)
    checks.points(x)
    if other is None:
        return NotApplicable(what="mutual_neighbours", reason=NO_OTHER)
    if len(x) <= count:
        reason = f"{count} neighbours need more than {count} examples, found {len(x)}"
        return NotApplicable(what="mutual_neighbours", reason=reason)
    first, second = layered(f, x, other, other_x, layers, other_layers)
    sides = [
        [_neighbours(net.features(net.x, [name])[0], count, metric, memory) for name in net.names]
        for net in (first, second)
    ]
    return _all_pairs(first, second, sides)


def _all_pairs(
    first: LayeredNetwork, second: LayeredNetwork, sides: list[list[Tensor]]
) -> MutualNeighbours:
    n, count = sides[0][0].shape
    values = empty(len(first.names), len(second.names))
    samples = {}
    for i, left in enumerate(sides[0]):
        for j, right in enumerate(sides[1]):
            samples[i, j] = _shared(left, right)
            values[i, j] = samples[i, j].mean()
    last, other_last = (max(0, len(net.names) - 2) for net in (first, second))
    return MutualNeighbours(
        layers=first.names,
        other_layers=second.names,
        values=values,
        baseline=torch.full_like(values, count / (n - 1)),
        shared=samples[last, other_last],
        examples=n,
        count=count,
    )


def _neighbours(
    features: Float64[Tensor, "n p"], count: int, metric: str, memory: int
) -> Int64[Tensor, "n k"]:
    """Return the nearest other examples of each example."""
    if metric == "cosine":
        moved = torch.nn.functional.normalize(features)
    else:
        moved = features - features.mean(0)
    rows = max(1, memory // (COPIES * 8 * len(features)))
    return torch.cat(list(_nearest(moved, count, rows)))


def _nearest(
    features: Float64[Tensor, "n p"], count: int, rows: int
) -> Iterator[Int64[Tensor, "m k"]]:
    for at in range(0, len(features), rows):
        distances = squared_distances(features[at : at + rows], features)
        own = torch.arange(len(distances))
        distances[own, own + at] = torch.inf
        order = distances.sort(dim=1, stable=True).indices
        yield order[:, :count].clone()  # a view would keep the whole of it


def _shared(left: Int64[Tensor, "n k"], right: Int64[Tensor, "n k"]) -> Float64[Tensor, " n"]:
    """Return the fraction of neighbours that both lists of each example have."""
    return (left[:, :, None] == right[:, None, :]).sum((1, 2)).double() / left.shape[1]
