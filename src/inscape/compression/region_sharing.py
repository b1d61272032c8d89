"""Region sharing: how many of the data points lie in one linear region with another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int64
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
from inscape._core.anytime import anytime, stoppable
from inscape._core.checks import Function
from inscape._core.result import PROPORTION, Range
from inscape._core.sampling import FIRST, Draw
from inscape.compression._fingerprints import (
    Fingerprints,
    distinct_maps,
    in_order_met,
    map_fingerprints,
    pattern_hashes,
)
from inscape.functional.jacobians import MEMORY, probe
from inscape.functional.precision import in_precision
from inscape.piecewise.graph.network import Piecewise, piecewise
from inscape.runtime.progress import progress

#: By how much the points must have grown before regions are counted anew: each count takes all.
MORE = 1.125


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RegionSharing(Result):
    """Which points have one activation pattern, and which one affine map.

    ``regions`` and ``maps`` number them in the order of the points. Points of one region have one
    map, but two regions may have the same.
    """

    range: ClassVar[Range] = PROPORTION

    regions: Int64[Tensor, " n"]
    maps: Int64[Tensor, " n"]
    units: int
    converted: str | None
    seed: int
    drawn_from: int

    @property
    def shared(self) -> Bool[Tensor, " n"]:
        """Tell which points share their region with another of these points."""
        return torch.bincount(self.regions)[self.regions] > 1

    @property
    def distinct(self) -> tuple[int, int]:
        """Return the number of distinct regions, and of distinct affine maps."""
        return int(self.regions.max()) + 1, int(self.maps.max()) + 1

    def rows(self) -> Iterator[Row]:
        """Yield one row for each point."""
        sizes = torch.bincount(self.regions)[self.regions].tolist()
        columns = zip(self.regions.tolist(), self.maps.tolist(), sizes, strict=True)
        for k, (region, number, size) in enumerate(columns):
            yield {"point": k, "region": region, "map": number, "points_in_region": size}

    def summary(self) -> Summary:
        """Return the fraction of the points that share their region with another one."""
        regions, maps = self.distinct
        basis = f"{len(self.regions)} points in {regions} regions with {maps} maps"
        return Summary(value=float(self.shared.double().mean()), kind="exact", basis=basis)


@instrument(
    reads="function",
    larger="more points in one linear region with others",
    cost="seconds",
    work=lambda n, c: min(n, 10_000) * 6,
    samples="points",
    setup=1.0,
    meaning="Of the data points that were used, the fraction {value} lies in one linear region "
    "with another one.",
    cites="sattelberg2026linearity, section 7.2",
)
@anytime
def region_sharing(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    points: int = 10_000,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[RegionSharing | NotApplicable]:
    r"""Count the points that share a linear region, and the distinct affine maps.

    .. math:: \frac{1}{n} \, | \{ i : \exists \, j \neq i, \; \pi(x_i) = \pi(x_j) \} |

    Exact for these points, in float64: activation patterns :math:`\pi` are compared by a hash of
    128 bits, so that no two are mistaken for one in practice (a probability of 1e-28 for 100,000
    points). The maps of regions are compared by random linear functions of their coefficients,
    equal up to rounding for equal maps. The fraction grows with the number of points: compare it at
    equal numbers. Costs two forward passes and a backward pass.

    Args:
        f: A piecewise-linear network in eval mode.
        x: Points of the data.
        points: How many of them to use, drawn without replacement; all if there are no more.
        seed: Seed of all draws.
        memory: Bytes that the working set of a batch may take.

    >>> import torch
    >>> points = torch.tensor([[-2.0], [-1.0], [1.0]])
    >>> result = region_sharing(torch.relu, points)
    >>> result.regions.tolist(), result.maps.tolist(), round(result.summary().value, 3)
    ([0, 0, 1], [0, 0, 1], 0.667)
    """
    checks.whole(1, points=points, memory=memory)
    f, x, converted = in_precision(f, x, "float64")
    probed = probe(f, x)
    try:
        net = piecewise(f, x)
    except UnsupportedModelError as error:
        yield NotApplicable(what="region_sharing", reason=str(error))
        return
    draw = Draw(len(x), points, seed=seed)
    hashes: list[bytes] = []
    fingerprints: list[Fingerprints] = []
    result: RegionSharing
    counted = 0
    with progress(len(draw), label="linear regions") as bar:
        for part in draw.growing(FIRST, probed.rows(memory, gradients=1)):
            hashes += pattern_hashes(net, x[part])
            fingerprints.append(map_fingerprints(net, x[part], seed))
            checks.finite(fingerprints[-1].values.sum(1), "points")
            bar.advance(len(x[part]))
            if not stoppable() and len(hashes) < len(draw):
                continue
            if len(hashes) == len(draw) or len(hashes) > MORE * counted:
                counted = len(hashes)
                numbers = _numbers(draw, hashes, Fingerprints.joined(fingerprints))
                result = RegionSharing(
                    regions=numbers[0], maps=numbers[1], units=_units(net, x),
                    converted=converted, seed=seed, drawn_from=len(x),
                )  # fmt: skip
            yield result


def _numbers(
    draw: Draw, hashes: list[bytes], fingerprints: Fingerprints
) -> tuple[Int64[Tensor, " n"], Int64[Tensor, " n"]]:
    """Return the numbers of the regions and of the maps, in the order of the points."""
    regions = in_order_met(hashes)
    maps = distinct_maps(fingerprints, regions)
    return in_order_met(draw.in_order(regions).tolist()), in_order_met(draw.in_order(maps).tolist())


def _units(net: Piecewise, x: Tensor) -> int:
    return sum(len(pattern[0]) for pattern in net.patterns(x[:1]))
