"""Contributions of samples to the gradient of a batch in training mode (batch norm, dropout).

The gradient of a batch is that of the sum of its outputs times their cotangents. Term i of that sum
is the contribution of sample i, even where batch statistics make it depend on the other samples.
The inner products of all contributions with a vector v come from one second derivative: with
weights u on the terms, differentiate the inner product of the gradient and v by u.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor


class TrainingModeGradients:
    """Contributions of the samples of a batch, given by their inner products with vectors."""

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
            parameters: The trained parameters.
            slices: Their slices in the flat weight vector.
        """
        with torch.enable_grad():
            terms = (outputs * cotangents).flatten(1).sum(1)
            self._term_weights = torch.ones_like(terms, requires_grad=True)
            self._gradients = torch.autograd.grad(
                (terms * self._term_weights).sum(), parameters, create_graph=True, allow_unused=True
            )
        self._slices = slices

    def products(self, vectors: Float[Tensor, "r p"]) -> Float[Tensor, "r n"]:
        """Return the inner products with some vectors."""
        return torch.stack(
            [self._inner_products(vector, range(len(self._slices))) for vector in vectors]
        )

    def by_tensor(self, vectors: Float[Tensor, "r p"]) -> Float[Tensor, "l r n"]:
        """Return the terms of every parameter tensor in these inner products."""
        return torch.stack(
            [
                torch.stack([self._inner_products(vector, [index]) for vector in vectors])
                for index in range(len(self._slices))
            ]
        )

    def dense(self, which: Int64[Tensor, " m"]) -> Float[Tensor, "m p"]:
        """Raise: contributions in training mode have no dense form."""
        raise NotImplementedError("contributions of a batch in training mode have no dense form")

    def _inner_products(
        self, direction: Float[Tensor, " p"], tensors: Sequence[int]
    ) -> Float[Tensor, " n"]:
        gradients = [(self._gradients[k], self._slices[k]) for k in tensors]
        pairs = [
            (gradient, direction[columns].view_as(gradient).to(gradient.dtype))
            for gradient, columns in gradients
            if getattr(gradient, "requires_grad", False)  # None where nothing depends on it
        ]
        if not pairs:
            return torch.zeros(len(self._term_weights), dtype=torch.float64)
        (products,) = torch.autograd.grad(
            [gradient for gradient, _ in pairs],
            self._term_weights,
            grad_outputs=[vector for _, vector in pairs],
            retain_graph=True,
            materialize_grads=True,
        )
        return products.double()
