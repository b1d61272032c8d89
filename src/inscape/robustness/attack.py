"""Attacks: settings and a search for perturbations that the classifier gets wrong."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, fields, replace

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from inscape._core import checks
from inscape._core.anytime import finished
from inscape.robustness.classifier import AttackedClassifier
from inscape.robustness.norm_balls import NORMS, Draws, Norm, projected

#: Steps of an attack, one for each batch of the model; at the end where it would move the points.
Perturbing = Generator[None, None, Float[Tensor, "n *d"]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Target:
    """Points that are right so far, with the step that an attack may make from them.

    ``tick`` counts single-point passes, for the progress bar.
    """

    classifier: AttackedClassifier
    x: Float[Tensor, "n *d"]
    y: Int64[Tensor, " n"]
    budget: float
    draws: Draws
    tick: Callable[[float], None] = field(default=lambda passes: None)

    def within(self, at: Float[Tensor, "n *d"], norm: str) -> Float[Tensor, "n *d"]:
        """Return points brought back into the ball around ``x`` and into the bounds."""
        return self.classifier.clipped(self.x + projected(at - self.x, self.budget, norm))

    def of(self, chosen: Bool[Tensor, " n"] | Int64[Tensor, " m"]) -> "Target":
        """Return a subset of the points, by a mask or indices."""
        return replace(self, x=self.x[chosen], y=self.y[chosen], draws=self.draws.of(chosen))


@dataclass(frozen=True, kw_only=True)
class Attack:
    """Settings of an attack; ``perturb`` returns one candidate for each point.

    A candidate need not succeed: the search looks at each, and keeps those that do.
    """

    norm: Norm = "l2"

    #: Whether it uses gradients, and so fails where they vanish.
    follows_gradients = True
    #: Whether it seeks the smallest step that breaks, so that one run answers for every budget.
    minimal = False

    def __post_init__(self) -> None:
        checks.one_of(NORMS, norm=self.norm)

    @property
    def name(self) -> str:
        """Return the name by which ``robustness`` knows the attack."""
        return type(self).__name__.lower()

    def passes(self, classes: int) -> float:
        """Return how many single-point forward passes one point takes at most."""
        raise NotImplementedError(f"{type(self).__name__} must define passes().")

    def perturb(self, target: Target) -> Float[Tensor, "n *d"]:
        """Return where the attack would move each point."""
        raise NotImplementedError(f"{type(self).__name__} must define perturb().")

    def search(self, target: Target) -> Perturbing:
        """Yield after each batch of the model, and return what ``perturb`` does."""
        yield
        return self.perturb(target)

    def __str__(self) -> str:
        chosen = [f"{f.name}={getattr(self, f.name)}" for f in fields(self) if f.name != "norm"]
        return f"{self.name}({', '.join([self.norm, *chosen])})"


class Stepwise(Attack):
    """An attack that can be stopped after each batch: it defines ``search`` alone."""

    def perturb(self, target: Target) -> Float[Tensor, "n *d"]:
        """Return where the attack would move each point."""
        return finished(self.search(target))


class Unbroken:
    """The points that an attack has not broken yet.

    Tensors with one row for each unbroken point are filtered together.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.rows = torch.arange(len(target.x), device=target.x.device)
        self.candidates = target.x.clone()

    def __len__(self) -> int:
        return len(self.rows)

    def set_aside(
        self, at: Float[Tensor, "m *d"], wrong: Bool[Tensor, " m"], *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        """Remove the points that are wrong at ``at``; return the tensors of the others."""
        if not bool(wrong.any()):
            return (at, *tensors)
        self.candidates[self.rows[wrong]] = at[wrong]
        right = ~wrong
        self.rows = self.rows[right]
        self.target = self.target.of(right)
        return tuple(tensor[right] for tensor in (at, *tensors))
