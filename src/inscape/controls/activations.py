"""Activation normalisation: hold what the units give, not what they weigh."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape.controls._checks import fraction, positive
from inscape.controls.layers import Control, Layer, Norm, layers_of


class ActivationScale(Control):
    r"""Subtract the mean of each unit over the batch and hold one standard deviation for all.

    .. math:: \tilde z_j = \rho \, \frac{z_j - \mu_j}{s}, \qquad
              s^2 = \tfrac1h \sum_j \mathrm{var}(z_j)

    One number s for a layer keeps the proportions of its units, as one standard deviation keeps
    those of a weight matrix; batch norm does not. In eval mode means of the training are used. A
    state of another scale is not loaded.

    Attributes:
        scale: Standard deviation :math:`\rho` before the activation.
        momentum: Share of the newest batch in the running means.
    """

    mean: Tensor
    variance: Tensor
    seen: Tensor

    def __init__(self, units: int, scale: float, *, momentum: float = 0.1, like: Tensor) -> None:
        super().__init__()
        self.scale, self.momentum = positive(scale, "scale"), fraction(momentum, "momentum")
        self.register_buffer("mean", like.new_zeros(units))
        self.register_buffer("variance", like.new_ones(()))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long, device=like.device))

    def settings(self) -> dict[str, Any]:
        """Return at what the units are held."""
        return {"by": "ActivationScale", "scale": self.scale}

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{len(self.mean)}, scale={self.scale:.4g}, momentum={self.momentum:.4g}"

    def forward(self, z: Float[Tensor, "n units *rest"]) -> Tensor:
        """Return the units, normalised."""
        mean, variance = self.mean, self.variance
        if self.training:
            dims = [0, *range(2, z.ndim)]
            mean = z.mean(dims)
            variance = (z - self._broadcastable(mean, z)).square().mean()
            self._update_running(mean.detach(), variance.detach())
        return (z - self._broadcastable(mean, z)) * (self.scale * (variance + 1e-12).rsqrt())

    def _update_running(self, mean: Tensor, variance: Tensor) -> None:
        """Let the running means follow; the first batch counts in full."""
        newest = torch.where(self.seen == 0, 1.0, self.momentum).to(mean)
        self.mean = self.mean + newest * (mean - self.mean)
        self.variance = self.variance + newest * (variance - self.variance)
        self.seen = self.seen + 1

    def _broadcastable(self, mean: Tensor, z: Tensor) -> Tensor:
        return mean.view(1, -1, *[1] * (z.ndim - 2))


def activation_scale(model: nn.Sequential, scale: float, *, momentum: float = 0.1) -> nn.Sequential:
    r"""Return a network whose units have one standard deviation before each activation.

    .. math:: \tilde z_j = \rho \, (z_j - \mu_j) / s

    The question that Klindt's paper leaves open (section 5): what if activations are normalised
    instead of weights? A small scale keeps tanh near its straight part, a large one drives it to
    its corners. After every linear or convolutional layer but the last, and after a batch norm or
    instance norm that is right behind it, comes a module :class:`ActivationScale`, in chains within
    the chain too; the layers are shared with the model given. :func:`release` leaves these modules
    where they are.

    >>> net = activation_scale(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)), 0.5)
    >>> [type(part).__name__ for part in net]
    ['Linear', 'ActivationScale', 'Tanh', 'Linear']

    Args:
        model: ``nn.Sequential`` with at least two linear or convolutional layers.
        scale: Standard deviation of the units over batch and layer, above 0.
        momentum: Share of the newest batch in the means that eval mode uses.
    """
    scale, momentum = positive(scale, "scale"), fraction(momentum, "momentum")
    if not isinstance(model, nn.Sequential):
        raise ValueError(
            f"activation_scale takes an nn.Sequential, found {type(model).__name__}: put "
            "ActivationScale modules into its forward by hand."
        )
    if _occurrences(model) < 2:
        raise ValueError(
            "activation_scale needs a hidden layer before the last one, found none: pass a model "
            "with at least two Linear or Conv layers."
        )
    return _scaled(model, scale, momentum, _places(model)).train(model.training)


def _occurrences(model: nn.Sequential) -> int:
    """Return how often layers are used; refuse those that stand in other modules."""
    count = 0
    for part in model:
        if isinstance(part, nn.Sequential):
            count += _occurrences(part)
        elif isinstance(part, Layer):
            layers_of(part)
            count += 1
        elif any(isinstance(inner, Layer) for inner in part.modules()):
            raise ValueError(
                "activation_scale sees the layers of an nn.Sequential and of those within it, "
                f"found others in {type(part).__name__}: put ActivationScale modules into its "
                "forward by hand."
            )
    return count


def _leaves(model: nn.Sequential) -> Iterator[nn.Module]:
    for part in model:
        if isinstance(part, nn.Sequential):
            yield from _leaves(part)
        else:
            yield part


def _places(model: nn.Sequential) -> Iterator[Layer | None]:
    """Yield, for each part, the layer whose units are to be scaled behind it, if there is one."""
    leaves = list(_leaves(model))
    last = max(k for k, part in enumerate(leaves) if isinstance(part, Layer))
    waiting: Layer | None = None
    for k, part in enumerate(leaves):
        if isinstance(part, Layer) and k < last:
            waiting = part
        ready = k + 1 == len(leaves) or not isinstance(leaves[k + 1], Norm)
        yield waiting if ready else None
        waiting = None if ready else waiting


def _scaled(
    model: nn.Sequential, scale: float, momentum: float, places: Iterator[Layer | None]
) -> nn.Sequential:
    """Return the chain with a module at each place; the places go on from chain to chain."""
    parts: list[nn.Module] = []
    for part in model:
        if isinstance(part, nn.Sequential):
            parts.append(_scaled(part, scale, momentum, places))
            continue
        parts.append(part)
        if (layer := next(places)) is not None:
            like = layer.weight
            parts.append(ActivationScale(len(like), scale, momentum=momentum, like=like))
    return nn.Sequential(*parts)
