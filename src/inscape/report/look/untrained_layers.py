"""Layers whose weights are distributed as an initialisation draws them."""

import math

from torch import Tensor, nn

#: Weights that a layer must have for their distribution to say something: with fewer, an even and a
#: normal draw are not told apart.
ENOUGH = 400
#: How far the standard deviation of weights may be from that of a draw, at least and in standard
#: errors; and how far the kurtosis may be, in standard errors.
RELATIVE, ERRORS = 0.02, 4.0
#: Standard deviation of transformers' usual draws.
SMALL = 0.02


def drawn_layers(model: nn.Module) -> tuple[tuple[str, ...], int]:
    """Return the layers whose weights look drawn, and how many were looked at."""
    fresh, weighed = [], 0
    for name, module in model.named_modules():
        kind = isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)
        if not kind or module.weight.numel() < ENOUGH:
            continue
        weighed += 1
        if is_drawn(module.weight.detach()):
            fresh.append(name)
    return tuple(fresh), weighed


def is_drawn(weight: Tensor) -> bool:
    """Tell whether weights are distributed as one of the usual initialisations draws them.

    Even between bounds of PyTorch's default, He's or Glorot's, or normal with the standard
    deviation of LeCun's, He's, Glorot's or that of transformers. Both the standard deviation and
    the kurtosis must fit, and no weight may be beyond the bounds of an even draw.
    """
    values = weight.double().flatten()
    count = len(values)
    std = float(values.std())
    if not std > 0:
        return False
    inputs, outputs = weight[0].numel(), len(weight) * weight[0, 0].numel()
    kurtosis = float(((values - values.mean()) / std).pow(4).mean())
    largest = float(values.abs().max())
    return _even(std, kurtosis, largest, count, inputs, outputs) or _normal(
        std, kurtosis, count, inputs, outputs
    )


def _even(
    std: float, kurtosis: float, largest: float, count: int, inputs: int, outputs: int
) -> bool:
    error = math.sqrt(0.2 / count)  # of the standard deviation of an even draw, relative
    bounds = (1 / inputs, 6 / inputs, 6 / (inputs + outputs))
    fits = abs(kurtosis - 1.8) < ERRORS * math.sqrt(1.5 / count) + RELATIVE
    return fits and any(
        largest <= math.sqrt(bound) * (1 + 1e-6)
        and abs(std * math.sqrt(3 / bound) - 1) < max(RELATIVE, ERRORS * error)
        for bound in bounds
    )


def _normal(std: float, kurtosis: float, count: int, inputs: int, outputs: int) -> bool:
    error = math.sqrt(0.5 / count)
    fits = abs(kurtosis - 3) < ERRORS * math.sqrt(24 / count)
    variances = (1 / inputs, 2 / inputs, 2 / (inputs + outputs), SMALL**2)
    return fits and any(
        abs(std / math.sqrt(variance) - 1) < ERRORS * error for variance in variances
    )
