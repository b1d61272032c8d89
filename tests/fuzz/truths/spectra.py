"""Singular values of layers: from matrices written out, tap by tap and unit vector by vector."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from fuzz.calls import Call
from fuzz.claims import Claim, Unverifiable, at_least, at_most, equal
from fuzz.reference import Reference
from fuzz.truths.common import points

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def effective_rank(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    values = [_values(layer, size, how) for layer, size, how in _layers(call, f, result)]
    squares = [v.square() for v in values]
    some = [float(v.max()) > 0 for v in values]
    pairs = list(zip(values, squares, some, strict=True))
    yield equal("ranks", result.ranks, [v.sum() / s.sum().sqrt() if k else 0 for v, s, k in pairs])
    yield equal("stable", result.stable_ranks, [s.sum() / s.max() if k else 0 for _, s, k in pairs])
    ratios = [s.sum() ** 2 / s.square().sum() if k else 0 for _, s, k in pairs]
    yield equal("participation", result.participation_ratios, ratios)
    yield equal("counts", result.singular_values, [len(v) for v in values])


def conv_spectrum(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    for k, (layer, size, how) in enumerate(_layers(call, f, result)):
        values = _values(layer, size, how)
        size_of = float(values.max())
        yield equal(f"values {k}", result.singular_values(k), values, scale=size_of)
        own = _values(layer, size, "matrix")
        slack = 1e-12 * float(own.max())
        yield at_most(f"largest {k}", result.largest[k], own.max() + slack)
        yield at_least(f"smallest {k}", result.smallest[k], own.min() - slack)


def parameter_norm(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    tensors = dict(f.module.named_parameters())
    squares: dict[str, float] = {}
    for name, tensor in tensors.items():
        layer = name.rpartition(".")[0]
        squares[layer] = squares.get(layer, 0.0) + float(tensor.detach().double().square().sum())
    yield equal("norms", result.norms[0], [square**0.5 for square in squares.values()])
    module = call.network.wrap(f.module)
    chain = type(module) is nn.Sequential and module is f.module
    if not chain or not all(isinstance(m, nn.Linear | nn.ReLU) for m in module):
        return
    values = torch.ones(*call.shape, dtype=torch.float64)
    for layer in module:
        if isinstance(layer, nn.Linear):
            weight, bias = layer.weight.double().abs() ** result.order, layer.bias
            values = values @ weight.T
            values = values if bias is None else values + bias.double().abs() ** result.order
    if result.reason:
        raise Unverifiable(result.reason)
    yield equal(
        "path norm", result.path_norms[0], float(values.detach().sum()) ** (1 / result.order)
    )


def _layers(call: Call, f: Reference, result: Any) -> Iterator[tuple[nn.Module, tuple, str]]:
    """Yield each layer with the size of its feature map, and how its values were computed."""
    sizes: dict[nn.Module, tuple[int, ...]] = {}
    layers = [m for m in f.module.modules() if isinstance(m, (nn.Linear, *CONVOLUTIONS))]

    def note(layer: Any, inputs: tuple[Tensor, ...]) -> None:
        sizes.setdefault(layer, tuple(inputs[0].shape[-len(layer.kernel_size) :]))

    convolutions = [layer for layer in layers if not isinstance(layer, nn.Linear)]
    handles = [layer.register_forward_pre_hook(note) for layer in convolutions]
    f.value(points(call)[0])
    for handle in handles:
        handle.remove()
    if len(layers) != len(result.layers):
        raise Unverifiable("layers that share a module")
    for layer, how in zip(layers, result.methods, strict=True):
        yield layer, sizes.get(layer, ()), how


@torch.no_grad()
def _values(layer: nn.Module, size: tuple[int, ...], how: str) -> Tensor:
    if isinstance(layer, nn.Linear):
        return torch.linalg.svdvals(layer.weight.double())
    return torch.linalg.svdvals(_torus(layer, size) if how == "circular" else _own(layer, size))


def _own(layer: Any, size: tuple[int, ...]) -> Tensor:
    zero = torch.zeros(1, layer.in_channels, *size).to(layer.weight)
    basis = torch.eye(zero.numel()).to(zero).reshape(-1, *zero.shape[1:])
    return (layer(basis) - layer(zero)).flatten(1).T.double()


def _torus(layer: Any, size: tuple[int, ...]) -> Tensor:
    """Return the matrix with circular padding: each tap of each output meets one pixel."""
    weight = layer.weight.double()
    out = [range(0, n, s) for n, s in zip(size, layer.stride, strict=True)]
    o, i = weight.shape[0], weight.shape[1]
    matrix = torch.zeros(o, *map(len, out), layer.in_channels, *size, dtype=torch.float64)
    for row in product(*(range(len(places)) for places in out)):
        for tap in product(*map(range, weight.shape[2:])):
            pixel = tuple(
                (out[axis][row[axis]] + tap[axis] * layer.dilation[axis]) % size[axis]
                for axis in range(len(size))
            )
            for channel in range(o):
                group = channel // (o // layer.groups)
                for k in range(i):
                    matrix[(channel, *row, group * i + k, *pixel)] += weight[(channel, k, *tap)]
    return matrix.reshape(o * math.prod(map(len, out)), -1)
