"""Chains of linear layers and activations, whose gradients are outer products.

The factors of the outer products are stored at the quadrature nodes of each query; dense gradients
are computed only where a moment of the optimiser needs them.
"""

import itertools
import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape.kernels.path.chain_gradients import ChainAverage, ChainLayer, ChainSampleGradients
from inscape.kernels.path.kinks import Kinks
from inscape.kernels.path.module_network import (
    CotangentFunction,
    DenseSampleGradients,
    ModuleNetwork,
    QuadratureNodes,
    SegmentAverage,
)
from inscape.kernels.path.training_mode import TrainingModeGradients

#: Elementwise activations.
ELEMENTWISE = (
    nn.ReLU, nn.LeakyReLU, nn.ReLU6, nn.Hardtanh, nn.GELU, nn.Tanh, nn.Sigmoid, nn.Softplus,
    nn.SiLU, nn.ELU, nn.SELU, nn.CELU, nn.Mish, nn.Softsign, nn.LogSigmoid, nn.Hardswish,
    nn.Identity,
)  # fmt: skip

#: Piecewise-linear ones.
PIECEWISE_LINEAR = (nn.ReLU, nn.LeakyReLU, nn.Hardtanh, nn.Identity)  # ReLU6 is a Hardtanh

#: Those with a kink, or another formula, at zero.
AT_ZERO = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.Softsign)

#: Gauss-Legendre nodes with which a smooth network begins.
NODES = 3


class LinearChain:
    """A chain of linear layers, each but the last followed by an activation, in float64.

    ``trained`` is the dtype in which it was trained.
    """

    def __init__(self, layers: Sequence[ChainLayer], parameters: int, trained: torch.dtype) -> None:
        self.layers, self.parameters, self._trained = tuple(layers), parameters, trained
        kinds = [layer.activation for layer in layers[:-1]]
        # Between kinks a gradient is a polynomial in t, of one degree less than there are layers.
        piecewise_linear = all(isinstance(kind, PIECEWISE_LINEAR) for kind in kinds)
        self.nodes = -(-len(self.layers) // 2) if piecewise_linear else NODES
        self._kink_levels = [_kink_levels(kind) for kind in kinds]
        self.slices = tuple(_slices(self.layers))

    @classmethod
    def of(cls, model: nn.Module, trainable: Sequence[str]) -> "LinearChain | None":
        """Return a module as a chain of linear layers, or None if it is not one."""
        if [name for name, _ in model.named_parameters()] != list(trainable):
            return None
        if any(p._forward_hooks or p._forward_pre_hooks for p in model.modules()):
            return None
        layers: list[ChainLayer] = []
        offset = 0
        for index, module in enumerate(_submodules(model)):
            if type(module) is nn.Linear and "weight" in module._parameters:
                size, bias = module.weight.numel(), module.bias is not None
                d, c = module.in_features, module.out_features
                layers.append(ChainLayer(d, c, offset, offset + size if bias else None, None))
                offset += size + (c if bias else 0)
            elif type(module) in ELEMENTWISE and layers and layers[-1].activation is None:
                layer = layers.pop()
                activated = ChainLayer(
                    layer.inputs, layer.outputs, layer.weight, layer.bias, module
                )
                layers.append(activated)
            elif not (type(module) is nn.Flatten and index == 0):
                return None
        connected = all(a.outputs == b.inputs for a, b in itertools.pairwise(layers))
        ends_linear = bool(layers) and layers[-1].activation is None
        activated_inside = all(layer.activation is not None for layer in layers[:-1])
        no_sharing = offset == sum(
            p.numel() for p in model.parameters()
        )  # no layer or weight is shared
        if not (connected and ends_linear and activated_inside and no_sharing):
            return None
        return cls(layers, offset, next(model.parameters()).dtype)

    def values(self, weights: Float[Tensor, " p"], x: Float[Tensor, "n *d"]) -> Tensor:
        """Return the outputs."""
        a = x.flatten(1)
        for layer in self.layers:
            z = _linear(layer, weights, a)
            a = z if layer.activation is None else layer.activation(z)
        return a

    def samples(
        self,
        weights: Float[Tensor, " p"],
        x: Float[Tensor, "n *d"],
        cotangents_of: CotangentFunction,
    ) -> ChainSampleGradients:
        """Return the per-sample gradients of a weighted sum of outputs, in the training dtype."""
        inputs, derivatives = [], []
        weights, a = weights.to(self._trained), x.flatten(1)
        for layer in self.layers:
            inputs.append(a)
            a, derivative = _activated(layer.activation, _linear(layer, weights, a))
            derivatives.append(derivative)
        g = cotangents_of(a)
        cotangents = [g]
        for k in range(len(self.layers) - 1, 0, -1):
            g = g @ self.layers[k].of(weights)[0]
            derivative = derivatives[k - 1]
            assert derivative is not None
            cotangents.append(g.mul_(derivative))
        return ChainSampleGradients(
            self.layers,
            *([tensor.double() for tensor in tensors] for tensors in (inputs, cotangents[::-1])),
        )

    def average(
        self,
        start: Float[Tensor, " p"],
        step: Float[Tensor, " p"],
        x: Float[Tensor, "q *d"],
        nodes: QuadratureNodes,
    ) -> ChainAverage:
        """Return the gradients of all outputs, averaged over the quadrature nodes of each query."""
        t = nodes.t[:, :, None]
        a = x.flatten(1)[:, None]
        inputs, changes, derivatives = [], [], []
        for layer in self.layers:
            first, change = _linear(layer, start, a), _linear(layer, step, a)
            inputs.append(a)
            changes.append(change)
            a, derivative = _activated(layer.activation, torch.addcmul(first, change, t))
            derivatives.append(derivative)
        c = self.layers[-1].outputs
        t, weights = t[..., None], nodes.weights[:, :, None, None]
        g = weights * torch.eye(c, dtype=x.dtype)
        cotangents = [g]
        for k in range(len(self.layers) - 1, 0, -1):
            layer = self.layers[k]
            g = torch.addcmul(g @ layer.of(start)[0], g @ layer.of(step)[0], t)
            derivative = derivatives[k - 1]
            assert derivative is not None
            g = g.mul_(derivative[:, :, None])
            cotangents.append(g)
        return ChainAverage(self.layers, inputs, cotangents[::-1], changes)

    def breakpoints(
        self, start: Float[Tensor, " p"], step: Float[Tensor, " p"], x: Float[Tensor, "q *d"]
    ) -> Float[Tensor, "q e"]:
        """Return 0, the breakpoints of each query and 1, in order, padded with ones."""
        if not any(self._kink_levels):
            return torch.tensor([[0.0, 1.0]], dtype=start.dtype).expand(len(x), 2)
        kinks = Kinks(len(x), start.dtype)
        a = x.flatten(1)
        first, change = (_linear(self.layers[0], weights, a) for weights in (start, step))
        for level in self._kink_levels[0]:
            kinks.add_affine(first - level, change)
        if any(self._kink_levels[1:]):
            kinks.add_nonlinear(
                lambda query, t: self._pre_activations(
                    start, step, torch.addcmul(first[query], change[query], t), t
                )
            )
        return kinks.breakpoints()

    def _pre_activations(
        self, start: Tensor, step: Tensor, z: Float[Tensor, "q u"], t: Float[Tensor, "q 1"]
    ) -> Float[Tensor, "q units"]:
        """Return the pre-activations after the first layer, minus their kinks."""
        pre_activations = []
        deeper = zip(itertools.pairwise(self.layers[:-1]), self._kink_levels[1:], strict=True)
        for (before, layer), levels in deeper:
            a, _ = _activated(before.activation, z)
            z = torch.addcmul(_linear(layer, start, a), _linear(layer, step, a), t)
            pre_activations += [z - level for level in levels]
        return torch.cat(pre_activations, dim=1)


#: A network in float64 with a flat weight vector, its average gradients and sample gradients.
Network = LinearChain | ModuleNetwork
Average = ChainAverage | SegmentAverage
SampleGradients = ChainSampleGradients | DenseSampleGradients | TrainingModeGradients


def _kink_levels(activation: nn.Module | None) -> tuple[float, ...]:
    """Return the pre-activations at which an activation is not smooth."""
    if isinstance(activation, nn.Hardtanh):
        return activation.min_val, activation.max_val
    if isinstance(activation, nn.Hardswish):
        return -3.0, 3.0
    return (0.0,) if isinstance(activation, AT_ZERO) else ()


def _slices(layers: Sequence[ChainLayer]) -> Iterator[slice]:
    for layer in layers:
        yield slice(layer.weight, layer.end)
        if layer.bias is not None:
            yield slice(layer.bias, layer.bias + layer.outputs)


def _linear(layer: ChainLayer, weights: Tensor, a: Tensor) -> Tensor:
    matrix, bias = layer.of(weights)
    return nn.functional.linear(a, matrix, bias)


def _activated(activation: nn.Module | None, z: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the activation and its derivative."""
    if activation is None:
        return z, None
    if type(activation) is nn.ReLU:
        on = z > 0
        return z * on, on.to(z.dtype)
    exact = type(activation) is nn.GELU and activation.approximate == "none"
    if exact and z.dtype is torch.float64:  # float32 is rounded as in the training: below
        below = torch.erf(z * math.sqrt(0.5)).add_(1).mul_(0.5)
        density = torch.square(z).mul_(-0.5).exp_().mul_(1 / math.sqrt(2 * math.pi))
        return z * below, density.mul_(z).add_(below)
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        a = activation(z.clone())  # it may act in place
        (slope,) = torch.autograd.grad(a, z, torch.ones_like(a))
    return a.detach(), slope


def _submodules(model: nn.Module) -> Iterator[nn.Module]:
    if type(model) is not nn.Sequential:
        yield model
        return
    for part in model:
        yield from _submodules(part)
