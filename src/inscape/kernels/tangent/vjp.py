"""Per-sample gradients of outputs by VJPs through a call of a module, some weights at a time."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn
from torch.nn import functional

from inscape.kernels.tangent.dense_gradients import dense_gradients
from inscape.kernels.tangent.factored_gradients import (
    DenseGradient,
    EmbeddingGradient,
    OuterProduct,
    OuterProductSum,
    ParameterGradient,
)
from inscape.kernels.tangent.op_recorder import ParameterOp
from inscape.kernels.tangent.per_sample_ops import per_sample_call, samples_first
from inscape.kernels.tangent.recorded_call import parameter_names

#: Kinds of ops whose gradients are short sums, computed directly from their cotangents.
ELEMENTWISE = ("scale", "shift")

#: Cotangents of one op: one tensor, or a list with one per output.
Cotangents = Tensor | list[Tensor]


class BackwardPass:
    """A call of a module at some samples, and VJPs of its outputs with cotangents r.

    ``layers`` holds the ops of each weight that acts on each sample independently, ``others`` names
    all other parameters that gradients reach.
    """

    def __init__(
        self,
        model: nn.Module,
        x: Real[Tensor, "n *d"],
        cotangents: Float[Tensor, "r n c"] | None = None,
        outputs: slice = slice(None),
    ) -> None:
        call = per_sample_call(model, x)
        self._model, self._x, self.y, self.others = model, x, call.y, call.others
        c = call.y.shape[1]
        if cotangents is None:
            identity = torch.eye(c, dtype=call.y.dtype, device=x.device)[outputs]
            cotangents = identity[:, None].expand(-1, len(x), c)
        self._cotangents = cotangents
        self._batched = not any(op.kind == "convolution" for op in call.ops)
        self.layers: dict[str, list[ParameterOp]] = {}
        for op in call.ops:
            self.layers.setdefault(op.weight, []).append(op)

    @property
    def cotangent_count(self) -> int:
        """Return the number of cotangents per sample."""
        return len(self._cotangents)

    @property
    def forms(self) -> list[object]:
        """Return how parameters act; equal forms imply gradients of equal types."""
        ops = [
            (parameter_names(op), op.kind, op.fold) for own in self.layers.values() for op in own
        ]
        return [ops, self.others]

    def gradients(self, weights: Sequence[str]) -> Iterator[ParameterGradient]:
        """Yield the gradients by some weights, and by their biases."""
        layers = [self.layers[name] for name in weights]
        remaining = self._vjps([op for layer in layers for op in layer])
        for layer in layers:
            cotangents, remaining = remaining[: len(layer)], remaining[len(layer) :]
            yield _gradient_of_weight(layer, cotangents, len(self._x))

    def dense_gradients(self) -> tuple[DenseGradient, str] | None:
        """Return the gradients by all other parameters, and how they were computed."""
        if not self.others:
            return None
        j, method = dense_gradients(self._model, self._x, self.others, self._cotangents)
        return DenseGradient(names=self.others, j=j), method

    def _vjps(self, ops: Sequence[ParameterOp]) -> list[Cotangents]:
        """Return the cotangents of each op; of elementwise ops, their gradients."""
        if not ops:
            return []
        if not self.y.requires_grad:
            zero = self.y.new_zeros(())
            return [
                self._parameter_gradient(op, zero.expand(self.cotangent_count, *op.shape))
                for op in ops
            ]
        if self._batched:
            try:
                return self._batched_vjps(ops)
            except (
                RuntimeError,
                NotImplementedError,
            ):  # some operation does not support batched cotangents
                self._batched = False
        return self._sequential_vjps(ops)

    def _batched_vjps(self, ops: Sequence[ParameterOp]) -> list[Cotangents]:
        """Compute all VJPs in one batched backward pass."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
            gradients: Sequence[Tensor | None] = torch.autograd.grad(
                self.y,
                [op.edge for op in ops],
                self._cotangents,
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=True,
            )
        zero = self.y.new_zeros(())
        return [
            self._parameter_gradient(
                op, zero.expand(self.cotangent_count, *op.shape) if g is None else g
            )
            for op, g in zip(ops, gradients, strict=True)
        ]

    def _sequential_vjps(self, ops: Sequence[ParameterOp]) -> list[Cotangents]:
        """Compute one VJP after the other, which is faster for convolutions."""
        edges = [op.edge for op in ops]
        cotangents: list[Cotangents | None] = [[] if _has_positions(op) else None for op in ops]
        for r, cotangent in enumerate(self._cotangents):
            gradients: Sequence[Tensor | None] = torch.autograd.grad(
                self.y, edges, cotangent, retain_graph=True, allow_unused=True
            )
            for k, (op, gradient) in enumerate(zip(ops, gradients, strict=True)):
                g = self.y.new_zeros(()).expand(op.shape) if gradient is None else gradient
                target = cotangents[k]
                if isinstance(target, list):
                    target.append(_compact(g))
                    continue
                gradient_of_op = self._parameter_gradient(op, g[None])[0]
                if target is None:
                    target = cotangents[k] = self._empty_like_outputs(op, gradient_of_op)
                target[r] = gradient_of_op
        return [target for target in cotangents if target is not None]

    def _parameter_gradient(self, op: ParameterOp, g: Tensor) -> Tensor:
        return _elementwise_gradient(op, g, len(self._x)) if op.kind in ELEMENTWISE else g

    def _empty_like_outputs(self, op: ParameterOp, gradient: Tensor) -> Tensor:
        """Return an empty tensor for cotangents; for convolutions, contiguous per sample."""
        if op.kind == "convolution":
            n, *rest = gradient.shape
            return gradient.new_empty(n, self.cotangent_count, *rest).transpose(0, 1)
        return gradient.new_empty(self.cotangent_count, *gradient.shape)


@dataclass(frozen=True, eq=False, kw_only=True)
class PerSampleGradients:
    """Gradients of combinations r of outputs at samples n.

    ``gradients`` are those by the parameters that are reached, ``sizes`` belong to all.
    """

    y: Float[Tensor, "n c"]
    gradients: tuple[ParameterGradient, ...]
    cotangent_count: int
    sizes: Mapping[str, int]

    def by_parameter(self) -> dict[str, Float[Tensor, "r n _"]]:
        """Return dense gradients by the names of the parameters."""
        by_name: dict[str, Tensor] = {}
        for gradient in self.gradients:
            sizes = [self.sizes[name] for name in gradient.names]
            blocks = torch.split_with_sizes(gradient.dense(), sizes, dim=2)
            by_name.update(zip(gradient.names, blocks, strict=True))
        return by_name


def per_sample_gradients(
    model: nn.Module, x: Real[Tensor, "n *d"], cotangents: Float[Tensor, "r n c"] | None = None
) -> PerSampleGradients:
    """Return the per-sample gradients of every output, or the VJPs with given cotangents.

    Args:
        model: A module that acts on each sample independently.
        x: Samples.
        cotangents: Weights of the outputs, ``r`` sets for each sample; by default each output.
    """
    return all_gradients(BackwardPass(model, x, cotangents), model)


def all_gradients(backward: BackwardPass, model: nn.Module) -> PerSampleGradients:
    """Return all gradients of a call."""
    gradients = list(backward.gradients(list(backward.layers)))
    dense = backward.dense_gradients()
    if dense is not None:
        gradients.append(dense[0])
    return PerSampleGradients(
        y=backward.y.detach(),
        gradients=tuple(gradients),
        cotangent_count=backward.cotangent_count,
        sizes={name: p.numel() for name, p in model.named_parameters()},
    )


def _elementwise_gradient(
    op: ParameterOp, g: Float[Tensor, "r *shape"], n: int
) -> Float[Tensor, "r n p"]:
    """Return the gradients of a weight that scales its input or is added, and of its bias."""
    shape = op.options["shape"]
    if op.fold == "second":
        shape = (shape[1], shape[0], *shape[2:])
    elif op.fold != "first":
        shape = (1, *shape)
    axes = [k + 1 for k, size in enumerate(shape) if k and size == 1]

    def summed(t: Tensor) -> Tensor:
        t = samples_first(t, op.fold, n, before=1)
        return (t.sum(axes) if axes else t).reshape(len(g), n, -1)

    if op.kind == "shift":
        return summed(g)
    weight = summed(g * op.a)
    return torch.cat([weight, summed(g)], dim=2) if op.bias else weight


def _gradient_of_weight(
    ops: Sequence[ParameterOp], cotangents: Sequence[Cotangents], n: int
) -> ParameterGradient:
    """Return the gradients of one weight from all its ops."""
    first = ops[0]
    if any(isinstance(cotangent, list) for cotangent in cotangents):
        per_output = zip(*cotangents, strict=True)
        return _linear_gradient(
            ops,
            [
                _positions_last(ops, tensors_of_output, n, before=0)
                for tensors_of_output in per_output
            ],
            n,
        )
    tensors = [cotangent for cotangent in cotangents if isinstance(cotangent, Tensor)]
    names = parameter_names(first)
    if first.kind in ELEMENTWISE:
        j = tensors[0] if len(tensors) == 1 else torch.stack(tensors).sum(0)
        return DenseGradient(names=names, j=j)
    if first.kind == "convolution":
        return _convolution_gradient(first, tensors[0])
    g = _positions_last(ops, tensors, n, before=1)
    if first.kind == "linear":
        return _linear_gradient(ops, g, n)
    ids = _concatenated(
        [samples_first(op.a, op.fold, n).reshape(n, -1) for op in ops], dim=1
    ).long()
    return EmbeddingGradient(names=names, ids=ids, g=g.transpose(2, 3), rows=first.options["rows"])


def _linear_gradient(
    ops: Sequence[ParameterOp], g: Cotangents, n: int
) -> OuterProduct | OuterProductSum:
    """Return the gradients of a linear layer, at one position or at several."""
    names, bias = parameter_names(ops[0]), ops[0].bias is not None
    inputs = [samples_first(op.a, op.fold, n) for op in ops]
    a = _concatenated([a.reshape(n, -1, a.shape[-1]) for a in inputs], dim=1)
    if a.shape[1] == 1:
        g = g if isinstance(g, Tensor) else torch.stack(g)
        return OuterProduct(names=names, a=a[:, 0], g=g[..., 0], bias=bias)
    return OuterProductSum(names=names, a=a.transpose(1, 2), g=g, bias=bias)


def _positions_last(
    ops: Sequence[ParameterOp], cotangents: Sequence[Tensor], n: int, *, before: int
) -> Tensor:
    """Return the cotangents of an op with axes samples, channels, positions."""
    parts = [
        samples_first(g, op.fold, n, before=before) for op, g in zip(ops, cotangents, strict=True)
    ]
    flat = [part.reshape(*part.shape[:before], n, -1, part.shape[-1]) for part in parts]
    return _concatenated(flat, dim=before + 1).transpose(-1, -2)


def _has_positions(op: ParameterOp) -> bool:
    """Return whether a linear layer acts at several positions: its cotangents are not stacked."""
    return op.kind == "linear" and len(op.shape) > 2


def _compact(g: Tensor) -> Tensor:
    """Return a gradient that holds no memory beyond its own entries."""
    return g if g.untyped_storage().nbytes() <= g.numel() * g.element_size() else g.clone()


def _concatenated(parts: list[Tensor], dim: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=dim)


def _convolution_gradient(op: ParameterOp, g: Tensor) -> ParameterGradient:
    """Return the gradients of a convolution: a linear map of patches, used at every position."""
    return OuterProductSum(
        names=parameter_names(op),
        a=_patches(op),
        g=g.flatten(3),
        bias=op.bias is not None,
        groups=op.options["groups"],
    )


def _patches(op: ParameterOp) -> Float[Tensor, "n i t"]:
    """Return the input patch of a convolution at each position."""
    kernel, count = op.options["kernel"], len(op.options["kernel"])
    stride, padding, dilation = (
        each_axis(op.options[name], count) for name in ("stride", "padding", "dilation")
    )
    windows = op.a
    if any(padding):
        windows = functional.pad(windows, [side for p in padding[::-1] for side in (p, p)])
    for axis, (k, step, spacing) in enumerate(zip(kernel, stride, dilation, strict=True), start=2):
        windows = windows.unfold(axis, (k - 1) * spacing + 1, step)[..., ::spacing]
    positions, within = range(2, 2 + count), range(2 + count, 2 + 2 * count)
    return windows.permute(0, 1, *within, *positions).flatten(2 + count).flatten(1, 1 + count)


def each_axis(value: Any, count: int) -> tuple[int, ...]:
    """Return an option of a convolution for every axis."""
    if not isinstance(value, tuple | list):
        return (value,) * count
    return tuple(value) * (count if len(value) == 1 else 1)
