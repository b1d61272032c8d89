"""The four smoothness penalties, with hand-written gradients for one hidden layer of ReLUs.

With ``A`` the output weights of the active units (one row per point) and ``W`` the first layer,
the gradient of the function is ``A W``. So a norm of it costs three products with ``W``: one for
the value, one back to the output weights, one for the weights. Its change along a segment is a sum
over the few units that switch, and path lengths need only the pre-activations at both ends.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from inscape.training.shallow.kernels import (
    active_weights,
    add_where_on,
    gradient_path,
    normalise_rows,
    path,
    shrink_units,
)

#: Knots on a segment (Volhejn, Eq. 4.7).
KNOTS = 10


class Penalty(ABC):
    """A penalty that adds its gradient to that of the loss."""

    #: Whether it leaves the weights in the span of the training points.
    in_span: ClassVar[bool] = True
    #: Whether it scales the weights outside of that span, each unit by its own factor.
    stretches: ClassVar[bool] = False
    #: Whether the weights of each unit should be contiguous in memory.
    by_unit: ClassVar[bool] = False

    def __init__(self, coefficient: float) -> None:
        self.coefficient = coefficient

    @abstractmethod
    def step(self, w: Tensor, z: Tensor, a: Tensor, dz: Tensor, da: Tensor, lr: float) -> float:
        """Add the gradient to ``dz`` and ``da``, or update ``w`` where that is not enough.

        ``w`` has one column per unit and the biases as its last row.

        Return the penalty of the batch, without its coefficient.
        """


class GradientNorm(Penalty):
    """Mean norm of the gradient at the points of the batch."""

    in_span = False

    def step(self, w: Tensor, z: Tensor, a: Tensor, dz: Tensor, da: Tensor, lr: float) -> float:
        """Add the gradient of the penalty."""
        w = w[:-1]
        active = torch.empty_like(z)
        active_weights(z.numpy(), a.numpy(), active.numpy())
        gradients = active @ w.T
        total = normalise_rows(gradients.numpy(), self.coefficient / len(z), a.numpy())
        add_where_on(z.numpy(), (gradients @ w).numpy(), da.numpy())
        w.addmm_(gradients.T, active, alpha=-lr)
        return float(total) / len(z)


class PathLength(Penalty):
    """Sum of the path lengths of the pairs of the batch."""

    def step(self, w: Tensor, z: Tensor, a: Tensor, dz: Tensor, da: Tensor, lr: float) -> float:
        """Add the gradient of the penalty."""
        t = torch.linspace(0, 1, KNOTS, dtype=z.dtype).numpy()
        return float(path(z.numpy(), a.numpy(), self.coefficient, t, dz.numpy(), da.numpy()))


class GradientPathLength(Penalty):
    """Sum of the gradient path lengths of the pairs of the batch."""

    in_span = False
    by_unit = True

    def step(self, w: Tensor, z: Tensor, a: Tensor, dz: Tensor, da: Tensor, lr: float) -> float:
        """Add the gradient of the penalty."""
        t = torch.linspace(0, 1, KNOTS, dtype=z.dtype).numpy()
        buffer = z.new_empty(len(z) // 2 * (KNOTS - 1), len(w) - 1).numpy()
        rows = w.T.numpy()
        return float(
            gradient_path(z.numpy(), a.numpy(), self.coefficient, lr, t, rows, buffer, da.numpy())
        )


class WeightsProduct(Penalty):
    """Sum over units of the product of their weights' norms."""

    stretches = True

    def step(self, w: Tensor, z: Tensor, a: Tensor, dz: Tensor, da: Tensor, lr: float) -> float:
        """Add the gradient of the penalty."""
        return float(shrink_units(w[:-1].numpy(), a.numpy(), self.coefficient, lr, da.numpy()))


PENALTIES: dict[str, type[Penalty]] = {
    "gradient_norm": GradientNorm,
    "path_length": PathLength,
    "gradient_path_length": GradientPathLength,
    "weights_product": WeightsProduct,
}
