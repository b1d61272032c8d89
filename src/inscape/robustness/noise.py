"""White noise: the mildest test, and no attack at all."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from inscape.robustness.attack import Attack, Target


@dataclass(frozen=True, kw_only=True)
class Noise(Attack):
    r"""Gaussian noise of standard deviation ``budget`` on every input.

    .. math:: x' = x + c \, \varepsilon, \quad \varepsilon \sim N(0, I)

    No search: a point counts as right in the fraction of draws in which it is. Bounds, if any,
    clip the noisy inputs.
    """

    draws: int = 10

    follows_gradients = False

    def passes(self, classes: int) -> float:
        """Return one pass for each draw."""
        return float(self.draws)

    def perturb(self, target: Target) -> Float[Tensor, "n *d"]:
        """Return one draw for each point."""
        noise = target.draws.normal(target.x)
        return target.classifier.clipped(target.x + target.budget * noise)
