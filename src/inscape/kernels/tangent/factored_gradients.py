"""Per-sample gradients of outputs by parameters, kept as the products that they are.

The gradient of a linear map's weight at one point is the outer product of what comes in and what
comes back, so the inner product of two such gradients is the product of two short inner products.
Gradients that are no single outer product are sums of some (convolutions, weights used at many
places), or are written out, a piece of the parameters at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional

#: Bytes of gradients that are written out at once, beyond those of one output channel.
PIECE = 2**24


@dataclass(frozen=True, eq=False, kw_only=True)
class Outer:
    """Gradients g a^T, one outer product for each row r and point n; with a bias, also g."""

    names: tuple[str, ...]
    a: Float[Tensor, "n i"]
    g: Float[Tensor, "r n o"]
    bias: bool

    @cached_property
    def squares(self) -> Float[Tensor, "r n"]:
        """Return the squared lengths."""
        return self.g.square().sum(2) * (self.a.square().sum(1) + self.bias)

    @cached_property
    def alike(self) -> Float[Tensor, "r o"] | None:
        """Return what comes back where that is one and the same at all points, as at the end."""
        ends = self.g[:, :: max(1, len(self.a) - 1)]
        if not torch.equal(ends, self.g[:, :1].expand_as(ends)):
            return None
        return self.g[:, 0] if torch.equal(self.g, self.g[:, :1].expand_as(self.g)) else None

    def written(self) -> Float[Tensor, "r n p"]:
        """Return the gradients written out, the bias' after the weight's."""
        j = (self.g[..., None] * self.a[:, None]).flatten(2)
        return torch.cat([j, self.g], dim=2) if self.bias else j

    def gram(self, other: "Outer") -> Float[Tensor, "n m"]:
        """Return the inner products of what comes in."""
        inner = self.a @ other.a.T
        return inner.add_(1) if self.bias else inner


@dataclass(frozen=True, eq=False, kw_only=True)
class Places:
    """Gradients that are sums over places t of outer products, kept as their terms.

    ``g`` has a tensor (n, o, t) for each row r: one of them all, or as they came back, one by one.
    Of a convolution in groups, channels of one group meet each other alone.
    """

    names: tuple[str, ...]
    a: Float[Tensor, "n i t"]
    g: Float[Tensor, "r n o t"] | Sequence[Float[Tensor, "n o t"]]
    bias: bool
    groups: int = 1

    @cached_property
    def squares(self) -> Float[Tensor, "r n"]:
        """Return the squared lengths."""
        return torch.stack([j.square().sum(2) for j in self.pieces(PIECE)]).sum(0)

    @cached_property
    def alive(self) -> Bool[Tensor, " t"]:
        """Tell at which places anything comes back; in a last layer that may be one."""
        first = self.g[0][0].ne(0).any(0)
        if bool(first.all()):
            return first
        return torch.stack([g.abs().amax((0, 1)) for g in self.g]).amax(0) != 0

    def at(self, places: Int64[Tensor, " s"]) -> "Outer | Places":
        """Return the sum over some places."""
        if len(places) == 1:
            g = torch.stack([g[..., places[0]] for g in self.g])
            return Outer(names=self.names, a=self.a[:, :, places[0]], g=g, bias=self.bias)
        a = self.a[:, :, places]
        if isinstance(self.g, Tensor):
            return replace(self, a=a, g=self.g[..., places])
        return replace(self, a=a, g=[g[..., places] for g in self.g])

    def written(self) -> Float[Tensor, "r n p"]:
        """Return the gradients written out, the bias' after the weight's."""
        weight = list(self._weights(self.g[0].shape[1]))
        return torch.cat([*weight, self._totals()] if self.bias else weight, dim=2)

    def pieces(self, size: int) -> Iterator[Float[Tensor, "r n _"]]:
        """Yield the gradients written out, a few output channels at a time, with their biases."""
        i = self.a.shape[1] // self.groups
        channel = len(self.g) * len(self.a) * i * self.a.element_size()
        if self.bias and self.groups == 1:  # a bias is the weight of an input that is always 1
            a = functional.pad(self.a, (0, 0, 0, 1), value=1.0)
            yield from replace(self, a=a, bias=False)._weights(max(1, size // channel))
            return
        yield from self._weights(max(1, size // channel))
        if self.bias:
            yield self._totals()

    def _totals(self) -> Float[Tensor, "r n o"]:
        """Return the sums over the places."""
        if isinstance(self.g, Tensor):
            return self.g.sum(3)
        return torch.stack([g.sum(2) for g in self.g])

    def _weights(self, channels: int) -> Iterator[Float[Tensor, "r n _"]]:
        r, (n, o, t) = len(self.g), self.g[0].shape
        if self.groups > 1:
            yield from self._grouped(max(1, channels * self.groups // o))
            return
        a = self.a.transpose(1, 2)
        for first in range(0, o, channels):
            some = slice(first, first + channels)
            if isinstance(self.g, Tensor) and self.g.stride(1) > self.g.stride(0):
                # the rows of a point lie together: one product for all
                j = torch.bmm(self.g[:, :, some].transpose(0, 1).reshape(n, -1, t), a)
                yield j.view(n, r, -1).transpose(0, 1)
            else:
                j = a.new_empty(r, n, self.g[0][:, some].shape[1], a.shape[2])
                for row, into in zip(self.g, j, strict=True):
                    torch.bmm(row[:, some], a, out=into)
                yield j.flatten(2)

    def _grouped(self, count: int) -> Iterator[Float[Tensor, "r n _"]]:
        assert isinstance(self.g, Tensor)
        r, n, _, t = self.g.shape
        g = self.g.reshape(r, n, self.groups, -1, t).permute(1, 2, 0, 3, 4)
        a = self.a.reshape(n, self.groups, -1, t).transpose(2, 3)
        for first in range(0, self.groups, count):
            left, right = g[:, first : first + count], a[:, first : first + count]
            k = left.shape[1]
            j = torch.bmm(left.reshape(n * k, -1, t), right.flatten(0, 1))
            yield j.view(n, k, r, -1).transpose(1, 2).reshape(n, r, -1).transpose(0, 1)

    @cached_property
    def back(self) -> Float[Tensor, "r nt o"]:
        """Return what comes back, place after place."""
        if isinstance(self.g, Tensor):
            return self.g.transpose(2, 3).flatten(1, 2)
        return torch.stack([g.transpose(1, 2).flatten(0, 1) for g in self.g])

    def inner(self, other: "Places", one: slice, two: slice) -> Float[Tensor, "t s"]:
        """Return the inner products of what comes in at the places of one point and another."""
        a, b = (f.transpose(1, 2).flatten(0, 1) for f in (self.a[one], other.a[two]))
        return (a @ b.T).add_(int(self.bias))


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Gradients of a table of ``rows`` rows, of which places t take those that ``ids`` number."""

    names: tuple[str, ...]
    ids: Int64[Tensor, "n t"]
    g: Float[Tensor, "r n t o"]
    rows: int

    @cached_property
    def squares(self) -> Float[Tensor, "r n"]:
        """Return the squared lengths."""
        same = (self.ids[:, :, None] == self.ids[:, None]).to(self.g.dtype)
        return torch.stack([((g @ g.transpose(1, 2)) * same).sum((1, 2)) for g in self.g])

    def written(self) -> Float[Tensor, "r n p"]:
        """Return the gradients written out."""
        r, n, _, o = self.g.shape
        taken = self.ids[None, :, :, None].expand_as(self.g)
        return self.g.new_zeros(r, n, self.rows, o).scatter_add_(2, taken, self.g).flatten(2)

    def pieces(self, size: int) -> Iterator[Float[Tensor, "r n _"]]:
        """Yield the gradients written out, some columns of the table at a time."""
        r, n, _, o = self.g.shape
        count = max(1, size // (r * n * self.rows * self.g.element_size()))
        for first in range(0, o, count):
            some = self.g[..., first : first + count]
            yield Table(names=self.names, ids=self.ids, g=some, rows=self.rows).written()

    @cached_property
    def back(self) -> Float[Tensor, "r nt o"]:
        """Return what comes back, place after place."""
        return self.g.flatten(1, 2)

    def inner(self, other: "Table", one: slice, two: slice) -> Float[Tensor, "t s"]:
        """Return 1 where the places of one point and another take the same row."""
        a, b = self.ids[one].flatten(), other.ids[two].flatten()
        return (a[:, None] == b).to(self.g.dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class Written:
    """Gradients that are written out."""

    names: tuple[str, ...]
    j: Float[Tensor, "r n p"]

    def written(self) -> Float[Tensor, "r n p"]:
        """Return the gradients."""
        return self.j

    def pieces(self, size: int) -> Iterator[Float[Tensor, "r n p"]]:
        """Yield the gradients."""
        yield self.j

    @cached_property
    def squares(self) -> Float[Tensor, "r n"]:
        """Return the squared lengths."""
        return self.j.square().sum(2)


Factor = Outer | Places | Table | Written
