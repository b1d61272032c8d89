"""Planes of the input space that can be explored, each with the window that it opens with."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core import NotApplicable
from inscape.explorer.plane_directions import active_plane, adversarial_plane
from inscape.explorer.subject import ExploredSubject
from inscape.piecewise import Frame, through, whole
from inscape.report.look.window import slice_window

Kind = Literal["examples", "components", "gradient", "adversarial", "active", "random", "whole"]

#: Room around the examples, as a fraction of their extent.
MARGIN = 0.35
#: Units of two inputs that differ by more than this factor are scaled.
UNEVEN = 4.0


@dataclass(frozen=True, eq=False, kw_only=True)
class ExploredPlane:
    """A plane and its first window: its centre (u, v), and half its width and height.

    ``rows`` are the examples that it goes through; ``code`` is Python that makes its frame;
    ``adversarial`` is the place of the adversarial example that it goes through, if it does.
    """

    frame: Frame
    centre: tuple[float, float]
    half: tuple[float, float]
    rows: tuple[int, ...]
    code: str
    adversarial: tuple[float, float] | None = None

    def rebased(self, u: float, v: float) -> Frame:
        """Return the same plane with its origin at (u, v)."""
        at = torch.tensor([[u, v]], dtype=torch.float64)
        return Frame(origin=self.frame.at(at)[0], axes=self.frame.axes)


def kinds_of(subject: ExploredSubject) -> list[Kind]:
    """Return the kinds of planes that the input space has."""
    if subject.x[0].numel() == 2:
        return ["whole"]
    kinds: list[Kind] = ["examples", "components", "gradient", "active", "random"]
    if subject.is_competing:
        kinds.insert(3, "adversarial")
    return kinds


def default_rows(subject: ExploredSubject) -> tuple[int, ...]:
    """Return three examples that span a plane, of three classes if there are as many."""
    window = slice_window(subject.x, subject.y, classes=subject.task == "classes")
    if isinstance(window, NotApplicable):
        raise ValueError(
            f"the explorer needs a plane of the input space, but {window.reason}: give other data."
        )
    return tuple(window[1])


def plane_through(
    subject: ExploredSubject, kind: Kind, rows: tuple[int, ...] = (), seed: int = 0
) -> ExploredPlane:
    """Return a plane of a kind.

    Args:
        subject: What is explored.
        kind: Through three examples; along the two principal components of the data; along the
            gradient at an example, to its nearest adversarial example, in its active subspace, or
            in random directions from it; or all of a plane input space.
        rows: The examples; the first is the origin of the kinds that need only one.
        seed: Seed of random directions.
    """
    if kind not in kinds_of(subject):
        raise ValueError(
            f"the plane must be one of {', '.join(kinds_of(subject))} for inputs of shape "
            f"{tuple(subject.x.shape[1:])}, found {kind!r}: choose one of these."
        )
    if kind == "whole":
        return _input_plane(subject)
    rows = rows or default_rows(subject)
    for row in rows:
        if not 0 <= row < len(subject.x):
            raise ValueError(
                f"examples must be numbers from 0 to {len(subject.x) - 1}, found {row}: choose "
                "another."
            )
    if kind == "examples":
        return _examples(subject, rows)
    if kind == "components":
        return _components(subject)
    if kind == "adversarial":
        return _adversarial(subject, rows[0])
    if kind == "active":
        frame, code = active_plane(subject, rows[0])
        return _around(subject, frame, rows[0], code)
    return _directions(subject, kind, rows, seed)


def _window(
    frame: Frame, at: Float64[Tensor, "n 2"], rows: tuple[int, ...], code: str, margin: float
) -> ExploredPlane:
    low, high = at.amin(0), at.amax(0)
    side = float((high - low).max()) * (0.5 + margin)
    middle = ((low + high) / 2).tolist()
    return ExploredPlane(
        frame=frame, centre=(middle[0], middle[1]), half=(side, side), rows=rows, code=code
    )


def _examples(subject: ExploredSubject, rows: tuple[int, ...]) -> ExploredPlane:
    if len(rows) != 3:
        raise ValueError(f"a plane goes through three examples, found {len(rows)}: name three.")
    points = subject.x[list(rows)].detach().cpu()
    frame = through(points)
    code = f"plane = inscape.regions.through(x[{list(rows)}])"
    return _window(frame, frame.of(points), rows, code, MARGIN)


def _components(subject: ExploredSubject) -> ExploredPlane:
    """Return the plane through the mean of the data along their two principal components."""
    flat = subject.flat[:1000]
    mean = flat.mean(0)
    axes = torch.linalg.svd(flat - mean, full_matrices=False)[2][:2]
    axes = axes * axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign()
    shape = subject.x.shape[1:]
    frame = Frame(origin=mean.reshape(shape), axes=axes.reshape(2, *shape))
    code = (
        f"flat = x[:{len(flat)}].flatten(1).double()\n"
        "axes = torch.linalg.svd(flat - flat.mean(0), full_matrices=False)[2][:2]\n"
        "axes = axes * axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign()\n"
        "plane = inscape.regions.Frame(\n"
        "    origin=flat.mean(0).reshape(x.shape[1:]), axes=axes.reshape(2, *x.shape[1:])\n)"
    )
    return _window(frame, frame.of(flat.reshape(-1, *shape)), (), code, 0.1)


def _directions(
    subject: ExploredSubject, kind: Kind, rows: tuple[int, ...], seed: int
) -> ExploredPlane:
    """Return the plane through an example in two orthonormal directions, the first a gradient."""
    row, shape = rows[0], subject.x.shape[1:]
    draw = torch.Generator().manual_seed(seed)
    axes = torch.randn(2, subject.x[0].numel(), generator=draw, dtype=torch.float64)
    line = f"draw = torch.Generator().manual_seed({seed})\n"
    line += "axes = torch.randn(2, x[0].numel(), generator=draw, dtype=torch.float64)\n"
    if kind == "gradient":
        axes[0] = _margin_gradient(subject, row)
        line += _GRADIENT_CODE.format(row=row)
    axes = torch.linalg.qr(axes.T).Q.T
    origin = subject.x[row].detach().double().cpu()
    code = line + (
        "axes = torch.linalg.qr(axes.T).Q.T.reshape(2, *x.shape[1:])\n"
        f"plane = inscape.regions.Frame(origin=x[{row}], axes=axes)"
    )
    return _around(subject, Frame(origin=origin, axes=axes.reshape(2, *shape)), row, code)


def _around(subject: ExploredSubject, frame: Frame, row: int, code: str) -> ExploredPlane:
    """Return a plane with a window around an example, as wide as half of the others are away."""
    others = (subject.flat[:200] - frame.origin.flatten()).norm(dim=1)
    size = float(others[others > 0].median()) if bool((others > 0).any()) else 1.0
    half = (size / 2, size / 2)
    return ExploredPlane(frame=frame, centre=(0.0, 0.0), half=half, rows=(row,), code=code)


def _adversarial(subject: ExploredSubject, row: int) -> ExploredPlane:
    """Return the plane of an example and its nearest adversarial one, with both in the window."""
    other = next(number for number in default_rows(subject) if number != row)
    frame, place, code = adversarial_plane(subject, row, other)
    half = 1.5 * max(abs(place[0]), abs(place[1]))
    return ExploredPlane(
        frame=frame, centre=(place[0] / 2, place[1] / 2), half=(half, half), rows=(row, other),
        code=code, adversarial=place,
    )  # fmt: skip


_GRADIENT_CODE = (
    "point = x[{row}:{row} + 1].clone().requires_grad_()\n"
    "scores = model(point).flatten().double()\n"
    "best = scores.topk(min(2, len(scores))).values\n"
    "margin = best[0] - best[-1] if len(scores) > 1 else scores[0]\n"
    "axes[0] = torch.autograd.grad(margin, point)[0].flatten().double()\n"
)


def _margin_gradient(subject: ExploredSubject, row: int) -> Float64[Tensor, " D"]:
    """Return the gradient of the lead of the largest output before the second largest."""
    point = subject.x[row : row + 1].detach().clone().requires_grad_()
    with torch.enable_grad():
        scores = subject.subject.probe.f(point).flatten().double()
        best = scores.topk(min(2, len(scores))).values
        margin = best[0] - best[-1] if len(scores) > 1 else scores[0]
        gradient = torch.autograd.grad(margin, point)[0].flatten().double().cpu()
    if not float(gradient.norm()) > 0:
        raise ValueError(
            f"the gradient at example {row} must not be zero, found zero: choose another example, "
            "or random directions."
        )
    return gradient


def _input_plane(subject: ExploredSubject) -> ExploredPlane:
    """Return all of a two-dimensional input space, its axes scaled where units are uneven."""
    shape = tuple(subject.x.shape[1:])
    extent = (subject.flat.amax(0) - subject.flat.amin(0)).clamp(min=1e-300)
    ratio = float(extent[0] / extent[1])
    if 1 / UNEVEN < ratio < UNEVEN:
        frame, scale = whole(shape), "1.0, 1.0"
    else:
        frame = Frame(origin=torch.zeros(shape), axes=torch.diag(extent).reshape(2, *shape))
        scale = ", ".join(repr(number) for number in extent.tolist())
    code = (
        f"axes = torch.diag(torch.tensor([{scale}], dtype=torch.float64))\n"
        "plane = inscape.regions.Frame(\n"
        "    origin=torch.zeros(x.shape[1:]), axes=axes.reshape(2, *x.shape[1:])\n)"
    )
    at = frame.of(subject.flat.reshape(-1, *shape))
    return _window(frame, at, (), code, 0.08)
