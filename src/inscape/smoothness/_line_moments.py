"""Values and slopes along lines, and the length scale of a process that has as much of both."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import checks
from inscape._core.checks import Function
from inscape.functional.jacobians import Probe, chunks, jacobians

#: The shortest length scale that is told, as a share of the longest.
SHORTEST = 1e-6
#: Values to which a process is fitted: so many lines, so many knots of each.
SAMPLE = 20, 6
#: Slopes differentiate the backward pass: autograd keeps so many times what a forward pass takes.
DOUBLE_BACKWARD = 3
#: Points of a batch at which slopes are compared with plain gradients.
COMPARED = 8

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Moments:
    """What a function does along lines: of each line and output the variance and squared slope.

    ``steps`` is the squared slope that the differences of values between knots show; those of a
    smooth function are never steeper than its slopes, save for the draw of knots.
    """

    lengths: Float64[Tensor, " lines"]
    variances: Float64[Tensor, "lines c"]
    slopes: Float64[Tensor, "lines c"]
    steps: Float64[Tensor, "lines c"]
    values: Float64[Tensor, "lines knots c"]


def along(
    found: Probe,
    x: Float[Tensor, "n *d"],
    ends: Int64[Tensor, "2 lines"],
    starts: Float64[Tensor, " lines"],
    knots: int,
    *,
    memory: int,
) -> Iterator[Moments | None]:
    """Walk along lines and yield their values and moments, some lines at a time.

    None stands for a batch of the model that ends within a line.
    """
    rows = found.rows(memory // DOUBLE_BACKWARD, gradients=1)
    per = max(1, rows // knots)
    kept = _empty(ends.shape[1], knots, found.outputs)
    for first in range(0, ends.shape[1], per):
        a, b = (x[end[first : first + per].to(x.device)][:, None] for end in ends)
        t = times(starts[first : first + per], knots).to(x).reshape(-1, knots, *[1] * (x.ndim - 1))
        at, way = (a + t * (b - a)).flatten(0, 1), (b - a).expand(-1, knots, *x.shape[1:])
        parts: list[tuple[Tensor, Tensor]] = []
        for part, ahead in zip(chunks(at, rows), chunks(way.flatten(0, 1), rows), strict=True):
            yield from [None] if parts else []
            parts.append(with_slopes(found.f, part, ahead))
        y, dy = (
            torch.cat(some).double().reshape(len(a), knots, -1) for some in zip(*parts, strict=True)
        )
        yield _put(kept, first, _moments((b - a)[:, 0], y, dy))


def _moments(
    way: Float[Tensor, "m *d"], y: Float64[Tensor, "m knots c"], dy: Float64[Tensor, "m knots c"]
) -> Moments:
    """Return the moments of values and slopes at the knots of some lines."""
    checks.finite(y.flatten(1).sum(1), "lines")
    squares = dy.square().mean(1)
    checks.finite(squares.sum(1), "lines")
    variances = y.var(1, correction=0)
    checks.finite(variances.sum(1), "lines")
    return Moments(
        lengths=way.double().flatten(1).norm(dim=1).cpu(),
        variances=variances.cpu(),
        slopes=squares.cpu(),
        steps=(y.diff(dim=1) * y.shape[1]).square().mean(1).cpu(),
        values=y.cpu(),
    )


def _empty(lines: int, knots: int, outputs: int) -> Moments:
    """Return room for the moments of all lines: small tensors between large ones leave holes."""
    shapes = {"lengths": (lines,), "values": (lines, knots, outputs)}
    return Moments(
        **{
            field.name: torch.empty(shapes.get(field.name, (lines, outputs)), dtype=torch.float64)
            for field in fields(Moments)
        }
    )


def _put(kept: Moments, first: int, part: Moments) -> Moments:
    """Return the moments of some lines, moved to their place among all."""
    place = slice(first, first + len(part.lengths))
    views = {field.name: getattr(kept, field.name)[place] for field in fields(Moments)}
    for name, view in views.items():
        view.copy_(getattr(part, name))
    return Moments(**views)


def joined(parts: Sequence[Moments]) -> Moments:
    """Return the moments of all lines of several parts."""
    return Moments(
        **{
            field.name: torch.cat([getattr(part, field.name) for part in parts])
            for field in fields(Moments)
        }
    )


def times(starts: Float64[Tensor, " m"], knots: int) -> Float64[Tensor, "m knots"]:
    """Return evenly spaced times between 0 and 1, each line with its own start."""
    return (torch.arange(knots, dtype=torch.float64) + starts[:, None]) / knots


def with_slopes(
    f: Function, x: Float[Tensor, "m *d"], way: Float[Tensor, "m *d"]
) -> tuple[Float[Tensor, "m c"], Float[Tensor, "m c"]]:
    """Return values and slopes along ``way``, at the cost of two backward passes for all outputs.

    The backward pass is linear in what it is given; its derivative by that is the slope. Where a
    step of the function cannot be differentiated twice, or its second derivative underflows, one
    pass is made for each output.
    """
    with torch.enable_grad():
        given = x.detach().requires_grad_()
        y = f(given)
        if not y.requires_grad:
            return y.reshape(len(x), -1), torch.zeros_like(y).reshape(len(x), -1)
        pull = torch.zeros_like(y, requires_grad=True)
        try:
            (back,) = torch.autograd.grad(y, given, pull, create_graph=True)
            (slope,) = torch.autograd.grad(back, pull, way)
        except RuntimeError:
            slope = None
    if slope is None or not _agrees(f, x, way, slope.reshape(len(x), -1)):
        slope = torch.einsum("mcd,md->mc", jacobians(f, x), way.flatten(1))
    return y.detach().reshape(len(x), -1), slope.reshape(len(x), -1)


def _agrees(
    f: Function, x: Float[Tensor, "m *d"], way: Float[Tensor, "m *d"], slope: Float[Tensor, "m c"]
) -> bool:
    """Tell whether the slopes agree with plain gradients, at some of the points.

    Normalisation layers divide by third powers in their second derivative: those of large inputs
    underflow, and the slopes are wrong without a word.
    """
    some = torch.linspace(0, len(x) - 1, min(COMPARED, len(x)), device=x.device).long()
    mixture = torch.ones_like(slope[some])
    mixture[:, 1::2] = -0.5
    with torch.enable_grad():
        given = x[some].detach().requires_grad_()
        (gradient,) = torch.autograd.grad(f(given).reshape(len(some), -1), given, mixture)
    gradient, ahead, mixed = gradient.flatten(1), way[some].flatten(1), mixture * slope[some]
    size = gradient.norm(dim=1) * ahead.norm(dim=1) + mixed.abs().sum(1)
    gaps = (gradient * ahead).sum(1) - mixed.sum(1)
    return bool((gaps.abs() <= torch.finfo(x.dtype).eps ** 0.5 * size).all())


def scale(
    lengths: Float64[Tensor, " lines"],
    variances: Float64[Tensor, "lines c"],
    slopes: Float64[Tensor, "lines c"],
    knots: int,
    longest: float,
) -> float:
    """Return the length scale at which a process has the same variance for its slopes.

    It is at most ``longest``, and at least a millionth of that.
    """
    from scipy.optimize import brentq

    if not float(slopes.sum()) > 0:
        return longest
    wanted = float(variances.sum() / slopes.sum())
    squares = lengths.square().numpy()

    def excess(log_scale: float) -> float:
        q = squares * math.exp(-2 * log_scale)
        return math.log(float(spread(q, knots).sum() / q.sum())) - math.log(wanted)

    low, high = math.log(SHORTEST * longest), math.log(longest)
    if not wanted > 0 or excess(low) > 0:
        return math.exp(low)
    if excess(high) < 0:
        return longest
    return math.exp(float(brentq(excess, low, high, xtol=1e-12)))


def spread(q: Array, knots: int) -> Array:
    """Return the expected variance on lines of squared length ``q`` of a process of scale 1.

    One minus the mean correlation between all pairs of knots; by ``expm1``, since it is tiny for
    short lines.
    """
    lags = np.arange(1, knots)
    counts = 2 * (knots - lags) / knots**2
    falls: Array = -np.expm1(-0.5 * q[:, None] * (lags / knots) ** 2)
    return falls @ counts


def best_process(
    moments: Moments,
    a: Float[Tensor, "lines *d"],
    b: Float[Tensor, "lines *d"],
    starts: Float64[Tensor, " lines"],
    *,
    seed: int,
) -> tuple[float, float] | tuple[None, None]:
    """Return length scale and share of noise of the process that makes some values likeliest.

    None where its length scale is not known: no process is likelier than noise, or the longer it
    is, the likelier.
    """
    from inscape.kernels.gaussian_process.fitting import explains, fitted_process

    lines = (moments.lengths > 0).nonzero()[: SAMPLE[0], 0]  # one place says nothing of scales
    knots = moments.values.shape[1]
    some = torch.linspace(0, knots - 1, min(SAMPLE[1], knots)).round().long()
    t = times(starts[lines], knots)[:, some]
    ends = [end[lines.to(end.device)].double().flatten(1).cpu()[:, None] for end in (a, b)]
    size = float(moments.lengths.square().mean().sqrt())
    points = coordinates((torch.lerp(ends[0], ends[1], t[..., None]) / size).flatten(0, 1))
    y = moments.values[lines][:, some].flatten(0, 1)
    y = y - y.mean(0)
    y = y / y.square().mean().sqrt().clamp(min=1e-300)
    found = fitted_process(points, y, bounds=(1e-6, 1e4), seed=seed)
    unknown = {"amplitude", "length_scale"} & set(found.at_bounds)
    if unknown or found.length_scale is None or not explains(found):
        return None, None
    return found.length_scale * size, found.noise / (found.noise + found.amplitude)


def coordinates(rows: Float64[Tensor, "m d"]) -> Float64[Tensor, "m k"]:
    """Return rows with the same inner products that are no longer than there are of them."""
    if rows.shape[1] <= len(rows):
        return rows
    values, vectors = torch.linalg.eigh(rows @ rows.T)
    shorter: Tensor = vectors * values.clamp(min=0).sqrt()
    return shorter
