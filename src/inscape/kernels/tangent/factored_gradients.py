"""Per-sample gradients of outputs by parameters, stored as outer products where they are such.

The gradient of the weight of a linear layer at one sample is the outer product of its cotangent and
its input, so the inner product of two such gradients is the product of two short inner products.
Other gradients are sums of outer products (convolutions, weights used at many positions), or dense
and computed for a block of parameters at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional

#: Bytes of a block of dense gradients, beyond those of one output channel.
BLOCK_BYTES = 2**24


@dataclass(frozen=True, eq=False, kw_only=True)
class OuterProduct:
    """Gradients g a^T, one outer product per output r and sample n; with a bias, also g."""

    names: tuple[str, ...]
    a: Float[Tensor, "n i"]
    g: Float[Tensor, "r n o"]
    bias: bool

    @cached_property
    def squared_norms(self) -> Float[Tensor, "r n"]:
        """Return the squared norms of the gradients."""
        return self.g.square().sum(2) * (self.a.square().sum(1) + self.bias)

    @cached_property
    def common_cotangent(self) -> Float[Tensor, "r o"] | None:
        """Return the cotangent if it is equal at all samples, as at the last layer."""
        ends = self.g[:, :: max(1, len(self.a) - 1)]
        if not torch.equal(ends, self.g[:, :1].expand_as(ends)):
            return None
        return self.g[:, 0] if torch.equal(self.g, self.g[:, :1].expand_as(self.g)) else None

    def dense(self) -> Float[Tensor, "r n p"]:
        """Return dense gradients, the bias after the weight."""
        j = (self.g[..., None] * self.a[:, None]).flatten(2)
        return torch.cat([j, self.g], dim=2) if self.bias else j

    def gram(self, other: "OuterProduct") -> Float[Tensor, "n m"]:
        """Return the Gram matrix of the inputs."""
        inner = self.a @ other.a.T
        return inner.add_(1) if self.bias else inner


@dataclass(frozen=True, eq=False, kw_only=True)
class OuterProductSum:
    """Gradients that are sums over positions t of outer products, stored as their terms.

    ``g`` has cotangents (n, o, t) for each output r: in one tensor, or one tensor per output. In a
    grouped convolution only channels of the same group are multiplied.
    """

    names: tuple[str, ...]
    a: Float[Tensor, "n i t"]
    g: Float[Tensor, "r n o t"] | Sequence[Float[Tensor, "n o t"]]
    bias: bool
    groups: int = 1

    @cached_property
    def squared_norms(self) -> Float[Tensor, "r n"]:
        """Return the squared norms of the gradients."""
        return torch.stack([j.square().sum(2) for j in self.dense_blocks(BLOCK_BYTES)]).sum(0)

    @cached_property
    def active_positions(self) -> Bool[Tensor, " t"]:
        """Return the mask of positions whose cotangents do not all vanish."""
        first = self.g[0][0].ne(0).any(0)
        if bool(first.all()):
            return first
        return torch.stack([g.abs().amax((0, 1)) for g in self.g]).amax(0) != 0

    def at(self, positions: Int64[Tensor, " s"]) -> "OuterProduct | OuterProductSum":
        """Return the sum over the given positions only."""
        if len(positions) == 1:
            g = torch.stack([g[..., positions[0]] for g in self.g])
            return OuterProduct(names=self.names, a=self.a[:, :, positions[0]], g=g, bias=self.bias)
        a = self.a[:, :, positions]
        if isinstance(self.g, Tensor):
            return replace(self, a=a, g=self.g[..., positions])
        return replace(self, a=a, g=[g[..., positions] for g in self.g])

    def dense(self) -> Float[Tensor, "r n p"]:
        """Return dense gradients, the bias after the weight."""
        weight = list(self._weight_gradients(self.g[0].shape[1]))
        return torch.cat([*weight, self._bias_gradient()] if self.bias else weight, dim=2)

    def dense_blocks(self, size: int) -> Iterator[Float[Tensor, "r n _"]]:
        """Yield dense gradients, a few output channels at a time, with their biases."""
        i = self.a.shape[1] // self.groups
        channel = len(self.g) * len(self.a) * i * self.a.element_size()
        if self.bias and self.groups == 1:  # a bias is the weight of an input that is always 1
            a = functional.pad(self.a, (0, 0, 0, 1), value=1.0)
            yield from replace(self, a=a, bias=False)._weight_gradients(max(1, size // channel))
            return
        yield from self._weight_gradients(max(1, size // channel))
        if self.bias:
            yield self._bias_gradient()

    def _bias_gradient(self) -> Float[Tensor, "r n o"]:
        """Return the cotangents summed over positions: the gradient by the bias."""
        if isinstance(self.g, Tensor):
            return self.g.sum(3)
        return torch.stack([g.sum(2) for g in self.g])

    def _weight_gradients(self, channels: int) -> Iterator[Float[Tensor, "r n _"]]:
        r, (n, o, t) = len(self.g), self.g[0].shape
        if self.groups > 1:
            yield from self._grouped(max(1, channels * self.groups // o))
            return
        a = self.a.transpose(1, 2)
        for first in range(0, o, channels):
            channel_slice = slice(first, first + channels)
            if isinstance(self.g, Tensor) and self.g.stride(1) > self.g.stride(0):
                # all outputs of a sample are contiguous: one product for all
                j = torch.bmm(self.g[:, :, channel_slice].transpose(0, 1).reshape(n, -1, t), a)
                yield j.view(n, r, -1).transpose(0, 1)
            else:
                j = a.new_empty(r, n, self.g[0][:, channel_slice].shape[1], a.shape[2])
                for cotangent, target in zip(self.g, j, strict=True):
                    torch.bmm(cotangent[:, channel_slice], a, out=target)
                yield j.flatten(2)

    def _grouped(self, group_count: int) -> Iterator[Float[Tensor, "r n _"]]:
        assert isinstance(self.g, Tensor)
        r, n, _, t = self.g.shape
        g = self.g.reshape(r, n, self.groups, -1, t).permute(1, 2, 0, 3, 4)
        a = self.a.reshape(n, self.groups, -1, t).transpose(2, 3)
        for first in range(0, self.groups, group_count):
            cotangents, activations = (
                g[:, first : first + group_count],
                a[:, first : first + group_count],
            )
            k = cotangents.shape[1]
            j = torch.bmm(cotangents.reshape(n * k, -1, t), activations.flatten(0, 1))
            yield j.view(n, k, r, -1).transpose(1, 2).reshape(n, r, -1).transpose(0, 1)

    @cached_property
    def cotangents(self) -> Float[Tensor, "r nt o"]:
        """Return the cotangents, position after position."""
        if isinstance(self.g, Tensor):
            return self.g.transpose(2, 3).flatten(1, 2)
        return torch.stack([g.transpose(1, 2).flatten(0, 1) for g in self.g])

    def inner(self, other: "OuterProductSum", left: slice, right: slice) -> Float[Tensor, "t s"]:
        """Return the Gram matrix of inputs at all positions of some samples of each set."""
        a, b = (f.transpose(1, 2).flatten(0, 1) for f in (self.a[left], other.a[right]))
        return (a @ b.T).add_(int(self.bias))


@dataclass(frozen=True, eq=False, kw_only=True)
class EmbeddingGradient:
    """Gradients of an embedding with ``rows`` rows, indexed by ``ids`` at positions t."""

    names: tuple[str, ...]
    ids: Int64[Tensor, "n t"]
    g: Float[Tensor, "r n t o"]
    rows: int

    @cached_property
    def squared_norms(self) -> Float[Tensor, "r n"]:
        """Return the squared norms of the gradients."""
        same = (self.ids[:, :, None] == self.ids[:, None]).to(self.g.dtype)
        return torch.stack([((g @ g.transpose(1, 2)) * same).sum((1, 2)) for g in self.g])

    def dense(self) -> Float[Tensor, "r n p"]:
        """Return dense gradients."""
        r, n, _, o = self.g.shape
        index = self.ids[None, :, :, None].expand_as(self.g)
        return self.g.new_zeros(r, n, self.rows, o).scatter_add_(2, index, self.g).flatten(2)

    def dense_blocks(self, size: int) -> Iterator[Float[Tensor, "r n _"]]:
        """Yield dense gradients, some columns of the embedding at a time."""
        r, n, _, o = self.g.shape
        count = max(1, size // (r * n * self.rows * self.g.element_size()))
        for first in range(0, o, count):
            columns = self.g[..., first : first + count]
            yield EmbeddingGradient(
                names=self.names, ids=self.ids, g=columns, rows=self.rows
            ).dense()

    @cached_property
    def cotangents(self) -> Float[Tensor, "r nt o"]:
        """Return the cotangents, position after position."""
        return self.g.flatten(1, 2)

    def inner(self, other: "EmbeddingGradient", left: slice, right: slice) -> Float[Tensor, "t s"]:
        """Return 1 where the ids at two positions are equal, else 0."""
        a, b = self.ids[left].flatten(), other.ids[right].flatten()
        return (a[:, None] == b).to(self.g.dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class DenseGradient:
    """Dense gradients."""

    names: tuple[str, ...]
    j: Float[Tensor, "r n p"]

    def dense(self) -> Float[Tensor, "r n p"]:
        """Return the gradients."""
        return self.j

    def dense_blocks(self, size: int) -> Iterator[Float[Tensor, "r n p"]]:
        """Yield the gradients."""
        yield self.j

    @cached_property
    def squared_norms(self) -> Float[Tensor, "r n"]:
        """Return the squared norms of the gradients."""
        return self.j.square().sum(2)


ParameterGradient = OuterProduct | OuterProductSum | EmbeddingGradient | DenseGradient
