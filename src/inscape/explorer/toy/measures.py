"""What is measured of a toy network at each frame, by the instruments of the library."""

import math
from collections.abc import Iterator

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core import NotApplicable
from inscape.errors import UnsupportedModelError
from inscape.explorer.toy.points import ToyPoints
from inscape.kernels import tangent_kernel
from inscape.regions import PlaneRegions, decision_boundary
from inscape.smoothness import gradient_norm, path_length

#: Pairs and knots of the path length, and points of the tangent kernel.
PAIRS, KNOTS, KERNEL = 100, 50, 12

Measures = dict[str, float]


@torch.no_grad()
def quality(model: nn.Module, points: ToyPoints) -> Measures:
    """Return accuracies (of classes) or root mean squared errors, at test points and beyond."""
    kind = "accuracy" if points.classes else "error"
    facts = {kind: score(model, points.x_test, points.y_test, points.classes)}
    if points.beyond is not None:
        facts[f"{kind} beyond"] = score(model, *points.beyond, points.classes)
    return facts


@torch.no_grad()
def score(model: nn.Module, x: Tensor, y: Tensor, classes: int) -> float:
    """Return the fraction of right classes, or the root of the mean squared error."""
    outputs = model(x)
    if not classes:
        return float((outputs - y).square().mean().sqrt())
    if outputs.shape[1] > 1:
        return float((outputs.argmax(1) == y).double().mean())
    return float(((outputs[:, 0] > 0) == (y > 0)).double().mean())


def smoothness(model: nn.Module, points: ToyPoints) -> Measures:
    """Return the mean gradient norm at the test points, and the mean path length between them."""
    pairs = path_length(model, points.x_test, pairs=PAIRS, knots=KNOTS)
    return {
        "gradient norm": _value(gradient_norm(model, points.x_test)),
        "path length": _value(pairs),
    }


def _value(result: object) -> float:
    summary = result.summary()  # type: ignore[attr-defined]
    return float(summary.value)


@torch.no_grad()
def weights_norm(model: nn.Module) -> float:
    """Return the norm of all parameters together."""
    return math.sqrt(sum(float(p.square().sum()) for p in model.parameters()))


def kernel_of(model: nn.Module, points: ToyPoints) -> Float64[Tensor, "k k"] | None:
    """Return the tangent kernel of the first points, flat; None for a model that has none."""
    try:
        kernel = tangent_kernel(model, points.x[:KERNEL])
    except (UnsupportedModelError, ValueError):
        return None
    return None if isinstance(kernel, NotApplicable) else kernel.kernel.double().flatten(1)


def kernel_change(now: Tensor, start: Tensor) -> Measures:
    """Return by how much a tangent kernel has changed, relative to the one at the start."""
    size = float(start.norm())
    return {"kernel change": float((now - start).norm()) / size} if size > 0 else {}


def geometry(regions: PlaneRegions, *, classes: int) -> Measures:
    """Return the linear regions of a window, and the closed curves of its decision boundary."""
    facts: Measures = {"regions": float(regions.cells), "merged": float(regions.regions)}
    if classes:
        facts |= dict(_curves(regions))
    return facts


def _curves(regions: PlaneRegions) -> Iterator[tuple[str, float]]:
    try:
        line = decision_boundary(regions)
    except ValueError:  # regions too narrow for float64
        return
    yield "closed curves", float(line.closed.sum())
    yield "boundary", line.length
