"""Values and derivatives of a function along lines, and the length scale that they imply."""

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
from inscape.functional.forward_mode import forward_derivative
from inscape.functional.jacobians import Probe, chunks, jacobians

#: The shortest length scale that is reported, as a fraction of the longest.
SHORTEST = 1e-6
#: Values to which a Gaussian process is fitted: number of lines, knots on each.
SAMPLE = 20, 6
#: Memory of a double backward pass, in multiples of that of a forward pass.
DOUBLE_BACKWARD = 3
#: Points of a batch at which directional derivatives are compared with gradients.
COMPARED = 8

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Moments:
    """Variance and mean squared slope of a function, for each line and output.

    ``steps`` is the mean squared slope of the secants between knots; those of a smooth function
    are never steeper than its derivative, save for the random position of the knots.
    """

    lengths: Float64[Tensor, " lines"]
    variances: Float64[Tensor, "lines c"]
    slopes: Float64[Tensor, "lines c"]
    steps: Float64[Tensor, "lines c"]
    values: Float64[Tensor, "lines knots c"]


def line_moments(
    probed: Probe,
    x: Float[Tensor, "n *d"],
    ends: Int64[Tensor, "2 lines"],
    starts: Float64[Tensor, " lines"],
    knots: int,
    *,
    memory: int,
) -> Iterator[Moments | None]:
    """Yield the values and moments along lines, batch by batch.

    None stands for a batch of the model that ends within a line.
    """
    batch_size = probed.rows(memory // DOUBLE_BACKWARD, gradients=1)
    lines_per_batch = max(1, batch_size // knots)
    buffer = _empty(ends.shape[1], knots, probed.outputs)
    for first in range(0, ends.shape[1], lines_per_batch):
        start, stop = (
            x[end[first : first + lines_per_batch].to(x.device)][:, None] for end in ends
        )
        t = (
            knot_positions(starts[first : first + lines_per_batch], knots)
            .to(x)
            .reshape(-1, knots, *[1] * (x.ndim - 1))
        )
        knot_inputs, direction = (
            (start + t * (stop - start)).flatten(0, 1),
            (stop - start).expand(-1, knots, *x.shape[1:]),
        )
        batches: list[tuple[Tensor, Tensor]] = []
        for inputs, tangents in zip(
            chunks(knot_inputs, batch_size),
            chunks(direction.flatten(0, 1), batch_size),
            strict=True,
        ):
            yield from [None] if batches else []
            batches.append(directional_derivatives(probed.f, inputs, tangents))
        y, dy = (
            torch.cat(parts).double().reshape(len(start), knots, -1)
            for parts in zip(*batches, strict=True)
        )
        yield _put(buffer, first, _moments((stop - start)[:, 0], y, dy))


def _moments(
    direction: Float[Tensor, "m *d"],
    y: Float64[Tensor, "m knots c"],
    slopes: Float64[Tensor, "m knots c"],
) -> Moments:
    """Return the moments of values and slopes at the knots of a batch of lines."""
    checks.finite(y.flatten(1).sum(1), "lines")
    squared_slopes = slopes.square().mean(1)
    checks.finite(squared_slopes.sum(1), "lines")
    variances = y.var(1, correction=0)
    checks.finite(variances.sum(1), "lines")
    return Moments(
        lengths=direction.double().flatten(1).norm(dim=1).cpu(),
        variances=variances.cpu(),
        slopes=squared_slopes.cpu(),
        steps=(y.diff(dim=1) * y.shape[1]).square().mean(1).cpu(),
        values=y.cpu(),
    )


def _empty(lines: int, knots: int, outputs: int) -> Moments:
    """Return a buffer for the moments of all lines, which avoids fragmented memory."""
    shapes = {"lengths": (lines,), "values": (lines, knots, outputs)}
    return Moments(
        **{
            field.name: torch.empty(shapes.get(field.name, (lines, outputs)), dtype=torch.float64)
            for field in fields(Moments)
        }
    )


def _put(buffer: Moments, first: int, moments: Moments) -> Moments:
    """Copy the moments of a batch of lines into the buffer and return the views."""
    lines = slice(first, first + len(moments.lengths))
    views = {field.name: getattr(buffer, field.name)[lines] for field in fields(Moments)}
    for name, view in views.items():
        view.copy_(getattr(moments, name))
    return Moments(**views)


def concatenated(parts: Sequence[Moments]) -> Moments:
    """Return the moments of several batches of lines as one."""
    return Moments(
        **{
            field.name: torch.cat([getattr(part, field.name) for part in parts])
            for field in fields(Moments)
        }
    )


def knot_positions(starts: Float64[Tensor, " m"], knots: int) -> Float64[Tensor, "m knots"]:
    """Return evenly spaced positions in [0, 1], with an offset for each line."""
    return (torch.arange(knots, dtype=torch.float64) + starts[:, None]) / knots


def directional_derivatives(
    f: Function, x: Float[Tensor, "m *d"], direction: Float[Tensor, "m *d"]
) -> tuple[Float[Tensor, "m c"], Float[Tensor, "m c"]]:
    """Return values and directional derivatives of all outputs.

    In forward mode where all operations support it, else by a double backward pass. Where that
    fails too, or a second derivative underflows, the whole Jacobian is computed, with one backward
    pass for each output.
    """
    for method in (_by_forward_mode, _by_double_backward):
        pair = method(f, x, direction)
        if pair is not None:
            y, derivatives = (part.reshape(len(x), -1) for part in pair)
            if _agrees(f, x, direction, derivatives):
                return y, derivatives
    derivatives = torch.einsum("mcd,md->mc", jacobians(f, x), direction.flatten(1))
    return f(x).detach().reshape(len(x), -1), derivatives


def _by_forward_mode(f: Function, x: Tensor, direction: Tensor) -> tuple[Tensor, Tensor] | None:
    return forward_derivative(f, [x], [direction.reshape(x.shape)])


def _by_double_backward(f: Function, x: Tensor, direction: Tensor) -> tuple[Tensor, Tensor] | None:
    """The VJP is linear in its cotangent; its derivative in that is the JVP."""
    with torch.enable_grad():
        inputs = x.detach().requires_grad_()
        y = f(inputs)
        if not y.requires_grad:
            return y, torch.zeros_like(y)
        cotangent = torch.zeros_like(y, requires_grad=True)
        try:
            (vjp,) = torch.autograd.grad(y, inputs, cotangent, create_graph=True)
            (derivatives,) = torch.autograd.grad(vjp, cotangent, direction.reshape(vjp.shape))
        except RuntimeError:
            return None
    return y.detach(), derivatives


def _agrees(
    f: Function,
    x: Float[Tensor, "m *d"],
    direction: Float[Tensor, "m *d"],
    derivatives: Float[Tensor, "m c"],
) -> bool:
    """Tell whether directional derivatives agree with gradients at a few of the points.

    Normalisation layers divide by third powers in their second derivative, which underflow for
    large inputs, and the directional derivatives are then wrong without a warning.
    """
    checked = torch.linspace(0, len(x) - 1, min(COMPARED, len(x)), device=x.device).long()
    cotangent = torch.ones_like(derivatives[checked])
    cotangent[:, 1::2] = -0.5
    with torch.enable_grad():
        inputs = x[checked].detach().requires_grad_()
        y = f(inputs).reshape(len(checked), -1)
        if not y.requires_grad:
            return not bool(derivatives.any())
        (gradient,) = torch.autograd.grad(y, inputs, cotangent)
    gradient, tangents, expected = (
        gradient.flatten(1),
        direction[checked].flatten(1),
        cotangent * derivatives[checked],
    )
    magnitude = gradient.norm(dim=1) * tangents.norm(dim=1) + expected.abs().sum(1)
    errors = (gradient * tangents).sum(1) - expected.sum(1)
    return bool((errors.abs() <= torch.finfo(x.dtype).eps ** 0.5 * magnitude).all())


def scale(
    lengths: Float64[Tensor, " lines"],
    variances: Float64[Tensor, "lines c"],
    slopes: Float64[Tensor, "lines c"],
    knots: int,
    longest: float,
) -> float:
    """Return the length scale of a process with the same ratio of variance to squared slope.

    Clipped to ``longest`` from above and to a millionth of it from below.
    """
    from scipy.optimize import brentq

    if not float(slopes.sum()) > 0:
        return longest
    ratio = float(variances.sum() / slopes.sum())
    squares = lengths.square().numpy()

    def excess(log_scale: float) -> float:
        q = squares * math.exp(-2 * log_scale)
        return math.log(float(expected_variance(q, knots).sum() / q.sum())) - math.log(ratio)

    low, high = math.log(SHORTEST * longest), math.log(longest)
    if not ratio > 0 or excess(low) > 0:
        return math.exp(low)
    if excess(high) < 0:
        return longest
    return math.exp(float(brentq(excess, low, high, xtol=1e-12)))


def expected_variance(q: Array, knots: int) -> Array:
    """Return the expected variance on lines of squared length ``q`` of a process of scale 1.

    One minus the mean correlation between all pairs of knots; by ``expm1``, since it is tiny for
    short lines.
    """
    lags = np.arange(1, knots)
    counts = 2 * (knots - lags) / knots**2
    decrements: Array = -np.expm1(-0.5 * q[:, None] * (lags / knots) ** 2)
    return decrements @ counts


def likeliest_process(
    moments: Moments,
    start: Float[Tensor, "lines *d"],
    stop: Float[Tensor, "lines *d"],
    starts: Float64[Tensor, " lines"],
    *,
    seed: int,
) -> tuple[float, float] | tuple[None, None]:
    """Return length scale and noise fraction of the Gaussian process of maximum likelihood.

    None where the length scale is not identified: no process is likelier than noise, or the
    likelihood increases without end as the scale grows.
    """
    from inscape.kernels.gaussian_process.fitting import exceeds_noise, fitted_process

    lines = (moments.lengths > 0).nonzero()[: SAMPLE[0], 0]  # a line of length zero has no scale
    knots = moments.values.shape[1]
    chosen = torch.linspace(0, knots - 1, min(SAMPLE[1], knots)).round().long()
    t = knot_positions(starts[lines], knots)[:, chosen]
    ends = [end[lines.to(end.device)].double().flatten(1).cpu()[:, None] for end in (start, stop)]
    size = float(moments.lengths.square().mean().sqrt())
    points = coordinates((torch.lerp(ends[0], ends[1], t[..., None]) / size).flatten(0, 1))
    y = moments.values[lines][:, chosen].flatten(0, 1)
    y = y - y.mean(0)
    y = y / y.square().mean().sqrt().clamp(min=1e-300)
    fit = fitted_process(points, y, bounds=(1e-6, 1e4), seed=seed)
    unknown = {"amplitude", "length_scale"} & set(fit.at_bounds)
    if unknown or fit.length_scale is None or not exceeds_noise(fit):
        return None, None
    return fit.length_scale * size, fit.noise / (fit.noise + fit.amplitude)


def coordinates(points: Float64[Tensor, "m d"]) -> Float64[Tensor, "m k"]:
    """Return points of at most ``m`` coordinates with the same inner products."""
    if points.shape[1] <= len(points):
        return points
    values, vectors = torch.linalg.eigh(points @ points.T)
    reduced: Tensor = vectors * values.clamp(min=0).sqrt()
    return reduced
