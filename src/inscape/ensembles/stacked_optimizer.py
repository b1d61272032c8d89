"""One optimizer step for all slots of a stack at once, as torch.optim computes it.

Members enter a stack at different times, so the number of the step, and with it the learning rate
and the corrections of Adam, are those of each slot.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from inscape.training.options import FitOptions
from inscape.training.schedules import factor

EPS = 1e-8  # as in torch.optim.Adam


class StackedOptimizer:
    """SGD, Adam or AdamW for all slots, in place, with their moments."""

    def __init__(self, options: FitOptions, parameters: Sequence[Tensor]) -> None:
        self.options = options
        self.parameters = parameters
        count = 2 if options.optimizer != "sgd" else 1 if options.momentum else 0
        self.moments = [[torch.zeros_like(p) for p in parameters] for _ in range(count)]

    def step(self, gradients: Sequence[Tensor], steps: Sequence[int]) -> None:
        """Make one update; ``steps`` is the number of updates that each slot has made before."""
        if self.options.optimizer == "sgd":
            self._sgd(gradients, steps)
        else:
            self._adam(gradients, steps)

    def _sgd(self, gradients: Sequence[Tensor], steps: Sequence[int]) -> None:
        options = self.options
        rates = None if options.schedule is None else self._rates(steps)
        for number, (p, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            if options.weight_decay:
                gradient = gradient.add(p, alpha=options.weight_decay)
            if options.momentum:
                velocity = self.moments[0][number].mul_(options.momentum).add_(gradient)
                ahead = options.nesterov
                gradient = gradient.add(velocity, alpha=options.momentum) if ahead else velocity
            if rates is None:
                p.add_(gradient, alpha=-options.lr)
            else:
                p.sub_(gradient * _column(rates, p))

    def _adam(self, gradients: Sequence[Tensor], steps: Sequence[int]) -> None:
        options, (beta1, beta2) = self.options, self.options.betas
        rates = self._rates(steps)
        sizes = [rate / (1 - beta1 ** (t + 1)) for rate, t in zip(rates, steps, strict=True)]
        corrections = [math.sqrt(1 - beta2 ** (t + 1)) for t in steps]
        shrink = [1 - rate * options.weight_decay for rate in rates]
        for number, (p, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            if options.weight_decay and options.optimizer == "adamw":
                p.mul_(_column(shrink, p))
            elif options.weight_decay:
                gradient = gradient.add(p, alpha=options.weight_decay)
            mean = self.moments[0][number].lerp_(gradient, 1 - beta1)
            square = self.moments[1][number].mul_(beta2)
            square.addcmul_(gradient, gradient, value=1 - beta2)
            deviation = square.sqrt().div_(_column(corrections, p)).add_(EPS)
            p.sub_(mean.div(deviation).mul_(_column(sizes, p)))

    def _rates(self, steps: Sequence[int]) -> list[float]:
        """Return the learning rate of each slot; the schedule is called once for each step."""
        rates = {t: self.options.lr * factor(self.options.schedule, t) for t in set(steps)}
        return [rates[t] for t in steps]


def _column(values: Sequence[float], like: Tensor) -> Tensor:
    """Return one value per slot, shaped to be multiplied with ``like``."""
    column = torch.tensor(values, dtype=like.dtype, device=like.device)
    return column.reshape(-1, *[1] * (like.ndim - 1))
