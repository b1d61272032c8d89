"""A plane in the input space: an origin and two directions."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

#: Directions that are nearer to parallel than this fraction of their length span no plane.
FLAT = 1e-10


@dataclass(frozen=True, eq=False, kw_only=True)
class Frame:
    """The plane origin + u * axes[0] + v * axes[1] of an input space of any shape, in float64."""

    origin: Float[Tensor, "*d"]
    axes: Float[Tensor, "2 *_"]

    def __post_init__(self) -> None:
        """Refuse axes that span no plane; keep detached copies in float64."""
        object.__setattr__(self, "origin", self.origin.detach().double())
        object.__setattr__(self, "axes", self.axes.detach().double())
        for name, tensor in (("origin", self.origin), ("axes", self.axes)):
            if not bool(tensor.isfinite().all()):
                raise ValueError(f"{name} of a plane must be finite, found NaN or Inf: repair it.")
        if len(self.axes) != 2:
            raise ValueError(
                f"a plane must have two axes, found {len(self.axes)}: pass two directions."
            )
        if self.axes.shape[1:] != self.origin.shape:
            raise ValueError(
                "the axes of a plane must be two directions of the shape of its origin, found "
                f"shapes {tuple(self.axes.shape)} and {tuple(self.origin.shape)}: reshape them."
            )
        gram, size = self.gram, self.axes.flatten(1).square().sum(1).prod()
        if not float(gram.det()) > FLAT**2 * float(size):
            raise ValueError(
                "the axes of a plane must point in two different directions, found parallel or "
                "zero ones: for a plane through three points, these must not lie on one line."
            )

    @property
    def gram(self) -> Float64[Tensor, "2 2"]:
        """Return the Gram matrix of the axes."""
        flat = self.axes.flatten(1)
        return flat @ flat.T

    @property
    def area(self) -> float:
        """Return the area in the input space of one unit square of the plane."""
        return float(self.gram.det().sqrt())

    def at(self, uv: Float64[Tensor, "n 2"]) -> Float64[Tensor, "n *d"]:
        """Return the inputs at given coordinates (u, v) of the plane."""
        moved = uv @ self.axes.flatten(1)
        return self.origin + moved.reshape(len(uv), *self.origin.shape)

    def of(self, x: Float[Tensor, "n *d"]) -> Float64[Tensor, "n 2"]:
        """Return the coordinates (u, v) of the orthogonal projection of inputs onto the plane."""
        rest = (x.double() - self.origin).flatten(1) @ self.axes.flatten(1).T
        at: Tensor = torch.linalg.solve(self.gram, rest.T)
        return at.T


def whole(shape: tuple[int, ...]) -> Frame:
    """Return a two-dimensional input space as a plane."""
    axes = torch.eye(2, dtype=torch.float64).reshape(2, *shape)
    return Frame(origin=torch.zeros(shape, dtype=torch.float64), axes=axes)


def through(points: Float[Tensor, "m *d"]) -> Frame:
    r"""Return the plane through three points, with orthonormal axes and its origin at the first.

    .. math:: u_1 = B - A, \quad
              u_2 = C - A - \frac{(C - A) \cdot u_1}{\lVert u_1 \rVert^2} u_1

    Sattelberg's Eq. (6.2).
    """
    if len(points) != 3:
        raise ValueError(
            f"a plane goes through three points, found {len(points)}: pass three inputs."
        )
    a, b, c = points.double().flatten(1)
    to_b, to_c = b - a, c - a
    if not float(to_b.norm()) > 0:
        raise ValueError(_COLLINEAR)
    first = to_b / to_b.norm()
    rest = to_c - (to_c @ first) * first
    rest = rest - (rest @ first) * first  # a second time, against rounding
    if not float(rest.norm()) > FLAT * max(float(to_c.norm()), float(to_b.norm())):
        raise ValueError(_COLLINEAR)
    axes = torch.stack([first, rest / rest.norm()])
    return Frame(origin=points[0].double(), axes=axes.reshape(2, *points.shape[1:]))


_COLLINEAR = (
    "the three points of a plane must not lie on one line, found three that do: "
    "choose another third point."
)
