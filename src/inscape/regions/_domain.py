"""The plane that is cut, and the convex polygon of it: given and checked, or around points."""

import math

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape.piecewise import Frame, through, whole

#: Margin around the data or the three points, as a fraction of their extent, without a domain.
MARGIN = 0.1

#: A domain is wider than the first and narrower than the second, or its area leaves float64.
NARROWEST, WIDEST = 1e-150, 1e150

_NUMBERS = {2: "two", 3: "three"}


def plane_of(x: Float[Tensor, "n *d"], plane: Frame | None) -> Frame:
    """Return the plane that is given, after checks; that of two inputs; or through three points."""
    if plane is None:
        return _plane_through(x)
    if plane.origin.shape != x.shape[1:]:
        raise ValueError(
            f"the plane must lie in the input space of shape {tuple(x.shape[1:])}, found one in "
            f"{tuple(plane.origin.shape)}: reshape its origin and axes."
        )
    return plane


def _plane_through(x: Float[Tensor, "n *d"]) -> Frame:
    if x[0].numel() == 2:
        return whole(tuple(x.shape[1:]))
    if len(x) < 3:
        raise ValueError(
            f"x must hold three points that span a plane, found {len(x)}: pass three, or a plane."
        )
    return through(x[:3])


def corners_of(domain: object, *, least: int = 3) -> Float64[Tensor, "k 2"]:
    """Return the corners of a domain in float64, after checks."""
    if not isinstance(domain, Tensor):
        raise TypeError(
            f"domain must be a torch.Tensor, found {type(domain).__name__}: convert it with "
            "torch.tensor(domain, dtype=torch.float64)."
        )
    if domain.ndim != 2 or domain.shape[1] != 2 or len(domain) < least:
        raise ValueError(
            f"domain must hold at least {_NUMBERS[least]} corners (u, v), found shape "
            f"{tuple(domain.shape)}: pass e.g. [[-1, -1], [1, -1], [1, 1], [-1, 1]]."
        )
    corners = domain.detach().double()
    if not bool(corners.isfinite().all()):
        raise ValueError("domain must be finite, found NaN or Inf: repair its corners.")
    return corners


def polygon_of(
    domain: Float[Tensor, "k 2"] | None, frame: Frame, x: Float[Tensor, "n *d"], *, given: bool
) -> Float64[Tensor, "sides 2"]:
    """Return the corners of the domain counter-clockwise, after checks, or a box around points."""
    if domain is None:
        points = x if x[0].numel() == 2 or given else x[:3]
        return _box(frame.of(points))
    return _convex(corners_of(domain))


def _box(at: Float64[Tensor, "n 2"]) -> Float64[Tensor, "4 2"]:
    low, high = at.amin(0), at.amax(0)
    if not bool((high > low).all()):
        raise ValueError(
            "the points must spread in both directions of the plane to give a domain, found all "
            "on one line: pass domain."
        )
    _extent(torch.stack([low, high]))
    (a, b), (c, d) = (low - MARGIN * (high - low)).tolist(), (high + MARGIN * (high - low)).tolist()
    return torch.tensor([[a, b], [c, b], [c, d], [a, d]], dtype=torch.float64)


def _convex(corners: Float64[Tensor, "k 2"]) -> Float64[Tensor, "sides 2"]:
    """Return the corners counter-clockwise; refuse a polygon without area or with a dent.

    A corner that is there twice in a row, as the first of a closed ring is, counts once.
    """
    corners = corners[(corners != corners.roll(1, 0)).any(1)]
    wide = _extent(corners)
    scaled = (corners - corners[:1]) / wide
    if float(turns(scaled).sum()) < 0:
        corners, scaled = corners.flip(0), scaled.flip(0)
    step = scaled.roll(-1, 0) - scaled
    turn = step[:, 0] * step.roll(-1, 0)[:, 1] - step[:, 1] * step.roll(-1, 0)[:, 0]
    if len(corners) < 3 or not float(turns(scaled - scaled[:1]).sum()) > 1e-12:
        raise ValueError(
            "domain must have an area, found corners on one line: pass corners that go around."
        )
    along = (step * step.roll(-1, 0)).sum(1)
    around = float(torch.atan2(turn, along).sum()) / (2 * math.pi)
    if float(turn.min()) < -1e-12 or abs(around - 1) > 1e-6:
        raise ValueError(
            "domain must be convex, found a polygon with a dent or that crosses itself: "
            "cut it into convex parts and add them up."
        )
    return corners


def _extent(corners: Float64[Tensor, "k 2"]) -> Float64[Tensor, " 2"]:
    """Return width and height of a polygon, 1 in place of 0; refuse sizes that leave float64."""
    if not len(corners):
        return torch.ones(2, dtype=torch.float64)
    wide = corners.amax(0) - corners.amin(0)
    if not bool((wide < WIDEST).all()):
        raise ValueError(
            f"domain must be less than {WIDEST:g} wide and high, found {float(wide.max()):.3g}: "
            "its area would overflow, pass a smaller one."
        )
    if bool(((wide > 0) & (wide < NARROWEST)).any()):
        raise ValueError(
            f"domain must be more than {NARROWEST:g} wide and high, found {float(wide.min()):.3g}: "
            "its area would underflow, pass a larger one."
        )
    return torch.where(wide > 0, wide, 1.0)


def turns(corners: Float64[Tensor, "k 2"]) -> Float64[Tensor, " k"]:
    """Return twice the area of the triangle of each side with the origin."""
    after = corners.roll(-1, 0)
    return corners[:, 0] * after[:, 1] - corners[:, 1] * after[:, 0]


def window(corners: Float64[Tensor, "k 2"]) -> tuple[Float64[Tensor, " 2"], Float64[Tensor, " 2"]]:
    """Return the middle of a polygon, and half of how wide and how high it is."""
    low, high = corners.amin(0), corners.amax(0)
    return (low + high) / 2, (high - low) / 2
