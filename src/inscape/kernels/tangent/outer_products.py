"""Gradients of a chain of linear maps, kept as the outer products that they are, map by map."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn


@dataclass(frozen=True)
class Layer:
    """One linear map of a chain: where its weight and bias begin among all parameters."""

    inputs: int
    outputs: int
    weight: int
    bias: int | None
    activation: nn.Module | None

    @property
    def end(self) -> int:
        """Return where its weight ends."""
        return self.weight + self.inputs * self.outputs

    def of(self, weights: Float[Tensor, " p"]) -> tuple[Tensor, Tensor | None]:
        """Return its matrix and its bias out of all weights."""
        matrix = weights[self.weight : self.end].view(self.outputs, self.inputs)
        return matrix, None if self.bias is None else weights[self.bias : self.bias + self.outputs]


#: Bytes that written-out gradients of samples may take at once, beyond those of one sample.
WRITTEN = 2**26


class Outers:
    """Gradients of samples: for each map what came in and what came back."""

    def __init__(
        self, layers: Sequence[Layer], taken: Sequence[Tensor], back: Sequence[Tensor]
    ) -> None:
        self._layers, self._taken, self._back = layers, taken, back
        self._widest = max(layer.inputs for layer in layers)

    def products(self, rows: Float[Tensor, "r p"]) -> Float[Tensor, "r n"]:
        """Return their inner products with some rows, whichever way has less to write."""
        if len(rows) < self._widest:
            parts = [_total(self._products(rows, piece)) for piece in self._pieces(rows)]
            return torch.cat(parts, dim=1)
        if self._all is not None:
            return rows @ self._all
        return torch.cat([rows @ self._across(piece) for piece in self._pieces(rows)], dim=1)

    def by_tensor(self, rows: Float[Tensor, "r p"]) -> Float[Tensor, "l r n"]:
        """Return the part of every parameter tensor in them."""
        pieces = [torch.stack(list(self._products(rows, piece))) for piece in self._pieces(rows)]
        return torch.cat(pieces, dim=2)

    def written(self, which: Int64[Tensor, " m"]) -> Float[Tensor, "m p"]:
        """Return some of the gradients written out."""
        return self._across(which).T

    @cached_property
    def _all(self) -> Float[Tensor, "p n"] | None:
        """Return all gradients written out, if they take no more than a block."""
        n = len(self._taken[0])
        return self._across(slice(None)) if 8 * n * self._size <= WRITTEN else None

    @property
    def _size(self) -> int:
        last = self._layers[-1]
        return last.end if last.bias is None else last.bias + last.outputs

    def _pieces(self, rows: Tensor) -> list[slice]:
        """Return the samples in pieces of which no more than a block is written out at once."""
        outputs = max(layer.outputs for layer in self._layers)
        written = self._size if len(rows) >= self._widest else len(rows) * outputs
        step = max(1, WRITTEN // (8 * written))
        return [slice(k, k + step) for k in range(0, len(self._taken[0]), step)]

    def _across(self, which: slice | Tensor) -> Float[Tensor, "p m"]:
        """Return gradients with samples side by side, so that products run along many numbers."""
        found = self._back[0].new_empty(self._size, len(self._back[0][which]))
        for layer, a, g in zip(self._layers, self._taken, self._back, strict=True):
            across, back = a[which].T.contiguous(), g[which].T.contiguous()
            into = found[layer.weight : layer.end].view(layer.outputs, layer.inputs, -1)
            torch.mul(back[:, None], across, out=into)
            if layer.bias is not None:
                found[layer.bias : layer.bias + layer.outputs] = back
        return found

    def _products(self, rows: Float[Tensor, "r p"], some: slice) -> Iterator[Float[Tensor, "r n"]]:
        for layer, taken, back in zip(self._layers, self._taken, self._back, strict=True):
            a, g = taken[some], back[some]
            own = rows[:, layer.weight : layer.end].view(-1, layer.outputs, layer.inputs)
            yield torch.bmm(own, a.T.expand(len(own), -1, -1)).mul_(g.T).sum(1)
            if layer.bias is not None:
                yield rows[:, layer.bias : layer.bias + layer.outputs] @ g.T


class OuterAverage:
    """Gradients of all outputs of queries along a step: terms of their sums over places."""

    def __init__(
        self,
        layers: Sequence[Layer],
        taken: Sequence[Float[Tensor, "q _ _"]],
        back: Sequence[Float[Tensor, "q m c _"]],
        moved: Sequence[Float[Tensor, "q _ _"]],
    ) -> None:
        self._layers, self._taken, self._back, self._moved = layers, taken, back, moved

    def along(self) -> Float[Tensor, "q c"]:
        """Return their inner products with the step."""
        found = [
            (g @ moved[..., None]).sum((1, 3))
            for g, moved in zip(self._back, self._moved, strict=True)
        ]
        return torch.stack(found).sum(0)

    def write(self, into: Float[Tensor, "q c p"]) -> None:
        """Write them out; what comes into the first map is the same at all places."""
        for layer, a, g in zip(self._layers, self._taken, self._back, strict=True):
            own = into[:, :, layer.weight : layer.end]
            whole = g.sum(1)
            if a.shape[1] == 1:
                wide = own.view(*whole.shape, layer.inputs)
                torch.mul(whole[..., None], a[:, :, None], out=wide)
            else:
                own.copy_((g.flatten(2).transpose(1, 2) @ a).view_as(own))
            if layer.bias is not None:
                into[:, :, layer.bias : layer.bias + layer.outputs] = whole


def _total(parts: Iterator[Tensor]) -> Tensor:
    total = next(parts)
    for part in parts:
        total += part
    return total
