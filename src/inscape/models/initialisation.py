"""Initial weights: the papers' distributions, drawn in place from a private generator.

Every function here walks over a module in the order of ``module.modules()``, draws the weights of
linear and convolutional layers anew, resets normalisation layers to the identity, and refuses any
other layer that holds parameters. ``scale`` multiplies the *variance* of what is drawn.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.errors import UnsupportedModelError

Transposed = nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d
Weighted = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d | Transposed
Normalising = (
    nn.BatchNorm1d
    | nn.BatchNorm2d
    | nn.BatchNorm3d
    | nn.InstanceNorm1d
    | nn.InstanceNorm2d
    | nn.InstanceNorm3d
    | nn.GroupNorm
    | nn.LayerNorm
    | nn.RMSNorm
)


def glorot_uniform(module: nn.Module, *, scale: float = 1.0, seed: int = 0) -> None:
    r"""Draw weights from Glorot's uniform distribution with scale :math:`\alpha`; biases are zero.

    .. math:: w \sim U(-l, l), \qquad l = \sqrt{6 \alpha / (n_{in} + n_{out})}

    Volhejn, eq. (4.1), with the factor 6 of its code in place of the printed 3: at
    :math:`\alpha = 1` this is Glorot's law. The thesis trains at :math:`\alpha = 0.01` and 1.

    Args:
        module: Module whose parameters are overwritten.
        scale: Factor :math:`\alpha` of the variance.
        seed: Seed of the draw.
    """

    def weight(blank: Tensor, rng: torch.Generator) -> Tensor:
        limit = math.sqrt(6 * scale / sum(fans(blank)))
        return blank.uniform_(-limit, limit, generator=rng)

    _fill(module, weight, _zero, scale=scale, seed=seed)


def he_normal(module: nn.Module, *, scale: float = 1.0, seed: int = 0) -> None:
    r"""Draw weights from He's normal distribution, not truncated; biases are zero.

    .. math:: w \sim N(0, \; 2 \alpha / n_{in})

    Args:
        module: Module whose parameters are overwritten.
        scale: Factor :math:`\alpha` of the variance.
        seed: Seed of the draw.
    """

    def weight(blank: Tensor, rng: torch.Generator) -> Tensor:
        return blank.normal_(0.0, math.sqrt(2 * scale / fans(blank)[0]), generator=rng)

    _fill(module, weight, _zero, scale=scale, seed=seed)


def he_uniform(module: nn.Module, *, scale: float = 1.0, seed: int = 0) -> None:
    r"""Draw weights from He's uniform distribution; biases are zero.

    .. math:: w \sim U(-l, l), \qquad l = \sqrt{6 \alpha / n_{in}}

    Args:
        module: Module whose parameters are overwritten.
        scale: Factor :math:`\alpha` of the variance.
        seed: Seed of the draw.
    """

    def weight(blank: Tensor, rng: torch.Generator) -> Tensor:
        limit = math.sqrt(6 * scale / fans(blank)[0])
        return blank.uniform_(-limit, limit, generator=rng)

    _fill(module, weight, _zero, scale=scale, seed=seed)


def pytorch_default(module: nn.Module, *, scale: float = 1.0, seed: int = 0) -> None:
    r"""Draw weights and biases as PyTorch's ``reset_parameters`` does, but privately.

    .. math:: w, b \sim U(-l, l), \qquad l = \sqrt{\alpha / n_{in}}

    At ``scale=1`` a stack of layers gets, bit for bit, what PyTorch would give it on the CPU after
    ``torch.manual_seed(seed)``.

    Args:
        module: Module whose parameters are overwritten.
        scale: Factor :math:`\alpha` of the variance, for weights and biases alike.
        seed: Seed of the draw.
    """

    def weight(blank: Tensor, rng: torch.Generator) -> Tensor:
        # This roundabout form of 1 / sqrt(n_in) is PyTorch's own, and rounds as it does.
        drawn = nn.init.kaiming_uniform_(blank, a=math.sqrt(5), generator=rng)
        return drawn.mul_(math.sqrt(scale))

    def bias(blank: Tensor, n_in: int, rng: torch.Generator) -> Tensor:
        limit = 1 / math.sqrt(n_in)
        return blank.uniform_(-limit, limit, generator=rng).mul_(math.sqrt(scale))

    _fill(module, weight, bias, scale=scale, seed=seed)


INITIALISATIONS: dict[str, Callable[..., None]] = {
    "pytorch": pytorch_default,
    "glorot": glorot_uniform,
    "he_normal": he_normal,
    "he_uniform": he_uniform,
}


def fans(weight: Tensor) -> tuple[int, int]:
    """Return how many inputs feed one output of a layer, and how many outputs one input feeds."""
    receptive = math.prod(weight.shape[2:])
    return weight.shape[1] * receptive, weight.shape[0] * receptive


def _zero(blank: Tensor, n_in: int, rng: torch.Generator) -> Tensor:
    return blank.zero_()


@torch.no_grad()
def _fill(
    module: nn.Module,
    weight: Callable[[Tensor, torch.Generator], Tensor],
    bias: Callable[[Tensor, int, torch.Generator], Tensor],
    *,
    scale: float,
    seed: int,
) -> None:
    """Overwrite all layers; draws are made on the CPU, so that every device gets the same."""
    if not 0 <= scale < math.inf:
        raise ValueError(
            f"scale must be a finite factor of the variance, at least 0, found {scale}: "
            "use 1.0 for the law as it is."
        )
    weighted = list(_weighted(module))
    rng = generator(seed)
    for layer in weighted:
        blank = torch.empty_like(layer.weight, device="cpu")
        transposed = isinstance(layer, Transposed)
        drawn = weight(blank.transpose(0, 1) if transposed else blank, rng)
        layer.weight.copy_(drawn.transpose(0, 1) if transposed else drawn)
        if layer.bias is not None:
            n_in, _ = fans(drawn)
            layer.bias.copy_(bias(torch.empty_like(layer.bias, device="cpu"), n_in, rng))
    for part in module.modules():
        if isinstance(part, Normalising):
            part.reset_parameters()


def _weighted(module: nn.Module) -> Iterator[Weighted]:
    """Yield the layers to be drawn; refuse one that no distribution here covers."""
    for name, layer in module.named_modules():
        if isinstance(layer, Weighted):
            if "weight" not in dict(layer.named_parameters(recurse=False)):
                raise UnsupportedModelError(
                    "an initialisation draws weights themselves, but those of "
                    f"{name or 'the module itself'!r} are made of others "
                    "(weight_norm or its like): initialise first, then wrap it."
                )
            yield layer
        elif not isinstance(layer, Normalising) and list(layer.parameters(recurse=False)):
            raise UnsupportedModelError(
                "an initialisation knows linear, convolutional and normalisation layers, but "
                f"{name or 'the module itself'!r} is a {type(layer).__name__} with parameters of "
                "its own: draw that one by hand and pass the other parts here."
            )
