"""Outputs of a network on a plane of its input space, as arrays that a figure can draw."""

from dataclasses import dataclass

from jaxtyping import Float, Float32, Float64, Int64
from torch import Tensor

from inscape.piecewise.planes.frame import Frame


@dataclass(frozen=True, eq=False, kw_only=True)
class Anchor:
    """An example that the plane goes through: its letter, row, place, label and answer."""

    letter: str
    row: int
    u: float
    v: float
    label: str
    answer: str
    confidence: float | None
    input: Float[Tensor, "*d"]


@dataclass(frozen=True, eq=False, kw_only=True)
class SlicePicture:
    """Answers of a network on a grid over a rectangle of a plane, and the data on that plane.

    Attributes:
        frame: The plane.
        low: The lower corner (u, v) of the rectangle.
        high: The upper corner (u, v) of the rectangle.
        scores: Outputs on the grid, rows along v: of a classifier those of the classes that win
            somewhere; otherwise the one output that varies most.
        names: What each layer of ``scores`` is called.
        others: The largest output of any further class, or None if no further class wins.
        confidence: Probability of the answer on the grid, or None without classes.
        classes: Whether the layers of ``scores`` compete.
        labelled: Whether the classes are those of labels; otherwise only the largest output counts.
        anchors: The examples that span the plane; none where it is the whole input space.
        places: Where further examples lie, projected on the plane.
        winners: The layer of ``scores`` that each of these examples is labelled with, or -1.
        distance: No further example is farther from the plane than this; 0 where all lie on it.
        searched: Of how many examples these are the ones near the plane.
        rows: How many inputs the network was evaluated at.
    """

    frame: Frame
    low: tuple[float, float]
    high: tuple[float, float]
    scores: Float32[Tensor, "h w k"]
    names: tuple[str, ...]
    others: Float32[Tensor, "h w"] | None
    confidence: Float32[Tensor, "h w"] | None
    classes: bool
    labelled: bool
    anchors: tuple[Anchor, ...]
    places: Float64[Tensor, "m 2"]
    winners: Int64[Tensor, " m"]
    distance: float
    searched: int
    rows: int

    @property
    def whole(self) -> bool:
        """Tell whether the plane is the input space itself."""
        return not self.anchors
