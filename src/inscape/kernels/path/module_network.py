"""Gradients of the outputs of any module along the segment between two weight vectors.

A training moves the weights by steps; along each the output changes by the integral of its gradient
times the step. Chains of linear layers are handled by :mod:`inscape.kernels.path.linear_chain`.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from inscape._core.precision import converted_copy
from inscape.kernels.path.chain_gradients import DENSE_BYTES
from inscape.kernels.path.weight_batch import supports_weight_batch
from inscape.kernels.path.weight_segment import Segment, breakpoints
from inscape.kernels.tangent.vjp import PerSampleGradients, per_sample_gradients

#: Maps the outputs of a batch to the cotangents of its loss.
CotangentFunction = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False, kw_only=True)
class QuadratureNodes:
    """Quadrature nodes t of each query, and their weights.

    ``likely`` is set if the dense average will most likely be needed.
    """

    t: Float[Tensor, "q m"]
    weights: Float[Tensor, "q m"]
    likely: bool = False


class SegmentAverage:
    """Average gradients of any module along a step, computed when needed."""

    def __init__(self, along: Callable[[], Tensor], gradients: Callable[[], Tensor]) -> None:
        self._directional, self._gradients = along, gradients

    def directional_derivatives(self) -> Float[Tensor, "q c"]:
        """Return the inner products with the step: the derivatives along it."""
        return self._products

    @cached_property
    def _products(self) -> Float[Tensor, "q c"]:
        return self._directional()

    def write(self, into: Float[Tensor, "q c p"]) -> None:
        """Write the dense gradients."""
        into.copy_(self._gradients())


class DenseSampleGradients:
    """Dense per-sample gradients: all at once, or in blocks if they are large."""

    def __init__(
        self, dense: Callable[[slice | Tensor], Tensor], samples: int, slices: Sequence[slice]
    ) -> None:
        self._compute, self._slices = dense, slices
        step = max(1, DENSE_BYTES // (8 * max(1, slices[-1].stop)))
        self._slices_of_samples = [slice(k, k + step) for k in range(0, samples, step)]
        self._cached = dense(slice(None)) if len(self._slices_of_samples) == 1 else None

    def products(self, vectors: Float[Tensor, "r p"]) -> Float[Tensor, "r n"]:
        """Return the inner products with some vectors."""
        return torch.cat([vectors @ block.T for block in self._blocks()], dim=1)

    def by_tensor(self, vectors: Float[Tensor, "r p"]) -> Float[Tensor, "l r n"]:
        """Return the terms of every parameter tensor in these inner products."""
        parts = [
            torch.stack([vectors[:, own] @ block[:, own].T for own in self._slices])
            for block in self._blocks()
        ]
        return torch.cat(parts, dim=2)

    def dense(self, which: Int64[Tensor, " m"]) -> Float[Tensor, "m p"]:
        """Return the gradients of some samples."""
        return self._compute(which) if self._cached is None else self._cached[which]

    def _blocks(self) -> Iterator[Float[Tensor, "m p"]]:
        return (
            iter([self._cached])
            if self._cached is not None
            else map(self._compute, self._slices_of_samples)
        )


class ModuleNetwork:
    """Any module in float64, as a function of its flat weight vector.

    Many quadrature nodes are evaluated at once by ``torch.func.vmap``
    (:mod:`inscape.kernels.path.weight_segment`) where all its operations support that.
    """

    nodes = 2

    def __init__(
        self, model: nn.Module, trainable: Sequence[str], outputs: Sequence[int] | None = None
    ) -> None:
        """Copy a module.

        Args:
            model: The module.
            trainable: Names of the parameters that were trained.
            outputs: Indices of the outputs at queries; all by default. Samples keep all outputs.
        """
        self._trained = copy.deepcopy(model).eval()
        for name, parameter in self._trained.named_parameters():
            parameter.requires_grad_(name in trainable)
        self._model = converted_copy(self._trained, torch.float64)
        if outputs is not None:
            columns = list(outputs)
            self._model.register_forward_hook(lambda _, __, y: y.flatten(1)[:, columns])
        self._slices: dict[str, slice] = {}
        offset = 0
        for name in trainable:
            size = self._model.get_parameter(name).numel()
            self._slices[name] = slice(offset, offset + size)
            offset += size
        self.parameters = offset
        self.slices = tuple(self._slices.values())
        self._segment = Segment(self._model, self._slices)
        self._vmap_supported: bool | None = None
        self._weight_batch_supported: bool | None = None

    def set_buffers(self, buffers: Mapping[str, Tensor]) -> None:
        """Set buffers of the module, such as running statistics."""
        for model in (self._trained, self._model):
            for name, own in model.named_buffers():
                if name in buffers:
                    own.copy_(buffers[name])

    def values(self, weights: Tensor, x: Tensor) -> Float[Tensor, "n c"]:
        """Return the outputs."""
        return self._values(self._model, weights, x)

    def samples(
        self, weights: Tensor, x: Tensor, cotangents_of: CotangentFunction
    ) -> DenseSampleGradients:
        """Return the per-sample gradients of a weighted sum of outputs, in the training dtype."""
        cotangents = cotangents_of(self._values(self._trained, weights, x))

        def dense(samples: slice | Tensor) -> Tensor:
            self._load_weights(weights, self._trained)
            gradients = per_sample_gradients(self._trained, x[samples], cotangents[None, samples])
            return self._flattened(gradients)[0].double()

        return DenseSampleGradients(dense, len(x), self.slices)

    def breakpoints(self, start: Tensor, step: Tensor, x: Tensor) -> Float[Tensor, "q e"]:
        """Return 0, the breakpoints of each query and 1, in order, padded with ones."""
        roots: list[list[float]] = [[] for _ in x]
        if self._supports_vmap(start, step, x):
            roots = [breakpoints(self._segment, start, step, query) for query in x]
        most = max(map(len, roots))
        padded = [[0.0, *own, *[1.0] * (most - len(own) + 1)] for own in roots]
        return torch.tensor(padded, dtype=start.dtype)

    def average(
        self, start: Tensor, step: Tensor, x: Tensor, nodes: QuadratureNodes
    ) -> SegmentAverage:
        """Return the gradients of all outputs, averaged over the quadrature nodes of each query."""
        all_weights, used = nodes.weights, nodes.weights != 0
        query = torch.arange(len(x))[:, None].expand_as(all_weights)[used]
        t, weights = nodes.t[used], all_weights[used]

        def directional() -> Tensor:
            if nodes.likely or not self._supports_vmap(start, step, x):
                return gradients() @ step
            derivatives = self._segment.derivatives(start, step, x[query], t)
            return derivatives.new_zeros(len(x), derivatives.shape[1]).index_add_(
                0, query, derivatives * weights[:, None]
            )

        @cache
        def gradients() -> Tensor:
            if self._supports_weight_batch(start, step, x):
                averages = [
                    self._segment.total(start, step, sample, t[query == k], weights[query == k])
                    for k, sample in enumerate(x)
                ]
                return torch.stack(averages)
            total, offset = start.new_zeros(0), 0
            for gradient in self._gradients(start, step, x[query], t):
                block = slice(offset, offset + len(gradient))
                if not offset:
                    total = gradient.new_zeros(len(x), *gradient.shape[1:])
                total.index_add_(0, query[block], gradient.mul_(weights[block, None, None]))
                offset = block.stop
            return total

        return SegmentAverage(directional, gradients)

    def _gradients(
        self, start: Tensor, step: Tensor, x: Tensor, t: Float[Tensor, " k"]
    ) -> Iterator[Float[Tensor, "k c p"]]:
        """Yield the gradients of all outputs for pairs of a query and a node, some at a time."""
        if self._supports_vmap(start, step, x):
            yield from self._segment.gradients(start, step, x, t)
        else:
            yield from self._gradients_one_by_one(start, step, x, t)

    def _gradients_one_by_one(
        self, start: Tensor, step: Tensor, x: Tensor, t: Float[Tensor, " k"]
    ) -> Iterator[Float[Tensor, "1 c p"]]:
        for query, node in zip(x, t.tolist(), strict=True):
            self._load_weights(start + node * step, self._model)
            yield self._flattened(per_sample_gradients(self._model, query[None])).transpose(0, 1)

    def _supports_vmap(self, start: Tensor, step: Tensor, x: Tensor) -> bool:
        """Return whether vmap over nodes is supported and returns correct gradients."""
        if self._vmap_supported is None:
            self._vmap_supported = False
            indices = [0, len(x) // 2, -1]  # vmap of PReLU works for one query, not for several
            try:
                self._vmap_supported = self._vmap_agrees(start, step, x[indices])
            except (RuntimeError, ValueError, TypeError, NotImplementedError):
                return False
        return self._vmap_supported

    def _vmap_agrees(self, start: Tensor, step: Tensor, x: Tensor) -> bool:
        """Return whether gradients and derivatives by vmap agree with those computed one by one."""
        t = torch.linspace(0.25, 0.75, len(x), dtype=start.dtype)
        derivatives = self._segment.derivatives(start, step, x, t)
        self._segment.switches(start, step, x, t)
        mapped = (row for block in self._segment.gradients(start, step, x, t) for row in block)
        sequential = (
            row for block in self._gradients_one_by_one(start, step, x, t) for row in block
        )
        return all(
            _near(gradient, expected) and _near(derivative, expected @ step)
            for gradient, expected, derivative in zip(mapped, sequential, derivatives, strict=True)
        )

    def _supports_weight_batch(self, start: Tensor, step: Tensor, x: Tensor) -> bool:
        """Return whether nodes can form a batch of weights with correct gradients."""
        if self._weight_batch_supported is None:
            self._weight_batch_supported = False
            if not (
                self._supports_vmap(start, step, x) and supports_weight_batch(self._model, x[:1])
            ):
                return False
            t = start.new_tensor([0.25, 1.0])
            twice = x[:1].expand(2, *x.shape[1:])
            expected = torch.cat(list(self._segment.gradients(start, step, twice, t)))
            try:
                total = self._segment.total(start, step, x[0], t, start.new_tensor([1.0, 2.0]))
            except (RuntimeError, ValueError, TypeError, KeyError):
                return False
            self._weight_batch_supported = _near(total, expected[0] + 2 * expected[1])
        return self._weight_batch_supported

    def _values(self, model: nn.Module, weights: Tensor, x: Tensor) -> Float[Tensor, "n c"]:
        self._load_weights(weights, model)
        with torch.no_grad():
            y: Tensor = model(x.clone())
        return y.reshape(len(x), -1)

    def _load_weights(self, weights: Tensor, model: nn.Module) -> None:
        with torch.no_grad():
            for name, own in self._slices.items():
                parameter = model.get_parameter(name)
                parameter.copy_(weights[own].view_as(parameter))

    def _flattened(self, gradients: PerSampleGradients) -> Float[Tensor, "r n p"]:
        flat = gradients.y.new_zeros(gradients.cotangent_count, len(gradients.y), self.parameters)
        for gradient in gradients.gradients:
            dense, offset = gradient.dense(), 0
            for own in (self._slices[name] for name in gradient.names):
                size = own.stop - own.start
                flat[:, :, own] = dense[:, :, offset : offset + size]
                offset += size
        return flat


def _near(value: Tensor, expected: Tensor) -> bool:
    return bool((value - expected).abs().max() <= 1e-9 * expected.abs().max())
