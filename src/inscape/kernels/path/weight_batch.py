"""A batch in which every row has weights of its own: many places of a step in one forward pass.

Linear maps and convolutions are batched matrix products there. One backward pass for each output
serves all places, and one product for each map adds up the gradients at all of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from inscape.kernels.tangent.per_sample_maps import watched
from inscape.kernels.tangent.recorded_maps import (
    CONVOLUTIONS,
    Arguments,
    Named,
    Use,
    Watch,
    bound,
    rooted,
)
from inscape.kernels.tangent.vjp import each_axis


def applies(model: nn.Module, x: Tensor) -> bool:
    """Tell whether all trainable parameters act in linear maps and plain convolutions."""
    seen = watched(model, x)
    return not seen.others and all(
        use.fold == "first"
        and (use.kind == "linear" or (use.kind == "convolution" and use.options["groups"] == 1))
        for use in seen.uses
    )


def weighted_gradient(
    model: nn.Module,
    weights: Mapping[str, Float[Tensor, "k *shape"]],
    query: Tensor,
    shares: Float[Tensor, " k"],
) -> dict[str, Float[Tensor, "c _"]]:
    """Return the weighted sum of the gradients of all outputs at one query, over many weights.

    Args:
        model: A module to which :func:`applies` applies.
        weights: The values of every trainable parameter, one after the other.
        query: One input, without the axis of a batch.
        shares: The weight of each place in the sum.
    """
    batch = _Batch(model, weights)
    with torch.enable_grad(), batch:
        y = model(query.expand(len(shares), *query.shape).clone()).reshape(len(shares), -1)
    back: list[list[Tensor]] = [[] for _ in batch.uses]
    for output in range(y.shape[1]):
        cotangents = torch.zeros_like(y)
        cotangents[:, output] = shares
        gradients: Sequence[Tensor | None] = torch.autograd.grad(
            y, [use.edge for use in batch.uses], cotangents, retain_graph=True, allow_unused=True
        )
        for use, rows, g in zip(batch.uses, back, gradients, strict=True):
            rows.append(_places_last(use, use.a.new_zeros(use.shape) if g is None else g))
    total: dict[str, Tensor] = {}
    for use, rows in zip(batch.uses, back, strict=True):
        for name, part in _gradients(use, torch.stack(rows)).items():
            total[name] = total[name] + part if name in total else part
    return total


def _places_last(use: Use, g: Tensor) -> Float[Tensor, "o m"]:
    """Return what comes back at all rows and places of a map, side by side."""
    return g.flatten(0, -2).T if use.kind == "linear" else g.flatten(2).transpose(0, 1).flatten(1)


def _gradients(use: Use, g: Float[Tensor, "c o m"]) -> dict[str, Float[Tensor, "c _"]]:
    """Return what a map adds to the gradients by its weight and its bias, over all rows."""
    inputs = use.a.flatten(0, -2) if use.kind == "linear" else use.options["columns"]
    weight = (g.flatten(0, 1) @ inputs).view(len(g), -1)
    return {use.weight: weight} | ({} if use.bias is None else {use.bias: g.sum(2)})


class _Batch(Watch):
    """Gives every row of a batch its own weights in linear maps and convolutions."""

    def __init__(self, model: nn.Module, weights: Mapping[str, Tensor]) -> None:
        super().__init__({name: model.get_parameter(name) for name in weights})
        self._weights = weights

    def __torch_function__(
        self, func: Any, types: object, args: Arguments = (), kwargs: Named | None = None
    ) -> Any:
        given = kwargs or {}
        z = None
        if func in LINEAR:
            z = self._linear(func, args, given)
        elif func in CONVOLUTIONS:
            z = self._convolution(func, args, given)
        return func(*args, **given) if z is None else z

    def _linear(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        a, weight, bias = bound(("input", "weight", "bias"), args, kwargs)
        if not self._knows(weight, bias):
            return None
        own, shift = self._own(weight), self._own(bias)
        z = rooted(a).reshape(len(own), -1, a.shape[-1]) @ own.transpose(1, 2)
        z = z if bias is None else z + shift[:, None]
        return self._kept("linear", weight, bias, a, z.reshape(*a.shape[:-1], -1))

    def _convolution(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
        a, weight, bias, *rest = bound(names, args, kwargs)
        if not self._knows(weight, bias):
            return None
        count, kernel = CONVOLUTIONS[func], tuple(weight.shape[2:])
        stride, padding, dilation = (
            each_axis(default if value is None else value, count)
            for value, default in zip(rest[:3], (1, 0, 1), strict=True)
        )
        sizes = [
            (size + 2 * p - d * (k - 1) - 1) // s + 1
            for size, k, s, p, d in zip(a.shape[2:], kernel, stride, padding, dilation, strict=True)
        ]
        image, flat = rooted(a), count == 1  # a signal is an image of one line
        columns = functional.unfold(
            image[:, :, None] if flat else image,
            (1, *kernel) if flat else kernel,
            (1, *dilation) if flat else dilation,
            (0, *padding) if flat else padding,
            (1, *stride) if flat else stride,
        )
        own, shift = self._own(weight), self._own(bias)
        z = own.flatten(2) @ columns
        z = z if bias is None else z + shift[:, :, None]
        taken = columns.detach().transpose(1, 2).flatten(0, 1)
        return self._kept(
            "convolution", weight, bias, a, z.reshape(len(z), -1, *sizes), columns=taken
        )

    def _own(self, parameter: Tensor | None) -> Any:
        return None if parameter is None else self._weights[self._names[id(parameter)]]


LINEAR = (functional.linear, torch.ops.aten.linear.default)
