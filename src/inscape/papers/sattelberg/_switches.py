"""The small image networks as affine maps that switches choose: one forward pass, many gradients.

A pass keeps only which pixel of each pool was the largest and whether it was positive, one byte for
each. The gradient of any output then is a product of matrices: in float64 a fourth of the time of
PyTorch's own convolutions, and no further forward pass.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple, TypeGuard

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

#: The byte of a pool whose largest pixel is not positive, after 0 to 3 for the pixels.
OFF = 4
#: Where the four pixels of a pool are.
PLACES = ((0, 0), (0, 1), (1, 0), (1, 1))
#: Images that are handled at once, so that they stay in the processor's cache.
ROWS = 16
#: Fewer outputs than these come from one product of all nine weights.
NARROW = 8


class Block(NamedTuple):
    """A convolution of 3 x 3 with a pool of 2 x 2 and a ReLU behind, in either order."""

    weights: Float[Tensor, "3 3 inputs outputs"]
    bias: Float[Tensor, " outputs"]


def is_switched(model: nn.Module) -> TypeGuard[nn.Sequential]:
    """Tell whether a network is one of those that can be taken apart."""
    return isinstance(model, nn.Sequential) and isinstance(model[0], nn.Conv2d)


class Switched:
    """A convolutional network of section 6.1, taken apart.

    Args:
        model: The network ``"simple"`` or ``"complex"``.
        grey: Whether it is a function of one channel, which all of its channels hold.
    """

    def __init__(self, model: nn.Sequential, *, grey: bool = False) -> None:
        self.blocks: list[Block] = []
        self.channels = 1 if grey else 3
        last: Any = model[-1]
        for layer in model:
            if isinstance(layer, nn.Conv2d):
                assert layer.bias is not None
                weights = layer.weight.detach().permute(2, 3, 1, 0)
                if grey and not self.blocks:
                    weights = weights.sum(2, keepdim=True)
                self.blocks.append(Block(weights.contiguous(), layer.bias.detach()))
        filters = len(self.blocks[-1].bias)
        side = round((last.in_features / filters) ** 0.5)
        weights = last.weight.detach().unflatten(1, (filters, side, side))
        self.weights, self.bias = weights.permute(0, 2, 3, 1).flatten(1), last.bias.detach()

    def forward(
        self, x: Float[Tensor, "n k s s"]
    ) -> tuple[Float[Tensor, "n outputs"], list[UInt8[Tensor, "n h w filters"]]]:
        """Return the outputs in the precision of the weights, and the switches of each block."""
        parts = (part[:, : self.channels].to(self.weights) for part in torch.split(x, ROWS))
        outputs, switches = zip(*map(self._forward, parts), strict=True)
        return torch.cat(outputs), [torch.cat(own) for own in zip(*switches, strict=True)]

    def _forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        at, switches = x.permute(0, 2, 3, 1), []
        for weights, bias in self.blocks:
            pixels = _inside(_convolved(_padded(at), weights)) + bias
            at = pixels[:, ::2, ::2]
            code = torch.zeros(at.shape, dtype=torch.uint8)
            for number, (down, right) in enumerate(PLACES):
                other = pixels[:, down::2, right::2]
                code[other > at] = number
                at = torch.maximum(at, other)
            code[at <= 0] = OFF
            at = at.clamp(min=0)
            switches.append(code)
        return at.flatten(1) @ self.weights.T + self.bias, switches

    def backward(
        self, vectors: Float[Tensor, "n outputs"], switches: list[UInt8[Tensor, "n h w filters"]]
    ) -> Float[Tensor, "n inputs s s"]:
        """Return products of vectors with the Jacobians that the switches choose."""
        parts = zip(*(torch.split(own, ROWS) for own in (vectors, *switches)), strict=True)
        return torch.cat([self._backward(part, list(own)) for part, *own in parts])

    def _backward(self, vectors: Tensor, switches: list[Tensor]) -> Tensor:
        at: Tensor = (vectors @ self.weights).view(switches[-1].shape)
        for (weights, _), code in zip(reversed(self.blocks), reversed(switches), strict=True):
            n, height, width, filters = code.shape
            whole = at.new_zeros(n, 2 * height + 2, 2 * width + 2, filters)
            for number, (down, right) in enumerate(PLACES):
                torch.mul(at, code == number, out=whole[:, 1 + down : -1 : 2, 1 + right : -1 : 2])
            at = _inside(_convolved(whole, weights.flip(0, 1).mT))
        return at.permute(0, 3, 1, 2)


class _Call(torch.autograd.Function):
    """A network whose derivative comes from its switches."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, switched: Switched) -> Tensor:
        outputs, switches = switched.forward(x)
        ctx.switched = switched
        ctx.save_for_backward(*switches)
        return outputs

    @staticmethod
    def backward(ctx: Any, *vectors: Tensor) -> tuple[Tensor, None]:
        switched: Switched = ctx.switched
        return switched.backward(vectors[0], list(ctx.saved_tensors)), None


def as_function(
    model: nn.Module, *, grey: bool
) -> Callable[[Float[Tensor, "n k s s"]], Float[Tensor, "n outputs"]]:
    """Return a network in float64: of one channel, where all three hold the same image."""
    wide = deepcopy(model).double()
    if is_switched(wide):
        switched = Switched(wide, grey=grey)
        return lambda x: _Call.apply(x, switched)  # type: ignore[no-untyped-call]
    return (lambda x: wide(x.expand(-1, 3, -1, -1))) if grey else wide


def _padded(at: Float[Tensor, "n h w k"]) -> Float[Tensor, "n h+2 w+2 k"]:
    return nn.functional.pad(at, (0, 0, 1, 1, 1, 1))


def _inside(at: Float[Tensor, "n h w k"]) -> Float[Tensor, "n h-2 w-2 k"]:
    return at[:, 1:-1, 1:-1]


def _convolved(
    padded: Float[Tensor, "n h w inputs"], weights: Float[Tensor, "3 3 inputs outputs"]
) -> Float[Tensor, "n h w outputs"]:
    """Return a convolution, in which the values at the rim mean nothing.

    Pixels in a row: each of the nine weights multiplies all of them, some places further on.
    """
    pixels, width, outputs = padded.flatten(0, 2), padded.shape[2], weights.shape[3]
    first, last = width + 1, len(pixels) - width - 1
    steps = [(down - 1) * width + right - 1 for down in range(3) for right in range(3)]
    if outputs < NARROW:
        products = weights.mT.reshape(-1, pixels.shape[1]) @ pixels.T
        found = pixels.new_zeros(outputs, len(pixels))
        for product, step in zip(torch.split(products, outputs), steps, strict=True):
            found[:, first:last] += product[:, first + step : last + step]
        return found.T.reshape(*padded.shape[:3], outputs)
    found = pixels.new_zeros(len(pixels), outputs)
    for own, step in zip(weights.flatten(0, 1), steps, strict=True):
        found[first:last].addmm_(pixels[first + step : last + step], own)
    return found.view(*padded.shape[:3], outputs)
