"""Map distance: how far apart the local linear maps of two networks are."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument, mean_summary
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.jacobians import MEMORY
from inscape.similarity._pair import NO_OTHER, Other, paired_maps, perturbed


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MapDistance(Result):
    """Squared distance of the scaled local maps at each example, averaged over coefficients.

    ``scales`` are the numbers by which the maps of both networks were divided.
    """

    range: ClassVar[Range] = NONNEGATIVE

    distances: Float64[Tensor, " n"]
    scales: Float64[Tensor, " 2"]
    scale: str

    def per_sample(self) -> Float64[Tensor, " n"]:
        """Return the distance at each example."""
        return self.distances

    def rows(self) -> Iterator[Row]:
        """Yield one row for each example."""
        for k, distance in enumerate(self.distances.tolist()):
            yield {"example": k, "distance": distance}

    def summary(self) -> Summary:
        """Return the mean over the examples."""
        first, second = self.scales.tolist()
        basis = f"{len(self.distances)} examples, scales {first:.3g} and {second:.3g}"
        return mean_summary(self.distances, kind="estimate", basis=basis)


@instrument(
    reads="pair",
    larger="less alike local maps",
    cost="seconds",
    work=lambda n, c: 2 * n * (2 + 2 * c),
    meaning="The coefficients of both networks' local maps, scaled to a largest one of 1, have a "
    "mean squared distance of {value}.",
    cites="sattelberg2026linearity, Eqs. (7.5)-(7.6) (S20)",
    example=perturbed,
    by_default=False,
)
def map_distance(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    other: Other = None,
    other_x: Float[Tensor, "m *e"] | None = None,
    scale: Literal["signed", "absolute"] = "signed",
    memory: int = MEMORY,
) -> MapDistance | NotApplicable:
    r"""Measure the mean squared distance of the scaled local maps of two networks.

    .. math:: \frac{1}{c \, n \, (d + 1)} \sum_{j=1}^{c}
              \left\Vert \frac{C_j}{a} - \frac{C'_j}{a'} \right\Vert_F^2

    where row ``i`` of :math:`C_j` holds gradient and intercept of output ``j`` at example ``i`` and
    :math:`a` is the largest of all coefficients of a network: the largest signed one as printed, or
    the largest in absolute value (S20). Exact for these examples, in float64; the mean is an
    estimate with its interval, for the given scales. Costs a forward and ``c`` backward passes of
    both networks.

    Args:
        f: The first network.
        x: Examples.
        other: The second network; without one the result is "not applicable".
        other_x: The same examples as the second network takes them, where it takes another form.
        scale: Which coefficient is the largest: ``"signed"`` or ``"absolute"``.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> far = map_distance(lambda x: x, torch.ones(1, 1), other=lambda x: 2 - x, scale="absolute")
    >>> far.distances.tolist()  # maps (1, 0) and (-1, 2), which is divided by 2
    [1.625]
    """
    checks.one_of(("signed", "absolute"), scale=scale)
    checks.whole(1, memory=memory)
    checks.points(x)
    if other is None:
        return NotApplicable(what="map_distance", reason=NO_OTHER)
    pair = paired_maps(f, x, other, other_x)
    products = []  # of each example: of the first with itself, with the second, the second's own
    largest = torch.full((2,), -torch.inf, dtype=torch.float64)
    size = 1
    for both in pair.maps(pair.rows(memory)):
        first, second = (maps.flatten(1) for maps in both)
        products.append(torch.stack([(first * first).sum(1), (first * second).sum(1),
                                     (second * second).sum(1)], dim=1))  # fmt: skip
        sides = [side.abs() if scale == "absolute" else side for side in (first, second)]
        largest = torch.maximum(largest, torch.stack([side.max() for side in sides]).cpu())
        size = first.shape[1]
    if not bool((largest > 0).all()):
        which = "first" if largest[0] <= 0 else "second"
        reason = f"no coefficient of the {which} network is positive, so nothing sets its scale"
        return NotApplicable(what="map_distance", reason=f"{reason}: try scale='absolute'")
    own, mixed, others = torch.cat(products).cpu().unbind(1)
    a, b = largest
    distances = (own / a**2 - 2 * mixed / (a * b) + others / b**2).clamp(min=0) / size
    return MapDistance(distances=distances, scales=largest, scale=scale)
