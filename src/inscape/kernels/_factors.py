"""Gradients of outputs by parameters, point by point, kept as the products that they are.

The gradient of a linear map's weight at one point is the outer product of what comes in and what
comes back, so the inner product of two such gradients is the product of two short inner products.
Gradients that are no single outer product are sums of some (convolutions, weights used at many
places), or are written out.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn
from torch.nn import functional

from inscape.kernels._apart import Watched, trial, watched
from inscape.kernels._plainly import written_out
from inscape.kernels._uses import Use, names_of


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
class Spread:
    """Gradients that are sums over places t of outer products, kept as their terms.

    Where the weight is a table of ``table`` rows, ``a`` holds their numbers.
    """

    names: tuple[str, ...]
    a: Tensor
    g: Float[Tensor, "r n t o"]
    bias: bool
    table: int = 0

    @cached_property
    def squares(self) -> Float[Tensor, "r n"]:
        """Return the squared lengths."""
        rows = [
            (self.places(self, slice(k, k + 1), slice(k, k + 1)) * (g @ g.transpose(1, 2))).sum(
                (1, 2)
            )
            for k, g in enumerate(self.g.transpose(0, 1))
        ]
        return torch.stack(rows, dim=1)

    def written(self) -> Float[Tensor, "r n p"]:
        """Return the gradients written out, the bias' after the weight's."""
        if not self.table:
            return _products(self.g.transpose(2, 3), self.a, bias=self.bias)
        r, n, _, o = self.g.shape
        taken = self.a[None, :, :, None].expand_as(self.g)
        return self.g.new_zeros(r, n, self.table, o).scatter_add_(2, taken, self.g).flatten(2)

    def places(self, other: "Spread", one: slice, two: slice) -> Float[Tensor, "t s"]:
        """Return the inner products of what comes in at the places of one point and another."""
        a, b = self.a[one].flatten(0, 1), other.a[two].flatten(0, 1)
        if not a.is_floating_point():
            return (a[:, None] == b).to(self.g.dtype)
        return (a @ b.T).add_(int(self.bias))


@dataclass(frozen=True, eq=False, kw_only=True)
class Written:
    """Gradients that are written out."""

    names: tuple[str, ...]
    j: Float[Tensor, "r n p"]

    def written(self) -> Float[Tensor, "r n p"]:
        """Return the gradients."""
        return self.j

    @cached_property
    def squares(self) -> Float[Tensor, "r n"]:
        """Return the squared lengths."""
        return self.j.square().sum(2)


Factor = Outer | Spread | Written


@dataclass(frozen=True, eq=False, kw_only=True)
class Tangents:
    """Gradients of some combinations of outputs (rows r) at some points n.

    ``factors`` are those of the parameters that gradients reach, ``sizes`` belong to all.
    """

    y: Float[Tensor, "n c"]
    factors: tuple[Factor, ...]
    ways: tuple[tuple[str, str], ...]
    rows: int
    sizes: Mapping[str, int]

    @property
    def squares(self) -> Float[Tensor, "r n"]:
        """Return the squared lengths of all gradients."""
        total = self.y.new_zeros(self.rows, len(self.y))
        for factor in self.factors:
            total += factor.squares
        return total

    def by_parameter(self) -> dict[str, Float[Tensor, "r n _"]]:
        """Return the gradients written out, by the names of the parameters."""
        found: dict[str, Tensor] = {}
        for factor in self.factors:
            sizes = [self.sizes[name] for name in factor.names]
            parts = torch.split_with_sizes(factor.written(), sizes, dim=2)
            found.update(zip(factor.names, parts, strict=True))
        return found


def tangents(
    model: nn.Module, x: Real[Tensor, "n *d"], cotangents: Float[Tensor, "r n c"] | None = None
) -> Tangents:
    """Return the gradients of every output at every point, or of weighted sums of the outputs.

    Args:
        model: A module whose rows do not depend on each other.
        x: Points.
        cotangents: Weights of the outputs, ``r`` sets of them at each point; by default each
            output alone.
    """
    seen, cotangents, backward = _pulled(model, x, cotangents)
    together: dict[str, list[int]] = {}
    for place, use in enumerate(seen.uses):
        together.setdefault(use.weight, []).append(place)
    factors = [
        _factor([(seen.uses[k], backward[k]) for k in places]) for places in together.values()
    ]
    ways = [(name, _way(factor)) for factor in factors for name in factor.names]
    if seen.others:
        j, how = written_out(model, x, seen.others, cotangents)
        factors.append(Written(names=seen.others, j=j))
        ways += [(name, how) for name in seen.others]
    return Tangents(
        y=seen.y.detach(),
        factors=tuple(factors),
        ways=tuple(ways),
        rows=len(cotangents),
        sizes={name: p.numel() for name, p in model.named_parameters()},
    )


def bytes_of_a_point(model: nn.Module, x: Real[Tensor, "n *d"]) -> int:
    """Return what the gradients of all outputs take at a point, at most, while they are made."""
    seen = trial(model, x)
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    n, rows = seen.y.shape
    numbers = rows * sum(sizes[name] for name in seen.others)
    for use in seen.uses:
        numbers += rows * math.prod(use.shape[1:]) + use.a.numel() // n
        if use.kind == "convolution":
            numbers += sizes[use.weight] // use.shape[1] * math.prod(use.shape[2:])
        if use.kind != "linear":
            numbers += rows * sizes[use.weight]
    return numbers * seen.y.element_size()


def paired(one: Tangents, two: Tangents) -> list[tuple[Factor, Factor]]:
    """Return the factors of two sets of points side by side, of the same parameters and form.

    Where what a module does depends on the points, a parameter may be taken in two ways, or act in
    one set alone: then all are written out, parameter by parameter.
    """
    if [(f.names, type(f)) for f in one.factors] == [(f.names, type(f)) for f in two.factors]:
        return list(zip(one.factors, two.factors, strict=True))
    left, right = one.by_parameter(), two.by_parameter()
    return [
        (Written(names=(name,), j=left[name]), Written(names=(name,), j=right[name]))
        for name in left
        if name in right
    ]


def _way(factor: Factor) -> str:
    return {Outer: "outer product", Spread: "sum over places", Written: "written out"}[type(factor)]


def _pulled(
    model: nn.Module, x: Tensor, cotangents: Float[Tensor, "r n c"] | None
) -> tuple[Watched, Tensor, list[Tensor]]:
    """Call the module; return what was seen, the cotangents and what comes back at every use."""
    seen = watched(model, x)
    c = seen.y.shape[1]
    if cotangents is None:
        cotangents = torch.eye(c, dtype=seen.y.dtype, device=x.device)[:, None].expand(c, len(x), c)
    edges = [use.edge for use in seen.uses]
    found: Sequence[Tensor | None] = [None] * len(edges)
    if edges and seen.y.requires_grad:
        try:
            found = _at_once(seen, cotangents)
        except (RuntimeError, NotImplementedError):  # some operation takes no rows at once
            seen = watched(model, x)
            found = _row_by_row(seen, cotangents)
    back = [
        cotangents.new_zeros(len(cotangents), *use.shape) if g is None else g
        for use, g in zip(seen.uses, found, strict=True)
    ]
    return seen, cotangents, back


def _at_once(seen: Watched, cotangents: Float[Tensor, "r n c"]) -> Sequence[Tensor | None]:
    """Pull all rows back in one pass; convolutions are faster row by row."""
    if any(use.kind == "convolution" for use in seen.uses):
        return _row_by_row(seen, cotangents)
    edges = [use.edge for use in seen.uses]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        return torch.autograd.grad(
            seen.y, edges, cotangents, allow_unused=True, is_grads_batched=True
        )


def _row_by_row(seen: Watched, cotangents: Float[Tensor, "r n c"]) -> Sequence[Tensor]:
    edges = [use.edge for use in seen.uses]
    back = [_room(use, cotangents) for use in seen.uses]
    for r, row in enumerate(cotangents):
        last = r == len(cotangents) - 1
        found: Sequence[Tensor | None] = torch.autograd.grad(
            seen.y, edges, row, retain_graph=not last, allow_unused=True
        )
        for into, gradient in zip(back, found, strict=True):
            into[r] = cotangents.new_zeros(()) if gradient is None else gradient
    return back


def _room(use: Use, cotangents: Tensor) -> Tensor:
    """Return room for what comes back; for convolutions the rows of a point lie together."""
    n, *rest = use.shape
    if use.kind == "convolution":
        return cotangents.new_empty(n, len(cotangents), *rest).transpose(0, 1)
    return cotangents.new_empty(len(cotangents), n, *rest)


def _factor(uses: Sequence[tuple[Use, Tensor]]) -> Factor:
    """Return the gradients of one weight from all its uses."""
    first = uses[0][0]
    if first.kind == "scale":
        return _scale(uses)
    if first.kind == "convolution":
        return _convolution(*uses[0])
    a = torch.cat([_at_places(use.a, use.kind) for use, _ in uses], dim=1)
    g = torch.cat([g.reshape(len(g), use.shape[0], -1, g.shape[-1]) for use, g in uses], dim=2)
    if first.kind == "table":
        rows, t = first.options["rows"], a.shape[1]
        table = Spread(names=names_of(first), a=a, g=g, bias=False, table=rows)
        # As in _summed: inner products of all places, or of all rows of the table.
        return table if t * t < rows else Written(names=table.names, j=table.written())
    return _summed(names_of(first), a, g, bias=first.bias is not None)


def _at_places(a: Tensor, kind: str) -> Tensor:
    return a.reshape(len(a), -1) if kind == "table" else a.reshape(len(a), -1, a.shape[-1])


def _summed(names: tuple[str, ...], a: Tensor, g: Tensor, *, bias: bool) -> Factor:
    """Return sums of outer products in the form in which their inner products cost least."""
    if a.shape[1] == 1:
        return Outer(names=names, a=a[:, 0], g=g[:, :, 0], bias=bias)
    _, _, t, o = g.shape
    i = a.shape[2]
    if t * t * (i / len(g) ** 2 + o) < i * o:
        return Spread(names=names, a=a, g=g, bias=bias)
    return Written(names=names, j=_products(g.transpose(2, 3), a, bias=bias))


def _products(
    g: Float[Tensor, "r n o t"], a: Float[Tensor, "n t i"], *, bias: bool
) -> Float[Tensor, "r n p"]:
    """Write the sums of outer products over places out, the bias' after the weight's."""
    r, n, o, _ = g.shape
    j = torch.bmm(g.transpose(0, 1).reshape(n, r * o, -1), a).reshape(n, r, -1).transpose(0, 1)
    return torch.cat([j, g.sum(3)], dim=2) if bias else j


def _convolution(use: Use, g: Tensor) -> Factor:
    """Return a convolution's gradients: a linear map of patches, used at every place."""
    options: dict[str, Any] = dict(use.options)
    a, groups = use.a, options.pop("groups")
    kernel = options.pop("kernel")
    if a.ndim == 3:  # one dimension is two, the first of size one
        a, kernel = a.unsqueeze(2), (1, *kernel)
        ones = {"stride": 1, "padding": 0, "dilation": 1}
        options = {key: (ones[key], *_pair(value)[-1:]) for key, value in options.items()}
    patches = functional.unfold(a, kernel, **options).transpose(1, 2)
    back = g.flatten(3)
    bias = use.bias is not None
    if groups == 1:
        return _summed(names_of(use), patches, back.transpose(2, 3), bias=bias)
    parts = zip(back.chunk(groups, dim=2), patches.chunk(groups, dim=2), strict=True)
    j = [_products(part, into, bias=False) for part, into in parts]
    return Written(names=names_of(use), j=torch.cat([*j, *([back.sum(3)] if bias else [])], dim=2))


def _pair(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _scale(uses: Sequence[tuple[Use, Tensor]]) -> Factor:
    """Return the gradients of weights that scale their input place by place."""
    rows = []
    for use, g in uses:
        shape = use.options["shape"]
        size = max(1, torch.Size(tuple(abs(s) for s in shape)).numel())
        if len(shape) > 1 and shape[1] == -1:  # channels come second
            weight = (g * use.a).flatten(3).sum(3) if g.ndim > 3 else g * use.a
            bias = g.flatten(3).sum(3) if g.ndim > 3 else g
        else:
            weight = (g * use.a).reshape(*g.shape[:2], -1, size).sum(2)
            bias = g.reshape(*g.shape[:2], -1, size).sum(2)
        rows.append(torch.cat([weight, bias], dim=2) if use.bias else weight)
    return Written(names=names_of(uses[0][0]), j=torch.stack(rows).sum(0))
