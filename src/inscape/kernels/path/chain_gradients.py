"""Gradients of a chain of linear layers, stored as outer products layer by layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn


@dataclass(frozen=True)
class ChainLayer:
    """One linear layer of a chain: the offsets of its weight and bias in the flat weight vector."""

    inputs: int
    outputs: int
    weight: int
    bias: int | None
    activation: nn.Module | None

    @property
    def end(self) -> int:
        """Return the offset of the end of its weight."""
        return self.weight + self.inputs * self.outputs

    def of(self, weights: Float[Tensor, " p"]) -> tuple[Tensor, Tensor | None]:
        """Return its matrix and its bias."""
        matrix = weights[self.weight : self.end].view(self.outputs, self.inputs)
        return matrix, None if self.bias is None else weights[self.bias : self.bias + self.outputs]


#: Bytes of a block of dense per-sample gradients, beyond those of one sample.
DENSE_BYTES = 2**26


class ChainSampleGradients:
    """Per-sample gradients: for each layer its inputs and cotangents."""

    def __init__(
        self, layers: Sequence[ChainLayer], inputs: Sequence[Tensor], cotangents: Sequence[Tensor]
    ) -> None:
        self._layers, self._inputs, self._cotangents = layers, inputs, cotangents
        self._largest_fan_in = max(layer.inputs for layer in layers)

    def products(self, vectors: Float[Tensor, "r p"]) -> Float[Tensor, "r n"]:
        """Return the inner products with some vectors, by the form with fewer entries."""
        if len(vectors) < self._largest_fan_in:
            parts = [_total(self._products(vectors, block)) for block in self._blocks(vectors)]
            return torch.cat(parts, dim=1)
        if self._cached_dense is not None:
            return vectors @ self._cached_dense
        return torch.cat(
            [vectors @ self._transposed_dense(block) for block in self._blocks(vectors)], dim=1
        )

    def by_tensor(self, vectors: Float[Tensor, "r p"]) -> Float[Tensor, "l r n"]:
        """Return the terms of every parameter tensor in these inner products."""
        blocks = [
            torch.stack(list(self._products(vectors, block))) for block in self._blocks(vectors)
        ]
        return torch.cat(blocks, dim=2)

    def dense(self, samples: Int64[Tensor, " m"]) -> Float[Tensor, "m p"]:
        """Return the dense gradients of some samples."""
        return self._transposed_dense(samples).T

    @cached_property
    def _cached_dense(self) -> Float[Tensor, "p n"] | None:
        """Return all dense gradients, if they fit into a block."""
        n = len(self._inputs[0])
        return self._transposed_dense(slice(None)) if 8 * n * self._size <= DENSE_BYTES else None

    @property
    def _size(self) -> int:
        last = self._layers[-1]
        return last.end if last.bias is None else last.bias + last.outputs

    def _blocks(self, vectors: Tensor) -> list[slice]:
        """Return slices of the samples whose dense gradients fit into a block."""
        outputs = max(layer.outputs for layer in self._layers)
        entries = self._size if len(vectors) >= self._largest_fan_in else len(vectors) * outputs
        step = max(1, DENSE_BYTES // (8 * entries))
        return [slice(k, k + step) for k in range(0, len(self._inputs[0]), step)]

    def _transposed_dense(self, samples: slice | Tensor) -> Float[Tensor, "p m"]:
        """Return dense gradients with samples as the last axis, for long inner loops."""
        gradients = self._cotangents[0].new_empty(self._size, len(self._cotangents[0][samples]))
        for layer, a, g in zip(self._layers, self._inputs, self._cotangents, strict=True):
            a_t, g_t = a[samples].T.contiguous(), g[samples].T.contiguous()
            weight_gradient = gradients[layer.weight : layer.end].view(
                layer.outputs, layer.inputs, -1
            )
            torch.mul(g_t[:, None], a_t, out=weight_gradient)
            if layer.bias is not None:
                gradients[layer.bias : layer.bias + layer.outputs] = g_t
        return gradients

    def _products(
        self, vectors: Float[Tensor, "r p"], samples: slice
    ) -> Iterator[Float[Tensor, "r n"]]:
        for layer, inputs, cotangents in zip(
            self._layers, self._inputs, self._cotangents, strict=True
        ):
            a, g = inputs[samples], cotangents[samples]
            matrices = vectors[:, layer.weight : layer.end].view(-1, layer.outputs, layer.inputs)
            yield torch.bmm(matrices, a.T.expand(len(matrices), -1, -1)).mul_(g.T).sum(1)
            if layer.bias is not None:
                yield vectors[:, layer.bias : layer.bias + layer.outputs] @ g.T


class ChainAverage:
    """Average gradients of all outputs at queries: terms of their sums over quadrature nodes."""

    def __init__(
        self,
        layers: Sequence[ChainLayer],
        inputs: Sequence[Float[Tensor, "q _ _"]],
        cotangents: Sequence[Float[Tensor, "q m c _"]],
        changes: Sequence[Float[Tensor, "q _ _"]],
    ) -> None:
        self._layers, self._inputs, self._cotangents, self._changes = (
            layers,
            inputs,
            cotangents,
            changes,
        )

    def directional_derivatives(self) -> Float[Tensor, "q c"]:
        """Return the inner products with the step: the derivatives along it."""
        terms = [
            (g @ change[..., None]).sum((1, 3))
            for g, change in zip(self._cotangents, self._changes, strict=True)
        ]
        return torch.stack(terms).sum(0)

    def write(self, target: Float[Tensor, "q c p"]) -> None:
        """Write the dense gradients; the input of the first layer is the same at all nodes."""
        for layer, a, g in zip(self._layers, self._inputs, self._cotangents, strict=True):
            weight_gradient = target[:, :, layer.weight : layer.end]
            total = g.sum(1)
            if a.shape[1] == 1:
                outer = weight_gradient.view(*total.shape, layer.inputs)
                torch.mul(total[..., None], a[:, :, None], out=outer)
            else:
                weight_gradient.copy_((g.flatten(2).transpose(1, 2) @ a).view_as(weight_gradient))
            if layer.bias is not None:
                target[:, :, layer.bias : layer.bias + layer.outputs] = total


def _total(parts: Iterator[Tensor]) -> Tensor:
    total = next(parts)
    for part in parts:
        total += part
    return total
