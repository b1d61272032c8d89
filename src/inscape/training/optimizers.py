"""Optimizers by name: those of torch.optim, and Ranger."""

import math
from collections.abc import Callable, Iterable

import torch
from torch import nn

from inscape._core import checks
from inscape.training.function_names import is_own
from inscape.training.ranger import Ranger
from inscape.training.trajectory import Settings

OptimizerFactory = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

OPTIMIZERS = ("sgd", "adam", "adamw", "ranger")

#: Each option of an optimizer: its value if nobody asks for it, and who knows it.
OPTIONS: dict[str, tuple[object, tuple[str, ...]]] = {
    "lr": (0.01, OPTIMIZERS),
    "momentum": (0.0, ("sgd",)),
    "nesterov": (False, ("sgd",)),
    "weight_decay": (0.0, OPTIMIZERS),
    "betas": ((0.9, 0.999), ("adam", "adamw", "ranger")),
}


def build_optimizer(
    optimizer: str | OptimizerFactory, model: nn.Module, settings: Settings
) -> torch.optim.Optimizer:
    """Return the optimizer of the trainable parameters of ``model``."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError(
            "a model needs parameters that require gradients to be trained, found none: "
            "call model.requires_grad_()."
        )
    _check_options(settings)
    if not isinstance(optimizer, str):
        return _checked(optimizer(parameters))
    lr, decay = settings.lr, settings.weight_decay
    match optimizer:
        case "sgd":
            momentum, nesterov = settings.momentum, settings.nesterov
            return torch.optim.SGD(parameters, lr, momentum, weight_decay=decay, nesterov=nesterov)
        case "adam":
            return torch.optim.Adam(parameters, lr, settings.betas, weight_decay=decay)
        case "ranger":
            return Ranger(parameters, lr, settings.betas, decay)
    return torch.optim.AdamW(parameters, lr, settings.betas, weight_decay=decay)


def _check_options(settings: Settings) -> None:
    own = is_own(settings.optimizer)
    if not own:
        checks.one_of(OPTIMIZERS, optimizer=settings.optimizer)
    for name, (silent, known_by) in OPTIONS.items():
        value = getattr(settings, name)
        if value != silent and settings.optimizer not in known_by:
            cure = "set it inside your function" if own else f"leave {name} out"
            raise ValueError(
                f"{name} is an option of {' and '.join(known_by)}, found {name}={value} for the "
                f"optimizer {settings.optimizer!r}: {cure}."
            )
    if not 0 < settings.lr < math.inf:
        raise ValueError(f"lr must be positive and finite, found {settings.lr}: try 0.01.")
    checks.at_least(0, weight_decay=settings.weight_decay)
    if not all(0 <= value < 1 for value in (settings.momentum, *settings.betas)):
        raise ValueError(
            f"momentum and betas must lie in [0, 1), found {settings.momentum} and "
            f"{settings.betas}: try 0.9."
        )
    if settings.nesterov and not settings.momentum:
        raise ValueError("nesterov needs momentum above 0, found 0.0: try momentum=0.9.")


def _checked(optimizer: object) -> torch.optim.Optimizer:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            "an optimizer of your own is a function from parameters to a torch.optim.Optimizer, "
            f"found one that returns {type(optimizer).__name__}: return the optimizer."
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise TypeError(
            "the training loop evaluates the loss once per step, which LBFGS does not allow: "
            "choose another optimizer."
        )
    return optimizer
