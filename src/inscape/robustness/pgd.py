"""PGD: projected gradient ascent within a ball."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import checks
from inscape.robustness.attack import Perturbing, Stepwise, Target, Unbroken
from inscape.robustness.classifier import cross_entropy, misclassified
from inscape.robustness.norm_balls import projected_in_place, steepest, uniform_in_ball


@dataclass(frozen=True, kw_only=True)
class Pgd(Stepwise):
    r"""Projected gradient ascent of the cross-entropy from a random start.

    .. math:: x_{k+1} = P \bigl( x_k + \eta \, s(\nabla_x \, \ell(f(x_k), y)) \bigr)

    with :math:`s` the steepest step of norm one and :math:`P` the projection onto the ball and the
    bounds (Madry et al. 2018). Every iterate is tested, and a broken point is final: more steps
    of one ``step_size`` can only break more points. ``step_size`` is a fraction of the budget; None
    is 2.5 / steps, so that a point can cross the ball and turn back. That depends on the number of
    steps, so that more break more points only as a rule.
    """

    steps: int = 20
    step_size: float | None = None
    restarts: int = 1
    random_start: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole(1, steps=self.steps, restarts=self.restarts)
        if self.step_size is not None and not self.step_size > 0:
            raise ValueError(
                f"step_size must be a positive fraction of the budget, found {self.step_size}: "
                "use None for 2.5 / steps."
            )

    def passes(self, classes: int) -> float:
        """Return a gradient for each step, and a last look."""
        return self.restarts * (3.0 * self.steps + 1)

    def search(self, target: Target) -> Perturbing:
        """Return the first wrong iterate of each point, or the point itself if there is none."""
        unbroken = Unbroken(target)
        for restart in range(self.restarts):
            if len(unbroken) == 0:
                break
            yield from self._climb(unbroken, self._start(unbroken.target, restart))
        return unbroken.candidates

    def _start(self, target: Target, restart: int) -> Float[Tensor, "n *d"]:
        if not self.random_start:
            return target.x
        step = uniform_in_ball(target.x, self.norm, target.draws.child(restart))
        return target.classifier.clipped(target.x + target.budget * step)

    def _climb(self, unbroken: Unbroken, at: Float[Tensor, "n *d"]) -> Iterator[None]:
        rate = 2.5 / self.steps if self.step_size is None else self.step_size
        for _ in range(self.steps):
            now = unbroken.target
            scores, _, gradient = now.classifier.loss_gradient(at, now.y, cross_entropy)
            now.tick(3.0 * len(at))
            yield
            at, gradient = unbroken.set_aside(at, misclassified(scores, now.y), gradient)
            if len(unbroken) == 0:
                return
            at = pgd_step(unbroken.target, at, gradient, rate, self.norm)
        unbroken.set_aside(at, unbroken.target.classifier.wrong(at, unbroken.target.y))


@torch.no_grad()
def pgd_step(
    target: Target,
    at: Float[Tensor, "n *d"],
    gradient: Float[Tensor, "n *d"],
    rate: float,
    norm: str,
) -> Float[Tensor, "n *d"]:
    """Return the iterates after one step of ``rate`` times the budget."""
    step = (at - target.x).add_(steepest(gradient, norm), alpha=rate * target.budget)
    at = projected_in_place(step, target.budget, norm).add_(target.x)
    return target.classifier.clipped_in_place(at)
