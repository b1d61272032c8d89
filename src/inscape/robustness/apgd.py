"""APGD: projected gradient ascent with an adaptive step size."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from inscape._core import checks
from inscape.robustness._losses import difference_ratio, ratio_towards, rivals
from inscape.robustness.attack import Perturbing, Stepwise, Target, Unbroken
from inscape.robustness.classifier import PointLoss, cross_entropy, misclassified
from inscape.robustness.norm_balls import Draws, broadcastable, steepest, uniform_on_sphere

LOSSES = {"ce": "apgd-ce", "dlr": "apgd-dlr", "targeted": "apgd-t"}
#: Weight of the gradient step; the rest is momentum.
MOMENTUM = 0.75
#: The step is halved if fewer than this fraction of steps since the checkpoint raised the loss.
RISING = 0.75


@dataclass(frozen=True, kw_only=True)
class Apgd(Stepwise):
    r"""Auto-PGD (Croce and Hein 2020): ascent with momentum and a step size that halves.

    .. math:: z = P(x_k + \eta_k \, s(\nabla_x \ell)), \qquad
              x_{k+1} = P \bigl( x_k + \alpha (z - x_k) + (1 - \alpha)(x_k - x_{k-1}) \bigr)

    The first step is twice the budget. At checkpoints that come ever closer, points whose loss rose
    in too few steps, or whose best loss stood still at an unchanged step, go back to where it was
    best with half the step. ``loss`` is the cross-entropy (``"ce"``), the difference of logits
    ratio (``"dlr"``), or that towards each of the likeliest ``goals`` other classes in turn
    (``"targeted"``).
    """

    loss: Literal["ce", "dlr", "targeted"] = "ce"
    steps: int = 100
    restarts: int = 1
    goals: int = 9

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(tuple(LOSSES), loss=self.loss)
        checks.whole(1, steps=self.steps, restarts=self.restarts, goals=self.goals)

    @property
    def name(self) -> str:
        """Return ``apgd-ce``, ``apgd-dlr`` or ``apgd-t``."""
        return LOSSES[self.loss]

    def passes(self, classes: int) -> float:
        """Return a gradient for each step of each run."""
        goals = min(self.goals, classes - 1) if self.loss == "targeted" else 1
        return 3.0 * (self.steps + 1) * self.restarts * goals

    def search(self, target: Target) -> Perturbing:
        """Return the first wrong iterate of each point, or the point itself if there is none."""
        unbroken = Unbroken(target)
        goals = torch.zeros(len(target.y), 1, dtype=torch.long, device=target.y.device)
        if self.loss == "targeted":
            goals = rivals(target.classifier, target.x, target.y, self.goals)
        for k in range(goals.shape[1]):
            for restart in range(self.restarts):
                if len(unbroken):
                    draws = unbroken.target.draws.child(k, restart)
                    yield from self._run(unbroken, goals[:, k], draws)
        return unbroken.candidates

    def _loss(self, goal: Int64[Tensor, " n"]) -> PointLoss:
        if self.loss == "targeted":
            return ratio_towards(goal)
        return cross_entropy if self.loss == "ce" else difference_ratio

    def _run(
        self, unbroken: Unbroken, goals: Int64[Tensor, " all"], draws: Draws
    ) -> Iterator[None]:
        now = unbroken.target
        at = now.x + now.budget * uniform_on_sphere(now.x, self.norm, draws)
        loss_gradient = _Climb(self, unbroken, goals, now.within(at, self.norm))
        looks = checkpoints(self.steps)
        for step in range(1, self.steps + 1):
            if len(unbroken) == 0:
                return
            yield
            loss_gradient.move(first=step == 1)
            if step in looks and len(unbroken):
                loss_gradient.look(looks[step])


def checkpoints(steps: int) -> dict[int, int]:
    """Return the steps after which the step size is looked at, and the steps since the last one.

    >>> checkpoints(100)
    {22: 22, 41: 19, 57: 16, 70: 13, 80: 10, 87: 7, 93: 6, 99: 6}
    """
    fractions = [0.0, 0.22]
    while fractions[-1] < 1:
        fractions.append(fractions[-1] + max(fractions[-1] - fractions[-2] - 0.03, 0.06))
    at = sorted(
        {math.ceil(round(fraction * steps, 9)) for fraction in fractions[1:] if fraction <= 1}
    )
    return {now: now - before for before, now in zip([0, *at], at, strict=False)}


class _Climb:
    """One run of APGD: the state of every standing point."""

    def __init__(
        self,
        attack: Apgd,
        unbroken: Unbroken,
        goals: Int64[Tensor, " all"],
        at: Float[Tensor, "n *d"],
    ) -> None:
        self.attack, self.unbroken, self.goals = attack, unbroken, goals
        target = unbroken.target
        n = len(at)
        self.eta = torch.full((n,), 2 * target.budget, dtype=at.dtype, device=at.device)
        self.risen = torch.zeros_like(self.eta)
        self.halved = torch.ones(n, dtype=torch.bool, device=at.device)
        self.best_loss = self.last_loss = self.last_best = torch.full_like(self.eta, -torch.inf)
        self.best = self.before = self.at = at
        self.best_gradient = self.gradient = torch.zeros_like(at)
        self._arrive(at)
        self.risen.zero_()
        self.last_best = self.best_loss

    def _arrive(self, at: Float[Tensor, "n *d"]) -> None:
        """Evaluate new iterates: remove the wrong ones, keep the best so far."""
        target = self.unbroken.target
        loss = self.attack._loss(self.goals[self.unbroken.rows])
        scores, losses, gradient = target.classifier.loss_gradient(at, target.y, loss)
        target.tick(3.0 * len(at))
        wrong = misclassified(scores, target.y)
        tensors = (self.at, self.best, self.best_gradient, gradient, losses, self.eta)
        counts = (self.risen, self.halved, self.best_loss, self.last_loss, self.last_best)
        at, *thinned = self.unbroken.set_aside(at, wrong, *tensors, *counts)
        self.before, self.best, self.best_gradient, self.gradient, losses, self.eta = thinned[:6]
        self.risen, self.halved, self.best_loss, self.last_loss, self.last_best = thinned[6:]
        self.at = at
        self.risen = self.risen + (losses > self.last_loss)
        self.last_loss = losses
        self._improve(losses > self.best_loss, losses)

    def _improve(self, better: Bool[Tensor, " n"], losses: Float[Tensor, " n"]) -> None:
        rows = broadcastable(better, self.at)
        self.best = torch.where(rows, self.at, self.best)
        self.best_gradient = torch.where(rows, self.gradient, self.best_gradient)
        self.best_loss = torch.where(better, losses, self.best_loss)

    def move(self, *, first: bool) -> None:
        """Make one step with momentum."""
        target, norm = self.unbroken.target, self.attack.norm
        step = steepest(self.gradient, norm) * broadcastable(self.eta, self.at)
        at = target.within(self.at + step, norm)
        if not first:
            onward = (1 - MOMENTUM) * (self.at - self.before)
            at = target.within(self.at + MOMENTUM * (at - self.at) + onward, norm)
        self._arrive(at)

    def look(self, since: int) -> None:
        """Halve the step of points that do not rise, and send them back to their best."""
        stuck = ~self.halved & (self.best_loss <= self.last_best)
        halve = (self.risen < RISING * since) | stuck
        self.eta = torch.where(halve, self.eta / 2, self.eta)
        rows = broadcastable(halve, self.at)
        self.at = torch.where(rows, self.best, self.at)
        self.gradient = torch.where(rows, self.best_gradient, self.gradient)
        self.halved, self.last_best = halve, self.best_loss
        self.risen = torch.zeros_like(self.risen)
