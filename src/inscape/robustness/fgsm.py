"""FGSM: one step along the gradient, in the readings that papers give the name to."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from inscape._core import checks
from inscape.robustness.attack import Attack, Target
from inscape.robustness.classifier import cross_entropy
from inscape.robustness.norm_balls import broadcastable, size, steepest

READINGS = ("steepest", "sign")


@dataclass(frozen=True, kw_only=True)
class Fgsm(Attack):
    r"""One step of length ``budget`` up the cross-entropy.

    .. math:: x' = x + c \, \frac{g}{\lVert g \rVert_2} \;\text{(steepest, l2)}, \qquad
              x' = x + c \, \frac{\mathrm{sign}(g)}{\lVert \mathrm{sign}(g) \rVert_2}
              \;\text{(sign, l2)}, \qquad x' = x + c \, \mathrm{sign}(g) \;\text{(linf)}

    Goodfellow et al. (2015) step by the sign in the maximum norm. Klindt (2023) bounds the step in
    L2 and names the same attack (erratum K6): ``reading`` selects either interpretation.
    """

    reading: Literal["steepest", "sign"] = "steepest"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(READINGS, reading=self.reading)

    @property
    def name(self) -> str:
        """Return ``fgsm``, or ``fgsm-sign`` for the sign step rescaled to an L2 norm."""
        return "fgsm-sign" if self.norm == "l2" and self.reading == "sign" else "fgsm"

    def passes(self, classes: int) -> float:
        """Return a gradient and a look at where the step ends."""
        return 4.0

    def perturb(self, target: Target) -> Float[Tensor, "n *d"]:
        """Return the end of the step from each point."""
        _, _, gradient = target.classifier.loss_gradient(target.x, target.y, cross_entropy)
        step = steepest(gradient, "linf" if self.reading == "sign" else self.norm)
        if self.reading == "sign" and self.norm == "l2":
            step = step / broadcastable(size(step, "l2").clamp_min(1.0), step)
        target.tick(3.0 * len(target.x))
        return target.classifier.clipped(target.x + target.budget * step)
