"""Coordinates in which one hidden layer is trained: pixels, or a basis of the training images.

Gradient steps on a loss change the first layer only inside the span of the training images. So the
component of each unit's weights outside of it stays constant, and the training has as many
coordinates as the span has dimensions; the network is the same up to rounding. Where a penalty
only scales each unit (the weights product), one more coordinate is the norm of that component.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Coordinates:
    """Training points and first-layer weights in the coordinates of the loop.

    Attributes:
        x: One row per point; the last column is 1, for the bias.
        w: One column per unit; the last row is its bias.
        span: Basis of the images, one row each, or None for pixels.
        rest: Component of the initial weights outside the span.
        stretch: Whether the last row but one of ``w`` is the norm of that component.
    """

    x: Tensor
    w: Tensor
    span: Tensor | None
    rest: Tensor | None
    stretch: bool

    def weights(self) -> tuple[Tensor, Tensor]:
        """Return weights (one row per unit) and biases in pixels, as float64."""
        w = self.w.double()
        bias = w[-1]
        if self.span is None or self.rest is None:
            return w[:-1].T, bias
        inside = w[: len(self.span)].T @ self.span
        if not self.stretch:
            return inside + self.rest, bias
        length = self.rest.norm(dim=1)
        factor = torch.where(length > 0, w[-2] / length, 1.0)
        return inside + factor[:, None] * self.rest, bias


def basis(x: Tensor) -> Tensor:
    """Return orthonormal rows that span the rows of ``x``, in float64."""
    _, sizes, directions = torch.linalg.svd(x.double(), full_matrices=False)
    least = sizes[0] * max(x.shape) * torch.finfo(torch.float64).eps
    span: Tensor = directions[sizes > least]
    return span.contiguous()


def coordinates(
    x: Tensor, weight: Tensor, bias: Tensor, *, in_span: bool, stretch: bool, by_unit: bool
) -> Coordinates:
    """Return points and first-layer weights in the coordinates of a training.

    Args:
        x: Training points, one row each.
        weight: First weights, one row per unit.
        bias: First biases.
        in_span: Whether to use a basis of the span of the points instead of pixels.
        stretch: Whether the weights outside of the span are scaled.
        by_unit: Whether the weights of each unit are contiguous in memory.
    """
    points, w = x.double(), weight.double()
    span = rest = None
    rows = [w.T]
    if in_span:
        span = basis(points)
        rest = w - w @ span.T @ span
        points = points @ span.T
        rows = [span @ w.T]
        if stretch:
            points = torch.cat([points, points.new_zeros(len(points), 1)], 1)
            rows.append(rest.norm(dim=1)[None])
    constant = points.new_ones(len(points), 1)
    first = torch.cat([*rows, bias.double()[None]]).to(x.dtype)
    return Coordinates(
        x=torch.cat([points, constant], 1).to(x.dtype).contiguous(),
        w=first.T.contiguous().T if by_unit else first.contiguous(),
        span=span,
        rest=rest,
        stretch=in_span and stretch,
    )
