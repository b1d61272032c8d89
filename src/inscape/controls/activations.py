"""Activation normalisation: hold what the units give, not what they weigh."""

from math import inf

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape.controls.layers import Layer, layers_of


class ActivationScale(nn.Module):
    r"""Subtract the mean of each unit over the batch and hold one standard deviation for all.

    .. math:: \tilde z_j = \rho \, \frac{z_j - \mu_j}{s}, \qquad
              s^2 = \tfrac1h \sum_j \mathrm{var}(z_j)

    One number s for a layer keeps the proportions of its units, as one standard deviation keeps
    those of a weight matrix; batch norm does not. In eval mode means of the training are used.

    Attributes:
        scale: Standard deviation :math:`\rho` before the activation.
        momentum: Share of the newest batch in the running means.
    """

    mean: Tensor
    variance: Tensor
    seen: Tensor

    def __init__(self, units: int, scale: float, *, momentum: float = 0.1, like: Tensor) -> None:
        super().__init__()
        self.scale, self.momentum = scale, momentum
        self.register_buffer("mean", like.new_zeros(units))
        self.register_buffer("variance", like.new_ones(()))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long, device=like.device))

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{len(self.mean)}, scale={self.scale:.4g}, momentum={self.momentum:.4g}"

    def forward(self, z: Float[Tensor, "n units *rest"]) -> Tensor:
        """Return the units, normalised."""
        mean, variance = self.mean, self.variance
        if self.training:
            dims = [0, *range(2, z.ndim)]
            mean = z.mean(dims)
            variance = (z - self._spread(mean, z)).square().mean()
            self._note(mean.detach(), variance.detach())
        return (z - self._spread(mean, z)) * (self.scale * (variance + 1e-12).rsqrt())

    def _note(self, mean: Tensor, variance: Tensor) -> None:
        """Let the running means follow; the first batch counts in full."""
        share = torch.where(self.seen == 0, 1.0, self.momentum).to(mean)
        self.mean = self.mean + share * (mean - self.mean)
        self.variance = self.variance + share * (variance - self.variance)
        self.seen = self.seen + 1

    def _spread(self, mean: Tensor, z: Tensor) -> Tensor:
        return mean.view(1, -1, *[1] * (z.ndim - 2))


def activation_scale(model: nn.Sequential, scale: float, *, momentum: float = 0.1) -> nn.Sequential:
    r"""Return a network whose units have one standard deviation before each activation.

    .. math:: \tilde z_j = \rho \, (z_j - \mu_j) / s

    The question that Klindt's paper leaves open (section 5): what if activations are normalised
    instead of weights? A small scale keeps tanh near its straight part, a large one drives it to
    its corners. After every linear or convolutional layer but the last comes a module
    :class:`ActivationScale`, in chains within the chain too; the layers are shared with the model
    given.

    >>> net = activation_scale(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)), 0.5)
    >>> [type(part).__name__ for part in net]
    ['Linear', 'ActivationScale', 'Tanh', 'Linear']

    Args:
        model: ``nn.Sequential`` with at least two linear or convolutional layers.
        scale: Standard deviation of the units over batch and layer, above 0.
        momentum: Share of the newest batch in the means that eval mode uses.
    """
    if not 0 < scale < inf:
        raise ValueError(f"scale must be a finite number above 0, found {scale}: raise scale.")
    if not isinstance(model, nn.Sequential):
        raise ValueError(
            f"activation_scale takes an nn.Sequential, found {type(model).__name__}: put "
            "ActivationScale modules into its forward by hand."
        )
    hidden = _occurrences(model) - 1
    if hidden < 1:
        raise ValueError(
            "activation_scale needs a hidden layer before the last one, found none: pass a model "
            "with at least two Linear or Conv layers."
        )
    return _scaled(model, scale, momentum, [hidden]).train(model.training)


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


def _scaled(model: nn.Sequential, scale: float, momentum: float, left: list[int]) -> nn.Sequential:
    """Return the chain with a module after each layer, as long as some are left to be put in."""
    parts: list[nn.Module] = []
    for part in model:
        if isinstance(part, nn.Sequential):
            part = _scaled(part, scale, momentum, left)
        parts.append(part)
        if isinstance(part, Layer) and left[0]:
            left[0] -= 1
            units = ActivationScale(len(part.weight), scale, momentum=momentum, like=part.weight)
            parts.append(units)
    return nn.Sequential(*parts)
