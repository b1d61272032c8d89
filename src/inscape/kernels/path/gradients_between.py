"""Gradients of outputs on the straight way between two states of the weights, for any module.

A training moves the weights by steps; along each the output changes by the integral of its gradient
times the step. Chains of linear maps are computed
by :mod:`inscape.kernels.tangent.linear_chain`.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from inscape.kernels.path.weight_batch import applies
from inscape.kernels.path.weight_segment import Segment, switch_places
from inscape.kernels.tangent.outer_products import WRITTEN
from inscape.kernels.tangent.vjp import Tangents, tangents

#: What makes the weights of outputs in a sum out of the outputs themselves.
Pull = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False, kw_only=True)
class Places:
    """Where on the way gradients are taken: for each query a row of places and their weights.

    ``likely`` tells that their average will most likely be written out.
    """

    t: Float[Tensor, "q m"]
    share: Float[Tensor, "q m"]
    likely: bool = False


class SegmentAverage:
    """Averages of the gradients of any module along a step, made when they are asked for."""

    def __init__(self, along: Callable[[], Tensor], gradients: Callable[[], Tensor]) -> None:
        self._along, self._gradients = along, gradients

    def along(self) -> Float[Tensor, "q c"]:
        """Return their inner products with the step."""
        return self._products

    @cached_property
    def _products(self) -> Float[Tensor, "q c"]:
        return self._along()

    def write(self, into: Float[Tensor, "q c p"]) -> None:
        """Write them out."""
        into.copy_(self._gradients())


class WrittenParts:
    """Gradients of samples that are written out: at once, or if they are large in pieces."""

    def __init__(
        self, write: Callable[[slice | Tensor], Tensor], samples: int, slices: Sequence[slice]
    ) -> None:
        self._write, self._slices = write, slices
        step = max(1, WRITTEN // (8 * max(1, slices[-1].stop)))
        self._pieces = [slice(k, k + step) for k in range(0, samples, step)]
        self._all = write(slice(None)) if len(self._pieces) == 1 else None

    def products(self, rows: Float[Tensor, "r p"]) -> Float[Tensor, "r n"]:
        """Return their inner products with some rows."""
        return torch.cat([rows @ some.T for some in self._some()], dim=1)

    def by_tensor(self, rows: Float[Tensor, "r p"]) -> Float[Tensor, "l r n"]:
        """Return the part of every parameter tensor in them."""
        parts = [
            torch.stack([rows[:, own] @ some[:, own].T for own in self._slices])
            for some in self._some()
        ]
        return torch.cat(parts, dim=2)

    def written(self, which: Int64[Tensor, " m"]) -> Float[Tensor, "m p"]:
        """Return some of the gradients."""
        return self._write(which) if self._all is None else self._all[which]

    def _some(self) -> Iterator[Float[Tensor, "m p"]]:
        return iter([self._all]) if self._all is not None else map(self._write, self._pieces)


class General:
    """Any module.

    Its outputs at many places of a step are mapped over together
    (:mod:`inscape.kernels.path.weight_segment`), unless some operation of the module cannot be.
    """

    nodes = 2

    def __init__(
        self, model: nn.Module, trainable: Sequence[str], outputs: Sequence[int] | None = None
    ) -> None:
        """Read a module.

        Args:
            model: The module.
            trainable: Names of the parameters that were trained.
            outputs: Numbers of the outputs of queries; all by default. Samples keep all of theirs.
        """
        self._trained = copy.deepcopy(model).eval()
        for name, parameter in self._trained.named_parameters():
            parameter.requires_grad_(name in trainable)
        self._model = copy.deepcopy(self._trained).double()
        if outputs is not None:
            columns = list(outputs)
            self._model.register_forward_hook(lambda _, __, y: y.flatten(1)[:, columns])
        self._slices: dict[str, slice] = {}
        at = 0
        for name in trainable:
            size = self._model.get_parameter(name).numel()
            self._slices[name] = slice(at, at + size)
            at += size
        self.parameters = at
        self.slices = tuple(self._slices.values())
        self._segment = Segment(self._model, self._slices)
        self._mapped: bool | None = None
        self._batched: bool | None = None

    def set_buffers(self, buffers: Mapping[str, Tensor]) -> None:
        """Give the module other buffers, such as running statistics."""
        for model in (self._trained, self._model):
            for name, own in model.named_buffers():
                if name in buffers:
                    own.copy_(buffers[name])

    def values(self, weights: Tensor, x: Tensor) -> Float[Tensor, "n c"]:
        """Return the outputs."""
        return self._values(self._model, weights, x)

    def samples(self, weights: Tensor, x: Tensor, pull: Pull) -> WrittenParts:
        """Return the gradient of a weighted sum of outputs at every point, as training found it."""
        cotangents = pull(self._values(self._trained, weights, x))

        def write(which: slice | Tensor) -> Tensor:
            self._stand_at(weights, self._trained)
            found = tangents(self._trained, x[which], cotangents[None, which])
            return self._flat(found)[0].double()

        return WrittenParts(write, len(x), self.slices)

    def cuts(self, start: Tensor, step: Tensor, x: Tensor) -> Float[Tensor, "q e"]:
        """Return 0, the places where units of a query are seen to switch, and 1, in order."""
        places: list[list[float]] = [[] for _ in x]
        if self._maps(start, step, x):
            places = [switch_places(self._segment, start, step, query) for query in x]
        most = max(map(len, places))
        rows = [[0.0, *row, *[1.0] * (most - len(row) + 1)] for row in places]
        return torch.tensor(rows, dtype=start.dtype)

    def average(self, start: Tensor, step: Tensor, x: Tensor, places: Places) -> SegmentAverage:
        """Return the gradients of all outputs, averaged over the places of each query."""
        share, inside = places.share, places.share != 0
        query = torch.arange(len(x))[:, None].expand_as(share)[inside]
        t, weights = places.t[inside], share[inside]

        def along() -> Tensor:
            if places.likely or not self._maps(start, step, x):
                return gradients() @ step
            slopes = self._segment.slopes(start, step, x[query], t)
            return slopes.new_zeros(len(x), slopes.shape[1]).index_add_(
                0, query, slopes * weights[:, None]
            )

        @cache
        def gradients() -> Tensor:
            if self._batches(start, step, x):
                each = [
                    self._segment.total(start, step, one, t[query == k], weights[query == k])
                    for k, one in enumerate(x)
                ]
                return torch.stack(each)
            total, at = start.new_zeros(0), 0
            for gradient in self._gradients(start, step, x[query], t):
                own = slice(at, at + len(gradient))
                if not at:
                    total = gradient.new_zeros(len(x), *gradient.shape[1:])
                total.index_add_(0, query[own], gradient.mul_(weights[own, None, None]))
                at = own.stop
            return total

        return SegmentAverage(along, gradients)

    def _gradients(
        self, start: Tensor, step: Tensor, x: Tensor, t: Float[Tensor, " k"]
    ) -> Iterator[Float[Tensor, "k c p"]]:
        """Yield the gradients of all outputs for pairs of a query and a place, some at a time."""
        if self._maps(start, step, x):
            yield from self._segment.gradients(start, step, x, t)
        else:
            yield from self._one_by_one(start, step, x, t)

    def _one_by_one(
        self, start: Tensor, step: Tensor, x: Tensor, t: Float[Tensor, " k"]
    ) -> Iterator[Float[Tensor, "1 c p"]]:
        for point, place in zip(x, t.tolist(), strict=True):
            self._stand_at(start + place * step, self._model)
            yield self._flat(tangents(self._model, point[None])).transpose(0, 1)

    def _maps(self, start: Tensor, step: Tensor, x: Tensor) -> bool:
        """Tell whether places can be mapped over, and give the gradients that they should."""
        if self._mapped is None:
            self._mapped = False
            trial = [0, len(x) // 2, -1]  # PReLU can be mapped over one query, not over several
            try:
                self._mapped = self._mapping_agrees(start, step, x[trial])
            except (RuntimeError, ValueError, TypeError, NotImplementedError):
                return False
        return self._mapped

    def _mapping_agrees(self, start: Tensor, step: Tensor, x: Tensor) -> bool:
        """Tell whether mapped gradients and slopes of some queries are those found one by one."""
        t = torch.linspace(0.25, 0.75, len(x), dtype=start.dtype)
        slopes = self._segment.slopes(start, step, x, t)
        self._segment.switches(start, step, x, t)
        mapped = (row for block in self._segment.gradients(start, step, x, t) for row in block)
        alone = (row for block in self._one_by_one(start, step, x, t) for row in block)
        return all(
            _near(gradient, expected) and _near(slope, expected @ step)
            for gradient, expected, slope in zip(mapped, alone, slopes, strict=True)
        )

    def _batches(self, start: Tensor, step: Tensor, x: Tensor) -> bool:
        """Tell whether places can be a batch with weights of its own, and give what they should."""
        if self._batched is None:
            self._batched = False
            if not (self._maps(start, step, x) and applies(self._model, x[:1])):
                return False
            t = start.new_tensor([0.25, 1.0])
            twice = x[:1].expand(2, *x.shape[1:])
            expected = torch.cat(list(self._segment.gradients(start, step, twice, t)))
            try:
                total = self._segment.total(start, step, x[0], t, start.new_tensor([1.0, 2.0]))
            except (RuntimeError, ValueError, TypeError, KeyError):
                return False
            self._batched = _near(total, expected[0] + 2 * expected[1])
        return self._batched

    def _values(self, model: nn.Module, weights: Tensor, x: Tensor) -> Float[Tensor, "n c"]:
        self._stand_at(weights, model)
        with torch.no_grad():
            y: Tensor = model(x.clone())
        return y.reshape(len(x), -1)

    def _stand_at(self, weights: Tensor, model: nn.Module) -> None:
        with torch.no_grad():
            for name, own in self._slices.items():
                parameter = model.get_parameter(name)
                parameter.copy_(weights[own].view_as(parameter))

    def _flat(self, found: Tangents) -> Float[Tensor, "r n p"]:
        flat = found.y.new_zeros(found.rows, len(found.y), self.parameters)
        for factor in found.factors:
            written, at = factor.written(), 0
            for own in (self._slices[name] for name in factor.names):
                size = own.stop - own.start
                flat[:, :, own] = written[:, :, at : at + size]
                at += size
        return flat


def _near(one: Tensor, two: Tensor) -> bool:
    return bool((one - two).abs().max() <= 1e-9 * two.abs().max())
