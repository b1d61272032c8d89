"""Parts of samples in the gradient of a batch that acts together: batch statistics, dropout.

The gradient of a batch is that of the sum of its outputs times their cotangents. Row i of that sum
is the part of sample i, even where batch statistics make it depend on the other samples. Inner
products of all parts with a vector come from one second derivative: of the gradient of the sum,
weighted by u, along the vector, with respect to u.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor


class TrainingModeParts:
    """Parts of the samples of a batch, known by their inner products."""

    def __init__(
        self,
        outputs: Float[Tensor, "n *c"],
        cotangents: Float[Tensor, "n *c"],
        parameters: Sequence[Tensor],
        slices: Sequence[slice],
    ) -> None:
        """Differentiate once.

        Args:
            outputs: Outputs of the batch in training mode, with their graph.
            cotangents: Derivatives of the loss by them.
            parameters: What was trained.
            slices: Their places in one row.
        """
        with torch.enable_grad():
            terms = (outputs * cotangents).flatten(1).sum(1)
            self._shares = torch.ones_like(terms, requires_grad=True)
            self._gradients = torch.autograd.grad(
                (terms * self._shares).sum(), parameters, create_graph=True, allow_unused=True
            )
        self._slices = slices

    def products(self, rows: Float[Tensor, "r p"]) -> Float[Tensor, "r n"]:
        """Return their inner products with some rows."""
        return torch.stack([self._along(row, range(len(self._slices))) for row in rows])

    def by_tensor(self, rows: Float[Tensor, "r p"]) -> Float[Tensor, "l r n"]:
        """Return the part of every parameter tensor in them."""
        return torch.stack(
            [
                torch.stack([self._along(row, [number]) for row in rows])
                for number in range(len(self._slices))
            ]
        )

    def written(self, which: Int64[Tensor, " m"]) -> Float[Tensor, "m p"]:
        """Return some of the parts, one derivative for each."""
        raise NotImplementedError("parts of a batch that acts together are not written out")

    def _along(self, row: Float[Tensor, " p"], numbers: Sequence[int]) -> Float[Tensor, " n"]:
        chosen = [(self._gradients[k], self._slices[k]) for k in numbers]
        pairs = [
            (gradient, row[own].view_as(gradient).to(gradient.dtype))
            for gradient, own in chosen
            if getattr(gradient, "requires_grad", False)  # None where nothing depends on it
        ]
        if not pairs:
            return torch.zeros(len(self._shares), dtype=torch.float64)
        (parts,) = torch.autograd.grad(
            [gradient for gradient, _ in pairs],
            self._shares,
            grad_outputs=[vector for _, vector in pairs],
            retain_graph=True,
            materialize_grads=True,
        )
        return parts.double()
