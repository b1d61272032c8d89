"""The rectangle of a plane on which a grid lies."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape.piecewise import Frame
from inscape.regions._domain import MARGIN, corners_of, plane_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Slice:
    """The part of a plane with coordinates between ``low`` and ``high``."""

    frame: Frame
    low: Float64[Tensor, " 2"]
    high: Float64[Tensor, " 2"]

    def ticks(self, count: int) -> Float64[Tensor, "2 p"]:
        """Return equidistant values of both coordinates, ends included."""
        fraction = torch.linspace(0, 1, count, dtype=torch.float64)
        return self.low[:, None] + (self.high - self.low)[:, None] * fraction

    def row(self, u: Float64[Tensor, " p"], v: Float64[Tensor, ""]) -> Float64[Tensor, "p *d"]:
        """Return the inputs along one line of the grid."""
        return self.frame.at(torch.stack([u, v.expand(len(u))], 1))


def rectangle(
    x: Float[Tensor, "n *d"], plane: Frame | None, domain: Float[Tensor, "k 2"] | None
) -> Slice:
    """Return the rectangle around a domain of a plane, or around the points.

    The plane is that of a two-dimensional input space, or goes through the first three points,
    unless it is given.
    """
    frame = plane_of(x, plane)
    if domain is not None:
        return _around(frame, corners_of(domain, least=2), margin=0.0)
    points = x if x[0].numel() == 2 or plane is not None else x[:3]
    return _around(frame, frame.of(points), margin=MARGIN)


def _around(frame: Frame, spots: Float64[Tensor, "k 2"], *, margin: float) -> Slice:
    low, high = spots.amin(0), spots.amax(0)
    if not bool(spots.isfinite().all() and (high > low).all()):
        raise ValueError(
            "the domain must be a part of the plane with an area, found one from "
            f"{low.tolist()} to {high.tolist()}: pass corners (u, v) that spread both ways."
        )
    wider = margin * (high - low)
    return Slice(frame=frame, low=low - wider, high=high + wider)
