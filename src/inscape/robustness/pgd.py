"""PGD: many small steps along the gradient, never leaving the ball."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import checks
from inscape.robustness.attack import Perturbing, Standing, Stepwise, Target
from inscape.robustness.classifier import cross_entropy, mistaken
from inscape.robustness.norm_balls import inside, projected_in_place, steepest


@dataclass(frozen=True, kw_only=True)
class Pgd(Stepwise):
    r"""Projected gradient ascent of the cross-entropy from a random start.

    .. math:: x_{k+1} = P \bigl( x_k + \eta \, s(\nabla_x \, \ell(f(x_k), y)) \bigr)

    with :math:`s` the steepest step of norm one and :math:`P` the projection onto the ball and the
    bounds (Madry et al. 2018). Every iterate is looked at, and a point that has fallen is left
    alone: more steps of one ``step_size`` can only break more points. ``step_size`` is a share of
    the budget; None takes 2.5 / steps, so that a point can cross the ball and turn back. These
    steps are other ones for each number of them, and more break more points only as a rule.
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
                f"step_size must be a positive share of the budget, found {self.step_size}: "
                "use None for 2.5 / steps."
            )

    def passes(self, classes: int) -> float:
        """Return a gradient for each step, and a last look."""
        return self.restarts * (3.0 * self.steps + 1)

    def search(self, target: Target) -> Perturbing:
        """Return the first wrong iterate of each point, or the point itself if there is none."""
        standing = Standing(target)
        for restart in range(self.restarts):
            if len(standing) == 0:
                break
            yield from self._climb(standing, self._start(standing.target, restart))
        return standing.found

    def _start(self, target: Target, restart: int) -> Float[Tensor, "n *d"]:
        if not self.random_start:
            return target.x
        step = inside(target.x, self.norm, target.draws.child(restart))
        return target.classifier.boxed(target.x + target.budget * step)

    def _climb(self, standing: Standing, at: Float[Tensor, "n *d"]) -> Iterator[None]:
        rate = 2.5 / self.steps if self.step_size is None else self.step_size
        for _ in range(self.steps):
            now = standing.target
            scores, _, gradient = now.classifier.climb(at, now.y, cross_entropy)
            now.tick(3.0 * len(at))
            yield
            at, gradient = standing.fell(at, mistaken(scores, now.y), gradient)
            if len(standing) == 0:
                return
            at = stepped(standing.target, at, gradient, rate, self.norm)
        standing.fell(at, standing.target.classifier.wrong(at, standing.target.y))


@torch.no_grad()
def stepped(
    target: Target,
    at: Float[Tensor, "n *d"],
    gradient: Float[Tensor, "n *d"],
    rate: float,
    norm: str,
) -> Float[Tensor, "n *d"]:
    """Return the iterates after one step of ``rate`` times the budget."""
    step = (at - target.x).add_(steepest(gradient, norm), alpha=rate * target.budget)
    at = projected_in_place(step, target.budget, norm).add_(target.x)
    return target.classifier.boxed_in_place(at)
