"""One optimizer step for a whole stack: what torch.optim computes, for every slot at once.

Members enter a stack at different times, so the number of the step, and with it the learning rate
and the corrections of Adam, are those of each slot.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from inscape.ensembles.member import Orders
from inscape.training.schedules import factor

EPS = 1e-8  # as in torch.optim.Adam


class Optimizer:
    """Steps down the gradients of all slots, in place, and remembers what it needs."""

    def __init__(self, orders: Orders, parameters: Sequence[Tensor]) -> None:
        self.orders = orders
        self.parameters = parameters
        kept = 2 if orders.optimizer != "sgd" else 1 if orders.momentum else 0
        self.memory = [[torch.zeros_like(p) for p in parameters] for _ in range(kept)]

    def step(self, gradients: Sequence[Tensor], steps: Sequence[int]) -> None:
        """Make one update; ``steps`` counts the updates that each slot has behind it."""
        if self.orders.optimizer == "sgd":
            self._sgd(gradients, steps)
        else:
            self._adam(gradients, steps)

    def _sgd(self, gradients: Sequence[Tensor], steps: Sequence[int]) -> None:
        orders = self.orders
        rates = None if orders.schedule_given is None else self._rates(steps)
        for number, (p, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            if orders.weight_decay:
                gradient = gradient.add(p, alpha=orders.weight_decay)
            if orders.momentum:
                velocity = self.memory[0][number].mul_(orders.momentum).add_(gradient)
                ahead = orders.nesterov
                gradient = gradient.add(velocity, alpha=orders.momentum) if ahead else velocity
            if rates is None:
                p.add_(gradient, alpha=-orders.lr)
            else:
                p.sub_(gradient * _column(rates, p))

    def _adam(self, gradients: Sequence[Tensor], steps: Sequence[int]) -> None:
        orders, (beta1, beta2) = self.orders, self.orders.betas
        rates = self._rates(steps)
        moves = [rate / (1 - beta1 ** (t + 1)) for rate, t in zip(rates, steps, strict=True)]
        widths = [math.sqrt(1 - beta2 ** (t + 1)) for t in steps]
        shrink = [1 - rate * orders.weight_decay for rate in rates]
        for number, (p, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            if orders.weight_decay and orders.optimizer == "adamw":
                p.mul_(_column(shrink, p))
            elif orders.weight_decay:
                gradient = gradient.add(p, alpha=orders.weight_decay)
            mean = self.memory[0][number].lerp_(gradient, 1 - beta1)
            square = self.memory[1][number].mul_(beta2)
            square.addcmul_(gradient, gradient, value=1 - beta2)
            spread = square.sqrt().div_(_column(widths, p)).add_(EPS)
            p.sub_(mean.div(spread).mul_(_column(moves, p)))

    def _rates(self, steps: Sequence[int]) -> list[float]:
        """Return the learning rate of each slot; the schedule is asked once for each step."""
        known = {t: self.orders.lr * factor(self.orders.schedule_given, t) for t in set(steps)}
        return [known[t] for t in steps]


def _column(numbers: Sequence[float], like: Tensor) -> Tensor:
    """Return one number per slot, shaped to be multiplied with ``like``."""
    column = torch.tensor(numbers, dtype=like.dtype, device=like.device)
    return column.reshape(-1, *[1] * (like.ndim - 1))
