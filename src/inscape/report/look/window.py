"""The window of a look: the part of a plane that its slice and its linear regions show."""

import torch
from jaxtyping import Float, Float64, Shaped
from torch import Tensor

from inscape._core import NotApplicable
from inscape.piecewise.planes.frame import Frame, through, whole

#: Room around the examples and around all data, as a fraction of their extent.
MARGIN, BORDER = 0.35, 0.08
#: The shorter side of the rectangle is at least this fraction of the longer.
SLIMMEST = 0.7
#: Examples that are searched for three that span a plane, or that give the window, at most.
SEARCHED = 2000


def anchor_rows(x: Float[Tensor, "n *d"], y: Tensor | None, *, classes: bool) -> list[int]:
    """Return three examples that span a plane, of three classes if there are that many.

    The first example of each class in the order in which classes appear, then the next ones;
    examples on one line with those before are skipped.
    """
    order = list(range(min(len(x), SEARCHED)))
    if classes and y is not None:
        firsts: dict[float, int] = {}
        for row, label in enumerate(y[: len(order)].flatten().tolist()):
            firsts.setdefault(label, row)
        order = list(dict.fromkeys([*firsts.values(), *order]))
    chosen: list[int] = []
    for row in order:
        flat = x[[*chosen, row]].flatten(1).double()
        axes = flat[1:] - flat[0]
        lengths = axes.norm(dim=1)
        if not bool((lengths > 0).all()):
            continue
        if len(chosen) == 2 and float((axes / lengths[:, None]).prod(0).sum().abs()) > 1 - 1e-6:
            continue
        chosen.append(row)
        if len(chosen) == 3:
            return chosen
    return chosen


def slice_window(
    x: Shaped[Tensor, "n *d"], y: Tensor | None, *, classes: bool
) -> tuple[Frame, list[int], Float64[Tensor, "2 2"]] | NotApplicable:
    """Return the plane of a slice, the examples that span it, and its lower and upper corner."""
    if not x.is_floating_point() or x[0].numel() < 2:
        reason = "a plane needs at least two inputs that are real numbers"
        return NotApplicable(what="slice", reason=reason)
    if x[0].numel() == 2:
        frame, rows = whole(tuple(x.shape[1:])), list[int]()
        at, room = frame.of(x[:SEARCHED].cpu()), BORDER
    else:
        rows = anchor_rows(x, y, classes=classes)
        if len(rows) < 3:
            reason = "the data have no three examples that span a plane"
            return NotApplicable(what="slice", reason=reason)
        frame = through(x[rows].cpu())
        at, room = frame.of(x[rows].cpu()), MARGIN
    low, high = at.amin(0), at.amax(0)
    extent = high - low
    if not bool((extent > 0).all()):
        return NotApplicable(what="slice", reason="the data lie on one line")
    side = extent + 2 * room * (extent if not rows else extent.max())
    if rows:
        side = side.clamp(min=SLIMMEST * float(side.max()))
    middle = (low + high) / 2
    return frame, rows, torch.stack([middle - side / 2, middle + side / 2])


def rectangle(window: Float64[Tensor, "2 2"]) -> Float64[Tensor, "4 2"]:
    """Return the four corners of a window, counter-clockwise.

    >>> rectangle(torch.tensor([[0.0, 1.0], [2.0, 3.0]], dtype=torch.float64)).tolist()
    [[0.0, 1.0], [2.0, 1.0], [2.0, 3.0], [0.0, 3.0]]
    """
    (a, b), (c, d) = window.tolist()
    return torch.tensor([[a, b], [c, b], [c, d], [a, d]], dtype=torch.float64)
