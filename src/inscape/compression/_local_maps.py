"""Local affine maps of one output, or of all together: stored, or projected where too large."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Float32, Float64, Int64
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from inscape._core import checks
from inscape._core.anytime import finished
from inscape._core.checks import Function
from inscape._core.sampling import generator
from inscape.functional.jacobians import stacked, vjps
from inscape.runtime.progress import progress

#: Numbers that a map is projected to where maps do not fit.
PROJECTED = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class MapReader:
    """Rows of coefficients (gradient and intercept) of some outputs at points, in batches."""

    f: Function
    outputs: tuple[int, ...]
    rows: int

    def width(self, x: Tensor) -> int:
        """Return how many coefficients the maps of a point have."""
        return len(self.outputs) * (x[0].numel() + 1)

    def batches(self, x: Float64[Tensor, "n *d"]) -> Iterator[tuple[slice, Float64[Tensor, "m w"]]]:
        """Yield the coefficients of the points, batch by batch."""
        with progress(len(x), label="local maps") as bar:
            for first in range(0, len(x), self.rows):
                at = slice(first, min(first + self.rows, len(x)))
                yield at, self._coefficients(x[at])
                bar.advance(at.stop - first)

    def _coefficients(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            y = checks.call(self.f, leaf).reshape(len(x), -1)
            units = torch.eye(y.shape[1], dtype=y.dtype)[list(self.outputs)]
            vectors = units.expand(len(x), *units.shape)
            products = finished(vjps(y, get_gradient_edge(leaf), vectors=vectors))
            slopes = stacked(products, (len(x), 1, x[0].numel()), leaf).detach()
        values = y.detach()[:, list(self.outputs)]
        constants = values - torch.einsum("ncd,nd->nc", slopes, x.flatten(1))
        maps = torch.cat([slopes, constants[:, :, None]], 2).flatten(1)
        checks.finite(maps.sum(1), "points")
        return maps

    def evaluated(
        self, maps: Float64[Tensor, "n w"], x: Float64[Tensor, "n *d"]
    ) -> Float64[Tensor, "n c"]:
        """Return the values of maps, one for each point, at these points."""
        by_output = maps.reshape(len(maps), len(self.outputs), -1)
        return torch.einsum("ncd,nd->nc", by_output[:, :, :-1], x.flatten(1)) + by_output[:, :, -1]


@dataclass(frozen=True, eq=False, kw_only=True)
class MapFeatures:
    """Coefficients of maps in float32, over ``scale``, projected at random if they do not fit.

    A projection keeps squared distances up to a factor whose standard error is ``distortion``.
    """

    training: Float32[Tensor, "n p"]
    test: Float32[Tensor, "m p"]
    projection: Float64[Tensor, "w p"] | None
    scale: float

    @property
    def distortion(self) -> float:
        """Return the standard error of a squared distance, as a fraction of it; 0 if exact."""
        return 0.0 if self.projection is None else sqrt(2 / self.projection.shape[1])


def map_features(
    reader: MapReader, x: Float64[Tensor, "n *d"], test: Float64[Tensor, "m *d"], *, room: int,
    seed: int,
) -> MapFeatures:  # fmt: skip
    """Return the maps that are clustered and those that look for their centre, as they fit."""
    width, projection = reader.width(x), None
    if 4 * (len(x) + len(test)) * width > room and width > PROJECTED:
        draw = generator(seed)
        projection = torch.randn(width, PROJECTED, generator=draw, dtype=torch.float64)
        projection /= sqrt(PROJECTED)
    scale = 0.0
    for _, maps in reader.batches(x[: reader.rows]):
        scale = max(scale, float(maps.abs().max()))
    parts = []
    for points in (x, test):
        features = torch.empty(len(points), PROJECTED if projection is not None else width)
        for at, maps in reader.batches(points):
            scaled = maps / (scale or 1.0)
            features[at] = (scaled if projection is None else scaled @ projection).float()
        checks.finite(features.sum(1), "points")
        parts.append(features)
    return MapFeatures(training=parts[0], test=parts[1], projection=projection, scale=scale or 1.0)


def mean_maps(
    reader: MapReader, x: Float64[Tensor, "n *d"], labels: Sequence[Int64[Tensor, " n"]]
) -> list[Float64[Tensor, "_ w"]]:
    """Return the mean map of each cluster of points, for several clusterings, by one more pass."""
    counts = [torch.bincount(own) for own in labels]
    sums = [torch.zeros(len(c), reader.width(x), dtype=torch.float64) for c in counts]
    for at, maps in reader.batches(x):
        for total, own in zip(sums, labels, strict=True):
            total.index_add_(0, own[at], maps)
    return [total / count[:, None] for total, count in zip(sums, counts, strict=True)]
