"""Steps that show what a point is not: down the gradient, and along negative curvature."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from inscape.landscape._curvature_rounding import has_terms
from inscape.landscape._loss_function import LossFunction

#: Lengths of a trial where the curvature tells none, relative to the length of the parameters.
LENGTHS = tuple(10.0**-k for k in range(6))
#: Factors of the step that is best for the curvature along the gradient.
FACTORS = (1.0, 2.0, 0.5, 0.1, 1e-2, 1e-4)
#: Rounding of a mean loss, in machine epsilons of its size, and of an output, in those of its own.
ROUNDING, OUTPUT_ROUNDING = 256, 8


@dataclass(frozen=True)
class Step:
    """A step from a point: its length and by how much it lowers the loss."""

    length: float
    lowered: float


def gradient_step(
    problem: LossFunction, loss: float, gradient: Float[Tensor, " p"], curved: Float[Tensor, " p"]
) -> Step:
    """Return the best of a few steps down the gradient; ``curved`` is the Hessian times it.

    Where the curvature is not positive, or steps that suit it do not lower the loss, of some
    lengths relative to that of the parameters.
    """
    squared, curvature = float(gradient @ gradient), float(gradient @ curved)
    if squared == 0.0:
        return Step(0.0, 0.0)
    if curvature > 0:
        rate = squared / curvature
        best = _best(problem, loss, [-rate * factor * gradient for factor in FACTORS])
        if best.lowered > loss_rounding(problem, loss):
            return best
    unit = gradient / squared**0.5
    return _best(problem, loss, [-length * _size(problem) * unit for length in LENGTHS])


def expected_gain(
    problem: LossFunction, gradient: Float[Tensor, " p"], curved: Float[Tensor, " p"]
) -> float:
    """Return by how much a step down the gradient must lower the loss if it is smooth.

    The best step of the quadratic model, or a short one where that is too long.
    """
    squared, curvature = float(gradient @ gradient), abs(float(gradient @ curved))
    short = FACTORS[-1] * float(gradient.norm()) * _size(problem)
    return min(short, squared / (2 * curvature) * squared) if curvature > 0 else short


def curvature_step(
    problem: LossFunction, loss: float, direction: Float[Tensor, " p"], gradient: Tensor
) -> Step:
    """Return the best of a few steps along a direction of negative curvature, down the slope."""
    sign = -1.0 if float(direction @ gradient) > 0 else 1.0
    size = _size(problem)
    steps = [sign * side * length * size * direction for length in LENGTHS for side in (1, -1)]
    return _best(problem, loss, steps)


def _size(problem: LossFunction) -> float:
    """Return the length of the parameters, at least one."""
    return max(1.0, float(problem.vector().norm()))


def loss_rounding(problem: LossFunction, loss: float) -> float:
    """Return how far rounding may move a loss: its own, and that of outputs that it compares."""
    epsilon = float(torch.finfo(problem.tensors[0].dtype).eps)
    relative = ROUNDING * epsilon * abs(loss)
    if not has_terms(problem):
        return relative
    spans, n = problem.spans(), len(problem.x)
    moved = sum((span.stop - span.start) / n * _moved_by_outputs(problem, span) for span in spans)
    return relative + OUTPUT_ROUNDING * epsilon * float(moved)


def _moved_by_outputs(problem: LossFunction, span: slice) -> float:
    """Return by how many roundings of the outputs the mean loss of some samples may move."""
    f = problem.outputs(span).detach()
    if problem.loss != "mse":
        largest = f.abs().amax(1) if problem.loss == "cross_entropy" else f.abs()
        return float((1 + largest).mean())
    y = problem.labels(span, f)
    size = f.abs() + y.abs()
    unit = OUTPUT_ROUNDING * float(torch.finfo(f.dtype).eps)
    return float((2 * (f - y).abs() * size + unit * size.square()).mean())


def _best(problem: LossFunction, loss: float, steps: list[Tensor]) -> Step:
    """Return the step that lowers the loss most; the parameters stay where they are."""
    start, best = problem.vector(), Step(0.0, 0.0)
    for step in steps:
        problem.place(start + step)
        lowered = loss - problem.value()
        if lowered > best.lowered:
            best = Step(float(step.norm()), lowered)
    problem.place(start)
    return best
