"""A step down the gradient of some samples, judged by others: what a part of the data shows."""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from scipy.special import stdtrit
from torch import Tensor

from inscape._core.result import TAIL
from inscape._core.sampling import generator
from inscape.landscape._loss_function import LossFunction
from inscape.training.losses import loss_function

#: Samples of the first step, and of those that judge it; they double.
FEWEST = 8
#: Factors of the step that is best for the curvature along the gradient.
FACTORS = (1.0, 0.3, 0.1, 0.01)


@dataclass(frozen=True, kw_only=True)
class SampledStep:
    """A step down the gradient of some samples, and what it does to the loss of as many others.

    ``lowered`` is by how much the loss on them falls at least, with a probability of 97.5% over
    the draw; below zero where that is not shown.
    """

    count: int
    length: float
    gradient: float
    loss: float
    lowered: float


def sampled_steps(problem: LossFunction, seed: int) -> Iterator[SampledStep | None]:
    """Yield the steps of ever more samples, twice as many each time; None on the way.

    The samples that judge a step have no part in it, so that what they gain is no chance.
    """
    n = len(problem.x)
    order = torch.randperm(n, generator=generator(seed)).to(problem.x.device)
    count = FEWEST
    while 2 * count <= n:
        own, others = (_at(problem, rows) for rows in (order[:count], order[count : 2 * count]))
        yield (yield from _step(own, others))
        count *= 2


def _at(problem: LossFunction, rows: Tensor) -> LossFunction:
    assert problem.y is not None
    return problem.changed(x=problem.x[rows], y=problem.y[rows])


def _step(own: LossFunction, others: LossFunction) -> Generator[None, None, SampledStep]:
    """Return the best of a few steps for some samples, judged by the others."""
    products, start = own.products(), own.vector()
    gradient = products.gradient()
    yield
    squared, curvature = float(gradient @ gradient), float(gradient @ products(gradient))
    yield
    size = float(start.norm()) or 1.0
    rate = squared / curvature if curvature > 0 else size / max(math.sqrt(squared), 1e-300)
    losses = []
    for factor in FACTORS:
        own.place(start - rate * factor * gradient)
        losses.append(own.value())
        own.place(start)
        yield
    step = -rate * FACTORS[losses.index(min(losses))] * gradient
    before = _losses(others)
    yield
    others.place(start + step)
    after = _losses(others)
    others.place(start)
    return SampledStep(
        count=len(own.x),
        length=float(step.norm()),
        gradient=math.sqrt(squared),
        loss=float(before.mean()),
        lowered=_least(before - after),
    )


def _least(values: Float64[Tensor, " m"]) -> float:
    """Return the lower end of the 95% interval of a mean, by Student's t."""
    quantile = float(stdtrit(len(values) - 1, 1 - TAIL))
    return float(values.mean() - quantile * values.std() / math.sqrt(len(values)))


@torch.no_grad()
def _losses(problem: LossFunction) -> Float64[Tensor, " m"]:
    """Return the loss of each sample."""
    measure, losses = loss_function(problem.loss), []
    for span in problem.spans():
        outputs = problem.outputs(span)
        labels = problem.labels(span, outputs)
        losses += [measure(outputs[k : k + 1], labels[k : k + 1]) for k in range(len(outputs))]
    return torch.stack(losses).double().cpu()
