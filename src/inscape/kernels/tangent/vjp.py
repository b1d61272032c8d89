"""Gradients of outputs pulled back through a call of a module, some of its maps at a time."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn
from torch.nn import functional

from inscape.kernels.tangent.dense_gradients import written_out
from inscape.kernels.tangent.factored_gradients import Factor, Outer, Places, Table, Written
from inscape.kernels.tangent.parameter_uses import names_of
from inscape.kernels.tangent.per_sample_maps import points_first, watched
from inscape.kernels.tangent.recorded_maps import Use

#: Kinds of maps whose gradients are short sums, made as soon as something comes back.
ELEMENTWISE = ("scale", "shift")

#: What comes back at one use: a tensor for each row, in one or as they came.
Back = Tensor | list[Tensor]


class Backward:
    """A call of a module at some points, and gradients of combinations of its outputs (rows r).

    ``layers`` holds the uses of each weight that acts on each sample, ``others`` names all other
    parameters that gradients reach.
    """

    def __init__(
        self,
        model: nn.Module,
        x: Real[Tensor, "n *d"],
        cotangents: Float[Tensor, "r n c"] | None = None,
        rows: slice = slice(None),
    ) -> None:
        seen = watched(model, x)
        self._model, self._x, self.y, self.others = model, x, seen.y, seen.others
        c = seen.y.shape[1]
        if cotangents is None:
            each = torch.eye(c, dtype=seen.y.dtype, device=x.device)[rows]
            cotangents = each[:, None].expand(-1, len(x), c)
        self._cotangents = cotangents
        self._batched = not any(use.kind == "convolution" for use in seen.uses)
        self.layers: dict[str, list[Use]] = {}
        for use in seen.uses:
            self.layers.setdefault(use.weight, []).append(use)

    @property
    def rows(self) -> int:
        """Return the number of combinations of outputs."""
        return len(self._cotangents)

    @property
    def forms(self) -> list[object]:
        """Return how parameters act: two sets of points with one form have factors of one type."""
        uses = [(names_of(use), use.kind, use.fold) for own in self.layers.values() for use in own]
        return [uses, self.others]

    def factors(self, weights: Sequence[str]) -> Iterator[Factor]:
        """Yield the gradients by some weights, and the biases that go with them."""
        layers = [self.layers[name] for name in weights]
        gradients = self._pulled([use for layer in layers for use in layer])
        for layer in layers:
            own, gradients = gradients[: len(layer)], gradients[len(layer) :]
            yield _factor(layer, own, len(self._x))

    def rest(self) -> tuple[Written, str] | None:
        """Return the gradients by all other parameters, and how they were found."""
        if not self.others:
            return None
        j, way = written_out(self._model, self._x, self.others, self._cotangents)
        return Written(names=self.others, j=j), way

    def _pulled(self, uses: Sequence[Use]) -> list[Back]:
        """Return what comes back at each use; of elementwise maps, their gradients."""
        if not uses:
            return []
        if not self.y.requires_grad:
            zero = self.y.new_zeros(())
            return [self._made(use, zero.expand(self.rows, *use.shape)) for use in uses]
        if self._batched:
            try:
                return self._at_once(uses)
            except (RuntimeError, NotImplementedError):  # some operation takes no rows at once
                self._batched = False
        return self._row_by_row(uses)

    def _at_once(self, uses: Sequence[Use]) -> list[Back]:
        """Pull all rows back in one pass."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
            gradients: Sequence[Tensor | None] = torch.autograd.grad(
                self.y,
                [use.edge for use in uses],
                self._cotangents,
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=True,
            )
        zero = self.y.new_zeros(())
        return [
            self._made(use, zero.expand(self.rows, *use.shape) if g is None else g)
            for use, g in zip(uses, gradients, strict=True)
        ]

    def _row_by_row(self, uses: Sequence[Use]) -> list[Back]:
        """Pull one row back after the other, which is faster for convolutions."""
        edges = [use.edge for use in uses]
        back: list[Back | None] = [[] if _at_many_places(use) else None for use in uses]
        for r, row in enumerate(self._cotangents):
            gradients: Sequence[Tensor | None] = torch.autograd.grad(
                self.y, edges, row, retain_graph=True, allow_unused=True
            )
            for k, (use, gradient) in enumerate(zip(uses, gradients, strict=True)):
                g = self.y.new_zeros(()).expand(use.shape) if gradient is None else gradient
                into = back[k]
                if isinstance(into, list):
                    into.append(_alone(g))
                    continue
                made = self._made(use, g[None])[0]
                if into is None:
                    into = back[k] = self._room(use, made)
                into[r] = made
        return [into for into in back if into is not None]

    def _made(self, use: Use, g: Tensor) -> Tensor:
        return _elementwise(use, g, len(self._x)) if use.kind in ELEMENTWISE else g

    def _room(self, use: Use, made: Tensor) -> Tensor:
        """Return room for what comes back; for convolutions the rows of a point lie together."""
        if use.kind == "convolution":
            n, *rest = made.shape
            return made.new_empty(n, self.rows, *rest).transpose(0, 1)
        return made.new_empty(self.rows, *made.shape)


@dataclass(frozen=True, eq=False, kw_only=True)
class Tangents:
    """Gradients of some combinations of outputs (rows r) at some points n.

    ``factors`` are those of the parameters that gradients reach, ``sizes`` belong to all.
    """

    y: Float[Tensor, "n c"]
    factors: tuple[Factor, ...]
    rows: int
    sizes: Mapping[str, int]

    def by_parameter(self) -> dict[str, Float[Tensor, "r n _"]]:
        """Return the gradients written out, by the names of the parameters."""
        gradients: dict[str, Tensor] = {}
        for factor in self.factors:
            sizes = [self.sizes[name] for name in factor.names]
            parts = torch.split_with_sizes(factor.written(), sizes, dim=2)
            gradients.update(zip(factor.names, parts, strict=True))
        return gradients


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
    return gathered(Backward(model, x, cotangents), model)


def gathered(backward: Backward, model: nn.Module) -> Tangents:
    """Return all gradients of a call."""
    factors = list(backward.factors(list(backward.layers)))
    rest = backward.rest()
    if rest is not None:
        factors.append(rest[0])
    return Tangents(
        y=backward.y.detach(),
        factors=tuple(factors),
        rows=backward.rows,
        sizes={name: p.numel() for name, p in model.named_parameters()},
    )


def _elementwise(use: Use, g: Float[Tensor, "r *shape"], n: int) -> Float[Tensor, "r n p"]:
    """Return the gradients of a weight that scales its input or is added, and of its bias."""
    shape = use.options["shape"]
    if use.fold == "second":
        shape = (shape[1], shape[0], *shape[2:])
    elif use.fold != "first":
        shape = (1, *shape)
    axes = [k + 1 for k, size in enumerate(shape) if k and size == 1]

    def summed(t: Tensor) -> Tensor:
        t = points_first(t, use.fold, n, before=1)
        return (t.sum(axes) if axes else t).reshape(len(g), n, -1)

    if use.kind == "shift":
        return summed(g)
    weight = summed(g * use.a)
    return torch.cat([weight, summed(g)], dim=2) if use.bias else weight


def _factor(uses: Sequence[Use], back: Sequence[Back], n: int) -> Factor:
    """Return the gradients of one weight from all its uses."""
    first = uses[0]
    if any(isinstance(rows, list) for rows in back):
        each = zip(*back, strict=True)
        return _linear(uses, [_places_last(uses, row, n, before=0) for row in each], n)
    whole = [rows for rows in back if isinstance(rows, Tensor)]
    names = names_of(first)
    if first.kind in ELEMENTWISE:
        j = whole[0] if len(whole) == 1 else torch.stack(whole).sum(0)
        return Written(names=names, j=j)
    if first.kind == "convolution":
        return _convolution(first, whole[0])
    g = _places_last(uses, whole, n, before=1)
    if first.kind == "linear":
        return _linear(uses, g, n)
    ids = _joined([points_first(use.a, use.fold, n).reshape(n, -1) for use in uses], dim=1).long()
    return Table(names=names, ids=ids, g=g.transpose(2, 3), rows=first.options["rows"])


def _linear(uses: Sequence[Use], g: Back, n: int) -> Outer | Places:
    """Return a linear map's gradients, at one place or at several."""
    names, bias = names_of(uses[0]), uses[0].bias is not None
    inputs = [points_first(use.a, use.fold, n) for use in uses]
    a = _joined([a.reshape(n, -1, a.shape[-1]) for a in inputs], dim=1)
    if a.shape[1] == 1:
        g = g if isinstance(g, Tensor) else torch.stack(g)
        return Outer(names=names, a=a[:, 0], g=g[..., 0], bias=bias)
    return Places(names=names, a=a.transpose(1, 2), g=g, bias=bias)


def _places_last(uses: Sequence[Use], back: Sequence[Tensor], n: int, *, before: int) -> Tensor:
    """Return what comes back at all places of a map, after its points and channels."""
    parts = [points_first(g, use.fold, n, before=before) for use, g in zip(uses, back, strict=True)]
    flat = [part.reshape(*part.shape[:before], n, -1, part.shape[-1]) for part in parts]
    return _joined(flat, dim=before + 1).transpose(-1, -2)


def _at_many_places(use: Use) -> bool:
    """Tell whether what comes back at a linear map is large: it is left as it came."""
    return use.kind == "linear" and len(use.shape) > 2


def _alone(g: Tensor) -> Tensor:
    """Return a gradient that keeps no more memory than its own."""
    return g if g.untyped_storage().nbytes() <= g.numel() * g.element_size() else g.clone()


def _joined(parts: list[Tensor], dim: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=dim)


def _convolution(use: Use, g: Tensor) -> Factor:
    """Return a convolution's gradients: a linear map of patches, used at every place."""
    return Places(
        names=names_of(use),
        a=_patches(use),
        g=g.flatten(3),
        bias=use.bias is not None,
        groups=use.options["groups"],
    )


def _patches(use: Use) -> Float[Tensor, "n i t"]:
    """Return what a convolution takes at each place."""
    kernel, count = use.options["kernel"], len(use.options["kernel"])
    stride, padding, dilation = (
        each_axis(use.options[name], count) for name in ("stride", "padding", "dilation")
    )
    windows = use.a
    if any(padding):
        windows = functional.pad(windows, [side for p in padding[::-1] for side in (p, p)])
    for axis, (k, step, apart) in enumerate(zip(kernel, stride, dilation, strict=True), start=2):
        windows = windows.unfold(axis, (k - 1) * apart + 1, step)[..., ::apart]
    places, inside = range(2, 2 + count), range(2 + count, 2 + 2 * count)
    return windows.permute(0, 1, *inside, *places).flatten(2 + count).flatten(1, 1 + count)


def each_axis(value: Any, count: int) -> tuple[int, ...]:
    """Return an option of a convolution for every axis."""
    if not isinstance(value, tuple | list):
        return (value,) * count
    return tuple(value) * (count if len(value) == 1 else 1)
