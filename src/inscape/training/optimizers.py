"""Optimizers by name: those of torch.optim, and Ranger."""

import math
from collections.abc import Callable, Iterable

import torch
from torch import nn

from inscape._core import checks
from inscape.training.function_names import is_own
from inscape.training.ranger import Ranger
from inscape.training.settings import ScalarOptions

OptimizerFactory = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

OPTIMIZERS = ("sgd", "adam", "adamw", "ranger")

#: The optimizers that know each option.
KNOWN_BY: dict[str, tuple[str, ...]] = {
    "lr": OPTIMIZERS,
    "momentum": ("sgd",),
    "nesterov": ("sgd",),
    "weight_decay": OPTIMIZERS,
    "betas": ("adam", "adamw", "ranger"),
}


def build_optimizer(
    optimizer: str | OptimizerFactory, model: nn.Module, options: ScalarOptions
) -> torch.optim.Optimizer:
    """Return the optimizer of the trainable parameters of ``model``."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError(
            "a model needs parameters that require gradients to be trained, found none: "
            "call model.requires_grad_()."
        )
    if not isinstance(optimizer, str):
        return _checked(optimizer(parameters))
    checks.one_of(OPTIMIZERS, optimizer=optimizer)
    lr, decay = options.lr, options.weight_decay
    match optimizer:
        case "sgd":
            momentum, nesterov = options.momentum, options.nesterov
            return torch.optim.SGD(parameters, lr, momentum, weight_decay=decay, nesterov=nesterov)
        case "adam":
            return torch.optim.Adam(parameters, lr, options.betas, weight_decay=decay)
        case "ranger":
            return Ranger(parameters, lr, options.betas, decay)
    return torch.optim.AdamW(parameters, lr, options.betas, weight_decay=decay)


def check_optimizer(name: str, options: ScalarOptions) -> None:
    """Raise an error if the optimizer is unknown, or does not know one of its options."""
    own = is_own(name)
    if not own:
        checks.one_of(OPTIMIZERS, optimizer=name)
    for option, known_by in KNOWN_BY.items():
        value = getattr(options, option)
        if value != getattr(ScalarOptions, option) and name not in known_by:
            cure = "set it inside your function" if own else f"leave {option} out"
            raise ValueError(
                f"{option} is an option of {' and '.join(known_by)}, found {option}={value} for "
                f"the optimizer {name!r}: {cure}."
            )
    if not 0 < options.lr < math.inf:
        raise ValueError(f"lr must be positive and finite, found {options.lr}: try 0.01.")
    checks.at_least(0, weight_decay=options.weight_decay)
    if not all(0 <= value < 1 for value in (options.momentum, *options.betas)):
        raise ValueError(
            f"momentum and betas must lie in [0, 1), found {options.momentum} and "
            f"{options.betas}: try 0.9."
        )
    if options.nesterov and not options.momentum:
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
