"""Gradients of outputs on the straight way between two states of the weights.

A training moves the weights by steps; along each the output changes by the integral of its gradient
times the step. :class:`Chain` knows networks that are linear maps and activations in turn, at a
place of its own for each query. :class:`General` takes any module.
"""

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from inscape.kernels._factors import Tangents, tangents

#: Activations that act on each number alone.
ELEMENTWISE = (
    nn.ReLU, nn.LeakyReLU, nn.ReLU6, nn.Hardtanh, nn.GELU, nn.Tanh, nn.Sigmoid, nn.Softplus,
    nn.SiLU, nn.ELU, nn.SELU, nn.CELU, nn.Mish, nn.Softsign, nn.LogSigmoid, nn.Hardswish,
    nn.Identity,
)  # fmt: skip

#: Those that are linear but for a kink at zero.
KINKED = (nn.ReLU, nn.LeakyReLU)


@dataclass(frozen=True, eq=False, kw_only=True)
class Places:
    """Where on the way gradients are taken: for each query a row of places and their weights."""

    t: Float[Tensor, "q m"]
    share: Float[Tensor, "q m"]


@dataclass(frozen=True)
class Layer:
    """One linear map of a chain: where its weight and bias begin among all parameters."""

    inputs: int
    outputs: int
    weight: int
    bias: int | None
    activation: nn.Module | None


class Chain:
    """A chain of linear maps, each but the last followed by an activation, in float64."""

    def __init__(self, layers: Sequence[Layer], parameters: int) -> None:
        self.layers, self.parameters = tuple(layers), parameters
        kinds = [layer.activation for layer in layers[:-1]]
        self.kinked = any(isinstance(kind, KINKED) for kind in kinds)

    @classmethod
    def of(cls, model: nn.Module, trainable: Sequence[str]) -> "Chain | None":
        """Return the chain that a module is, or None if it is none."""
        if [name for name, _ in model.named_parameters()] != list(trainable):
            return None
        if any(p._forward_hooks or p._forward_pre_hooks for p in model.modules()):
            return None
        layers: list[Layer] = []
        at = 0
        for place, part in enumerate(_parts(model)):
            if type(part) is nn.Linear and "weight" in part._parameters:
                size, bias = part.weight.numel(), part.bias is not None
                d, c = part.in_features, part.out_features
                layers.append(Layer(d, c, at, at + size if bias else None, None))
                at += size + (c if bias else 0)
            elif type(part) in ELEMENTWISE and layers and layers[-1].activation is None:
                last = layers.pop()
                bent = Layer(last.inputs, last.outputs, last.weight, last.bias, part)
                layers.append(bent)
            elif not (type(part) is nn.Flatten and place == 0):
                return None
        joined = all(a.outputs == b.inputs for a, b in itertools.pairwise(layers))
        bare = bool(layers) and layers[-1].activation is None
        between = all(layer.activation is not None for layer in layers[:-1])
        return cls(layers, at) if joined and bare and between else None

    def values(self, weights: Float[Tensor, " p"], x: Float[Tensor, "n d"]) -> Float[Tensor, "n c"]:
        """Return the outputs."""
        a = x.flatten(1)
        for layer in self.layers:
            weight, bias = self._maps(layer, weights)
            z = a @ weight.T if bias is None else torch.addmm(bias, a, weight.T)
            a = z if layer.activation is None else layer.activation(z)
        return a

    def samples(
        self,
        weights: Float[Tensor, " p"],
        x: Float[Tensor, "n d"],
        cotangents: Float[Tensor, "n c"],
    ) -> Float[Tensor, "n p"]:
        """Return the gradient of a weighted sum of outputs at every point."""
        taken, slopes = [], []
        a = x.flatten(1)
        for layer in self.layers:
            weight, bias = self._maps(layer, weights)
            taken.append(a)
            z = a @ weight.T if bias is None else torch.addmm(bias, a, weight.T)
            a, slope = _bent(layer.activation, z)
            slopes.append(slope)
        found = x.new_empty(len(x), self.parameters)
        g = cotangents
        for k in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[k]
            slope = slopes[k]
            if slope is not None:
                g = g * slope
            into = found[:, layer.weight : layer.weight + layer.inputs * layer.outputs]
            torch.mul(
                g[:, :, None], taken[k][:, None], out=into.view(-1, layer.outputs, layer.inputs)
            )
            if layer.bias is not None:
                found[:, layer.bias : layer.bias + layer.outputs] = g
            if k:
                g = g @ self._maps(layer, weights)[0]
        return found

    def integral(
        self,
        start: Float[Tensor, " p"],
        step: Float[Tensor, " p"],
        x: Float[Tensor, "q d"],
        places: Places,
    ) -> Float[Tensor, "c q p"]:
        """Return the gradients of all outputs, averaged over the places of each query."""
        q, m = places.t.shape
        t = places.t.reshape(-1, 1)
        share = places.share.reshape(1, q, m, 1)
        a = x.flatten(1).repeat_interleave(m, 0)
        taken, slopes = [], []
        for layer in self.layers:
            taken.append(a)
            a, slope = _bent(layer.activation, self._moved(layer, start, step, a, t))
            slopes.append(slope)
        c = self.layers[-1].outputs
        found = x.new_zeros(c, q, self.parameters)
        g = torch.eye(c, dtype=x.dtype)[:, None].expand(c, q * m, c)
        for k in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[k]
            slope = slopes[k]
            if slope is not None:
                g = g * slope
            o, i = layer.outputs, layer.inputs
            part = (g.reshape(c, q, m, o) * share).permute(1, 0, 3, 2).reshape(q, c * o, m)
            product = torch.bmm(part, taken[k].view(q, m, i))
            into = found[:, :, layer.weight : layer.weight + o * i]
            into.copy_(product.view(q, c, o * i).transpose(0, 1))
            if layer.bias is not None:
                summed = part.sum(2).view(q, c, o).transpose(0, 1)
                found[:, :, layer.bias : layer.bias + o] = summed
            if k:
                first, change = self._maps(layer, start)[0], self._maps(layer, step)[0]
                g = g @ first + t * (g @ change)
        return found

    def kinks(
        self, start: Float[Tensor, " p"], step: Float[Tensor, " p"], x: Float[Tensor, "q d"]
    ) -> list[list[float]]:
        """Return for each query the places on the way where a unit of its switches, in order."""
        found: list[list[float]] = [[] for _ in range(len(x))]
        query = torch.arange(len(x))
        low, high = x.new_zeros(len(x)), x.new_ones(len(x))
        for _ in range(ROUNDS):
            one, two = (self._signals(start, step, x[query], t) for t in (low, high))
            first, unit = _first_switch(one, two)
            still = first < 1
            if not bool(still.any()):
                break
            query, low, high, unit = query[still], low[still], high[still], unit[still]
            place = self._root(start, step, x[query], low, high, unit)
            for number, t in zip(query.tolist(), place.tolist(), strict=True):
                found[number].append(t)
            query, low, high = query.repeat(2), torch.cat([low, place]), torch.cat([place, high])
        return [sorted(places) for places in found]

    def _root(
        self, start: Tensor, step: Tensor, x: Tensor, low: Tensor, high: Tensor, unit: Tensor
    ) -> Float[Tensor, " q"]:
        """Return where one unit of each query is zero, by false position with halving."""

        def signal(t: Tensor) -> Tensor:
            return self._signals(start, step, x, t).gather(1, unit[:, None]).squeeze(1)

        a, b = signal(low), signal(high)
        size = torch.maximum(a.abs(), b.abs())
        place = low
        for turn in range(HALVINGS):
            share = (a / (a - b)).nan_to_num(0.5).clamp(0, 1) if turn % 3 else torch.tensor(0.5)
            place = low + share * (high - low)
            value = signal(place)
            if bool((value.abs() <= 1e-15 * size).all()):
                break
            left = value * a > 0
            low, a = torch.where(left, place, low), torch.where(left, value, a)
            high, b = torch.where(left, high, place), torch.where(left, b, value)
        return place

    def _signals(
        self, start: Tensor, step: Tensor, x: Tensor, t: Tensor
    ) -> Float[Tensor, "q units"]:
        """Return what units with a kink take, each query at its place."""
        a, found = x.flatten(1), []
        for layer in self.layers[:-1]:
            z = self._moved(layer, start, step, a, t[:, None])
            if isinstance(layer.activation, KINKED):
                found.append(z)
            a, _ = _bent(layer.activation, z)
        return torch.cat(found, dim=1)

    def _moved(self, layer: Layer, start: Tensor, step: Tensor, a: Tensor, t: Tensor) -> Tensor:
        """Apply a map whose weights are on their way, each row at its own place."""
        (first, b), (change, db) = self._maps(layer, start), self._maps(layer, step)
        z = torch.addcmul(a @ first.T, a @ change.T, t)
        return z if b is None or db is None else z + b + t * db

    def _maps(self, layer: Layer, weights: Tensor) -> tuple[Tensor, Tensor | None]:
        size = layer.inputs * layer.outputs
        weight = weights[layer.weight : layer.weight + size].view(layer.outputs, layer.inputs)
        if layer.bias is None:
            return weight, None
        return weight, weights[layer.bias : layer.bias + layer.outputs]


#: Switches of units in one step at most, and steps of the search for one of them.
ROUNDS = 100
HALVINGS = 60


def _first_switch(
    one: Float[Tensor, "q u"], two: Float[Tensor, "q u"]
) -> tuple[Float[Tensor, " q"], Int64[Tensor, " q"]]:
    """Return where on a straight line the first unit would switch (inf if none does), and which."""
    tiny = 1e-12 * torch.maximum(one.abs(), two.abs()).amax(1, keepdim=True)
    switches = (one * two < 0) & (one.abs() > tiny) & (two.abs() > tiny)
    return torch.where(switches, one / (one - two), torch.inf).min(1)


def _bent(activation: nn.Module | None, z: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return what an activation gives, and its slope."""
    if activation is None:
        return z, None
    if type(activation) is nn.ReLU:
        on = z > 0
        return z * on, on.to(z.dtype)
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        a = activation(z)
        (slope,) = torch.autograd.grad(a, z, torch.ones_like(a))
    return a.detach(), slope


def _parts(model: nn.Module) -> Iterator[nn.Module]:
    if type(model) is not nn.Sequential:
        yield model
        return
    for part in model:
        yield from _parts(part)


class General:
    """Any module, in float64; all queries share their places on the way."""

    kinked = False

    def __init__(self, model: nn.Module, trainable: Sequence[str]) -> None:
        self._model = copy.deepcopy(model).double().eval()
        named = dict(self._model.named_parameters())
        for name, parameter in named.items():
            parameter.requires_grad_(name in trainable)
        self._weights = [named[name] for name in trainable]
        self._slices: dict[str, slice] = {}
        at = 0
        for name in trainable:
            self._slices[name] = slice(at, at + named[name].numel())
            at += named[name].numel()
        self.parameters = at

    def values(self, weights: Tensor, x: Tensor) -> Float[Tensor, "n c"]:
        """Return the outputs."""
        self._stand_at(weights)
        with torch.no_grad():
            y: Tensor = self._model(x.clone())
        return y.reshape(len(x), -1)

    def samples(self, weights: Tensor, x: Tensor, cotangents: Tensor) -> Float[Tensor, "n p"]:
        """Return the gradient of a weighted sum of outputs at every point."""
        self._stand_at(weights)
        return self._flat(tangents(self._model, x, cotangents[None]))[0]

    def integral(
        self, start: Tensor, step: Tensor, x: Tensor, places: Places
    ) -> Float[Tensor, "c q p"]:
        """Return the gradients of all outputs, averaged over the places, the same for all."""
        total: Tensor | None = None
        for t, share in zip(places.t[0].tolist(), places.share[0].tolist(), strict=True):
            self._stand_at(start + t * step)
            one = self._flat(tangents(self._model, x)).mul_(share)
            total = one if total is None else total.add_(one)
        assert total is not None
        return total

    def _stand_at(self, weights: Tensor) -> None:
        with torch.no_grad():
            for parameter, own in zip(self._weights, self._slices.values(), strict=True):
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
