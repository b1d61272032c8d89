"""A batch in which every sample has its own weights: many nodes of a step in one forward pass.

Linear layers and convolutions become batched matrix products. One backward pass per output serves
all nodes, and one product per layer sums the gradients over them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from inscape.kernels.tangent.op_recorder import (
    CONVOLUTIONS,
    Arguments,
    Named,
    OpRecorder,
    ParameterOp,
    attached,
    bound_arguments,
)
from inscape.kernels.tangent.per_sample_ops import per_sample_call
from inscape.kernels.tangent.vjp import each_axis


def supports_weight_batch(model: nn.Module, x: Tensor) -> bool:
    """Return whether all trainable parameters act in linear layers and plain convolutions."""
    call = per_sample_call(model, x)
    return not call.others and all(
        op.fold == "first"
        and (op.kind == "linear" or (op.kind == "convolution" and op.options["groups"] == 1))
        for op in call.ops
    )


def weighted_gradient(
    model: nn.Module,
    weights: Mapping[str, Float[Tensor, "k *shape"]],
    query: Tensor,
    node_weights: Float[Tensor, " k"],
) -> dict[str, Float[Tensor, "c _"]]:
    """Return the weighted sum of the gradients of all outputs at one query, over many weights.

    Args:
        model: A module for which :func:`supports_weight_batch` is true.
        weights: The values of every trainable parameter at all nodes.
        query: One input, without a batch axis.
        node_weights: The weight of each node in the sum.
    """
    batch = _WeightBatch(model, weights)
    with torch.enable_grad(), batch:
        y = model(query.expand(len(node_weights), *query.shape).clone()).reshape(
            len(node_weights), -1
        )
    received: list[list[Tensor]] = [[] for _ in batch.ops]
    for output in range(y.shape[1]):
        cotangents = torch.zeros_like(y)
        cotangents[:, output] = node_weights
        gradients: Sequence[Tensor | None] = torch.autograd.grad(
            y, [op.edge for op in batch.ops], cotangents, retain_graph=True, allow_unused=True
        )
        for op, of_op, g in zip(batch.ops, received, gradients, strict=True):
            of_op.append(_positions_last(op, op.a.new_zeros(op.shape) if g is None else g))
    total: dict[str, Tensor] = {}
    for op, of_op in zip(batch.ops, received, strict=True):
        for name, gradient in _gradients(op, torch.stack(of_op)).items():
            total[name] = total[name] + gradient if name in total else gradient
    return total


def _positions_last(op: ParameterOp, g: Tensor) -> Float[Tensor, "o m"]:
    """Return the cotangents of an op with nodes and positions flattened into the last axis."""
    return g.flatten(0, -2).T if op.kind == "linear" else g.flatten(2).transpose(0, 1).flatten(1)


def _gradients(op: ParameterOp, g: Float[Tensor, "c o m"]) -> dict[str, Float[Tensor, "c _"]]:
    """Return the gradients by the weight and the bias of an op, summed over all nodes."""
    inputs = op.a.flatten(0, -2) if op.kind == "linear" else op.options["columns"]
    weight = (g.flatten(0, 1) @ inputs).view(len(g), -1)
    return {op.weight: weight} | ({} if op.bias is None else {op.bias: g.sum(2)})


class _WeightBatch(OpRecorder):
    """Uses other weights for every sample of a batch in linear layers and convolutions."""

    def __init__(self, model: nn.Module, weights: Mapping[str, Tensor]) -> None:
        super().__init__({name: model.get_parameter(name) for name in weights})
        self._weights = weights

    def __torch_function__(
        self, func: Any, types: object, args: Arguments = (), kwargs: Named | None = None
    ) -> Any:
        keywords = kwargs or {}
        z = None
        if func in LINEAR:
            z = self._linear(func, args, keywords)
        elif func in CONVOLUTIONS:
            z = self._convolution(func, args, keywords)
        return func(*args, **keywords) if z is None else z

    def _linear(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        a, weight, bias = bound_arguments(("input", "weight", "bias"), args, kwargs)
        if not self._are_parameters(weight, bias):
            return None
        matrices, biases = self._batched_values(weight), self._batched_values(bias)
        z = attached(a).reshape(len(matrices), -1, a.shape[-1]) @ matrices.transpose(1, 2)
        z = z if bias is None else z + biases[:, None]
        return self._record("linear", weight, bias, a, z.reshape(*a.shape[:-1], -1))

    def _convolution(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
        a, weight, bias, *options = bound_arguments(names, args, kwargs)
        if not self._are_parameters(weight, bias):
            return None
        dimensions, kernel = CONVOLUTIONS[func], tuple(weight.shape[2:])
        stride, padding, dilation = (
            each_axis(default if value is None else value, dimensions)
            for value, default in zip(options[:3], (1, 0, 1), strict=True)
        )
        sizes = [
            (size + 2 * p - d * (k - 1) - 1) // s + 1
            for size, k, s, p, d in zip(a.shape[2:], kernel, stride, padding, dilation, strict=True)
        ]
        image, one_dimensional = attached(a), dimensions == 1  # a signal is an image of height 1
        columns = functional.unfold(
            image[:, :, None] if one_dimensional else image,
            (1, *kernel) if one_dimensional else kernel,
            (1, *dilation) if one_dimensional else dilation,
            (0, *padding) if one_dimensional else padding,
            (1, *stride) if one_dimensional else stride,
        )
        kernels, biases = self._batched_values(weight), self._batched_values(bias)
        z = kernels.flatten(2) @ columns
        z = z if bias is None else z + biases[:, :, None]
        patches = columns.detach().transpose(1, 2).flatten(0, 1)
        return self._record(
            "convolution", weight, bias, a, z.reshape(len(z), -1, *sizes), columns=patches
        )

    def _batched_values(self, parameter: Tensor | None) -> Any:
        return None if parameter is None else self._weights[self._names[id(parameter)]]


LINEAR = (functional.linear, torch.ops.aten.linear.default)
