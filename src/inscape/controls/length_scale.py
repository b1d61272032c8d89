"""Length scale: hold the standard deviation of weights while a network is trained."""

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any, Literal

import torch
from torch import Tensor

from inscape._core import checks
from inscape.controls.layers import Held, Layer, M, fan_in, held_everywhere

Scope = Literal["matrix", "row", "column"]


class LengthScale(Held):
    """Weights that always have one standard deviation, in all or in each row or column.

    Attributes:
        target: The standard deviation.
        scope: Over which weights it is taken.
        unbiased: Whether sums of squares are divided by one less than their number.
    """

    def __init__(self, target: float, scope: str = "matrix", *, unbiased: bool = True) -> None:
        super().__init__()
        self.target, self.scope, self.unbiased = target, scope, unbiased

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"target={self.target:.4g}, scope={self.scope!r}, unbiased={self.unbiased}"

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weights, scaled."""
        if self.scope != "matrix":
            std = weight.std(
                _reduced_dims(weight, self.scope), correction=self.unbiased, keepdim=True
            )
            return weight * (self.target / std)
        if torch.is_grad_enabled() and weight.requires_grad:
            apply: Callable[..., Tensor] = _Scaled.apply
            return apply(weight, self.target, int(self.unbiased))
        _, variance = _moments(weight, self.unbiased)
        return weight * (self.target * variance.rsqrt())


class _Scaled(torch.autograd.Function):
    r"""Scale a whole matrix, with its gradient in closed form.

    .. math:: \tilde W = \frac{t}{s} W, \quad \nabla_W = \frac{t}{s} \left( G -
              \frac{\langle G, W \rangle}{(n - 1) s^2} (W - \bar W) \right)

    where G is the gradient in the scaled weights. ``torch.var_mean`` takes ten times as long as the
    two passes here. ``jvp`` is the same for forward mode.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(weight: Tensor, target: float, correction: int) -> Tensor:
        _, variance = _moments(weight, bool(correction))
        return weight * (target * variance.rsqrt())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        weight, ctx.target, ctx.correction = inputs
        ctx.save_for_backward(weight)
        ctx.save_for_forward(weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (weight,) = ctx.saved_tensors
        centred, variance = _moments(weight, bool(ctx.correction))
        along = torch.dot(gradient.reshape(-1), weight.reshape(-1))
        along = along / (variance * (weight.numel() - ctx.correction))
        return (gradient - along * centred) * (ctx.target * variance.rsqrt()), None, None

    @staticmethod
    def jvp(ctx: Any, change: Tensor, *_: None) -> Tensor:
        (weight,) = ctx.saved_tensors
        centred, variance = _moments(weight, bool(ctx.correction))
        along = torch.dot(change.reshape(-1), centred.reshape(-1))
        along = along / (variance * (weight.numel() - ctx.correction))
        scaled: Tensor = (change - along * weight) * (ctx.target * variance.rsqrt())
        return scaled


def _moments(weight: Tensor, unbiased: bool) -> tuple[Tensor, Tensor]:
    """Return the weights without their mean, and their variance."""
    centred = weight - weight.mean()
    flat = centred.reshape(-1)
    return centred, torch.dot(flat, flat) / (len(flat) - unbiased)


def length_scale(
    module: M,
    sigma: float | Sequence[float],
    *,
    scope: Scope = "matrix",
    bias: Literal["free", "normalised"] = "free",
    unbiased: bool = True,
) -> M:
    r"""Hold the standard deviation of a network's weights at sigma over the root of its inputs.

    .. math:: \tilde w = w \, \frac{\sigma}{\sqrt{N} \, \mathrm{std}(w)}

    N is the fan-in of a layer (Klindt's Eq. 7 as corrected: K1 to K3, K10). For two-layer tanh
    networks 1/sigma acts as the length scale of a Gaussian process: the larger, the smoother. What
    is trained is w; what the layer computes with, and what ``layer.weight`` shows, is always
    scaled. Any optimizer, ``state_dict`` and ``load_state_dict`` work as ever (a state of another
    sigma is refused), ``torch.save`` of the whole model does not; :func:`release` makes plain
    layers of it. Other layers with weights stay free, and sigma does nothing to a layer right
    before a batch norm or instance norm; warnings say so.

    >>> net = length_scale(torch.nn.Linear(4, 100), 0.5)
    >>> round(net.weight.std().item(), 6)
    0.25

    Args:
        module: A Linear or Conv layer, or a model: then all such layers of it, however deep. It is
            changed in place, and returned.
        sigma: Inverse of the length scale; a sequence gives one to each layer, in their order.
        scope: Weights that share a standard deviation: all of a layer (``"matrix"``, as in the
            released code), those of one output (``"row"``, as the equation is written) or of one
            input (``"column"``; for convolutions an input channel, as in A.2.4).
        bias: ``"free"``, or ``"normalised"`` as in the released code: biases of several outputs
            are held at the standard deviation sigma, that of a single one is multiplied by it.
        unbiased: Whether the variance is the sum of squares over n - 1, as in the code, or over n,
            as in the equation.
    """
    checks.one_of(("matrix", "row", "column"), scope=scope)
    checks.one_of(("free", "normalised"), bias=bias)

    def parametrizations_of(layer: Layer, value: float, place: str) -> dict[str, Held]:
        _check_variance(layer.weight, scope, f"weights of {place}")
        target = value / sqrt(fan_in(layer))
        tensors: dict[str, Held] = {"weight": LengthScale(target, scope, unbiased=unbiased)}
        if bias == "normalised" and layer.bias is not None:
            if len(layer.bias) > 1:
                _check_variance(layer.bias, "matrix", f"biases of {place}")
                tensors["bias"] = LengthScale(value, unbiased=unbiased)
            else:
                tensors["bias"] = Factor(value)
        return tensors

    return held_everywhere(module, sigma, "sigma", parametrizations_of)


class Factor(Held):
    """A tensor times a number."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def extra_repr(self) -> str:
        """Return the number."""
        return f"factor={self.factor:.4g}"

    def forward(self, value: Tensor) -> Tensor:
        """Return the product."""
        return value * self.factor


def _reduced_dims(weight: Tensor, scope: str) -> tuple[int, ...]:
    """Return the dimensions over which the standard deviation is taken."""
    if scope == "matrix":
        return tuple(range(weight.ndim))
    fixed = 0 if scope == "row" else 1
    return tuple(dim for dim in range(weight.ndim) if dim != fixed)


@torch.no_grad()
def _check_variance(weight: Tensor, scope: str, name: str) -> None:
    """Refuse weights without a spread: nothing times zero has a standard deviation above zero."""
    dims = _reduced_dims(weight, scope)
    count = prod(weight.shape[dim] for dim in dims)
    group = "" if scope == "matrix" else f" in each {scope}"
    if count < 2:
        raise ValueError(
            f"a standard deviation needs at least two numbers, found 1 among the {name}{group}: "
            "leave this layer out, or choose another scope."
        )
    if not bool(weight.isfinite().all()):
        raise ValueError(
            f"the {name} must be finite, found NaN or Inf: load an earlier checkpoint."
        )
    if not bool((weight.amax(dims) > weight.amin(dims)).all()):
        raise ValueError(
            f"the {name} must differ{group}, found equal ones, whose standard deviation is 0: draw "
            "them at random first."
        )
