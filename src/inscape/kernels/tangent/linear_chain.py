"""Chains of linear maps and activations in turn: their gradients are outer products.

They are kept as such, at places of its own on the way for each query, and written out only where a
moment has to be carried.
"""

import itertools
import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape.kernels.path.gradients_between import (
    General,
    Places,
    Pull,
    SegmentAverage,
    WrittenParts,
)
from inscape.kernels.path.kinks import Kinks
from inscape.kernels.path.training_mode import TrainingModeParts
from inscape.kernels.tangent.outer_products import Layer, OuterAverage, Outers

#: Activations that act on each number alone.
ELEMENTWISE = (
    nn.ReLU, nn.LeakyReLU, nn.ReLU6, nn.Hardtanh, nn.GELU, nn.Tanh, nn.Sigmoid, nn.Softplus,
    nn.SiLU, nn.ELU, nn.SELU, nn.CELU, nn.Mish, nn.Softsign, nn.LogSigmoid, nn.Hardswish,
    nn.Identity,
)  # fmt: skip

#: Those that are linear but for kinks.
STRAIGHT = (nn.ReLU, nn.LeakyReLU, nn.Hardtanh, nn.Identity)  # ReLU6 is a Hardtanh

#: Those that bend or change their law at zero.
AT_ZERO = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.Softsign)

#: Nodes of Gauss and Legendre with which a smooth network begins.
NODES = 3


class Chain:
    """A chain of linear maps, each but the last followed by an activation, in float64.

    ``trained`` is the type of the numbers in which it was trained.
    """

    def __init__(self, layers: Sequence[Layer], parameters: int, trained: torch.dtype) -> None:
        self.layers, self.parameters, self._trained = tuple(layers), parameters, trained
        kinds = [layer.activation for layer in layers[:-1]]
        # Between kinks a gradient is a polynomial of one degree less than there are maps.
        straight = all(isinstance(kind, STRAIGHT) for kind in kinds)
        self.nodes = -(-len(self.layers) // 2) if straight else NODES
        self._levels = [_levels(kind) for kind in kinds]
        self.slices = tuple(_slices(self.layers))

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
        once = at == sum(p.numel() for p in model.parameters())  # no map or weight comes twice
        if not (joined and bare and between and once):
            return None
        return cls(layers, at, next(model.parameters()).dtype)

    def values(self, weights: Float[Tensor, " p"], x: Float[Tensor, "n *d"]) -> Tensor:
        """Return the outputs."""
        a = x.flatten(1)
        for layer in self.layers:
            z = _mapped(layer, weights, a)
            a = z if layer.activation is None else layer.activation(z)
        return a

    def samples(self, weights: Float[Tensor, " p"], x: Float[Tensor, "n *d"], pull: Pull) -> Outers:
        """Return the gradient of a weighted sum of outputs at every point, as training found it."""
        taken, slopes = [], []
        weights, a = weights.to(self._trained), x.flatten(1)
        for layer in self.layers:
            taken.append(a)
            a, slope = _bent(layer.activation, _mapped(layer, weights, a))
            slopes.append(slope)
        g = pull(a)
        back = [g]
        for k in range(len(self.layers) - 1, 0, -1):
            g = g @ self.layers[k].of(weights)[0]
            slope = slopes[k - 1]
            assert slope is not None
            back.append(g.mul_(slope))
        return Outers(
            self.layers, *([part.double() for part in own] for own in (taken, back[::-1]))
        )

    def average(
        self,
        start: Float[Tensor, " p"],
        step: Float[Tensor, " p"],
        x: Float[Tensor, "q *d"],
        places: Places,
    ) -> OuterAverage:
        """Return the gradients of all outputs, averaged over the places of each query."""
        t = places.t[:, :, None]
        a = x.flatten(1)[:, None]
        taken, moved, slopes = [], [], []
        for layer in self.layers:
            first, change = _mapped(layer, start, a), _mapped(layer, step, a)
            taken.append(a)
            moved.append(change)
            a, slope = _bent(layer.activation, torch.addcmul(first, change, t))
            slopes.append(slope)
        c = self.layers[-1].outputs
        t, share = t[..., None], places.share[:, :, None, None]
        g = share * torch.eye(c, dtype=x.dtype)
        back = [g]
        for k in range(len(self.layers) - 1, 0, -1):
            layer = self.layers[k]
            g = torch.addcmul(g @ layer.of(start)[0], g @ layer.of(step)[0], t)
            slope = slopes[k - 1]
            assert slope is not None
            g = g.mul_(slope[:, :, None])
            back.append(g)
        return OuterAverage(self.layers, taken, back[::-1], moved)

    def cuts(
        self, start: Float[Tensor, " p"], step: Float[Tensor, " p"], x: Float[Tensor, "q *d"]
    ) -> Float[Tensor, "q e"]:
        """Return 0, the places where a unit of a query switches, and 1, in order; then only 1."""
        if not any(self._levels):
            return torch.tensor([[0.0, 1.0]], dtype=start.dtype).expand(len(x), 2)
        kinks = Kinks(len(x), start.dtype)
        a = x.flatten(1)
        first, change = (_mapped(self.layers[0], weights, a) for weights in (start, step))
        for level in self._levels[0]:
            kinks.straight(first - level, change)
        if any(self._levels[1:]):
            kinks.search(
                lambda query, t: self._signals(
                    start, step, torch.addcmul(first[query], change[query], t), t
                )
            )
        return kinks.edges()

    def _signals(
        self, start: Tensor, step: Tensor, z: Float[Tensor, "q u"], t: Float[Tensor, "q 1"]
    ) -> Float[Tensor, "q units"]:
        """Return how far above their kinks units are behind the first map, which gives ``z``."""
        found = []
        behind = zip(itertools.pairwise(self.layers[:-1]), self._levels[1:], strict=True)
        for (before, layer), levels in behind:
            a, _ = _bent(before.activation, z)
            z = torch.addcmul(_mapped(layer, start, a), _mapped(layer, step, a), t)
            found += [z - level for level in levels]
        return torch.cat(found, dim=1)


#: A network in float64 whose weights are one row of numbers, and what it gives.
Network = Chain | General
Average = OuterAverage | SegmentAverage
Parts = Outers | WrittenParts | TrainingModeParts


def _levels(activation: nn.Module | None) -> tuple[float, ...]:
    """Return where an activation has kinks, of its slope or of what comes after it."""
    if isinstance(activation, nn.Hardtanh):
        return activation.min_val, activation.max_val
    if isinstance(activation, nn.Hardswish):
        return -3.0, 3.0
    return (0.0,) if isinstance(activation, AT_ZERO) else ()


def _slices(layers: Sequence[Layer]) -> Iterator[slice]:
    for layer in layers:
        yield slice(layer.weight, layer.end)
        if layer.bias is not None:
            yield slice(layer.bias, layer.bias + layer.outputs)


def _mapped(layer: Layer, weights: Tensor, a: Tensor) -> Tensor:
    matrix, bias = layer.of(weights)
    return nn.functional.linear(a, matrix, bias)


def _bent(activation: nn.Module | None, z: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return what an activation gives, and its slope."""
    if activation is None:
        return z, None
    if type(activation) is nn.ReLU:
        on = z > 0
        return z * on, on.to(z.dtype)
    exact = type(activation) is nn.GELU and activation.approximate == "none"
    if exact and z.dtype is torch.float64:  # in float32 as a training rounds it: below
        below = torch.erf(z * math.sqrt(0.5)).add_(1).mul_(0.5)
        density = torch.square(z).mul_(-0.5).exp_().mul_(1 / math.sqrt(2 * math.pi))
        return z * below, density.mul_(z).add_(below)
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        a = activation(z.clone())  # it may write over what it is given
        (slope,) = torch.autograd.grad(a, z, torch.ones_like(a))
    return a.detach(), slope


def _parts(model: nn.Module) -> Iterator[nn.Module]:
    if type(model) is not nn.Sequential:
        yield model
        return
    for part in model:
        yield from _parts(part)
