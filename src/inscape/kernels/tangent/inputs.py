"""Checks of model and inputs: floating-point samples, or integers such as token ids."""

import torch
from torch import Tensor, nn

from inscape._core import checks
from inscape.errors import UnsupportedModelError
from inscape.functional.batch_independence import (
    TRIAL,
    refuse_hidden_mixing,
    refuse_mixing,
    refuse_pairing,
    trial_samples,
)


def is_integer(x: object) -> bool:
    """Return whether ``x`` holds integers."""
    unsupported = isinstance(x, Tensor) and (x.is_complex() or x.dtype == torch.bool)
    return isinstance(x, Tensor) and not x.is_floating_point() and not unsupported


def check_points(x: Tensor, name: str = "x") -> None:
    """Raise unless ``x`` is a non-empty, finite batch."""
    checks.points(x.double() if is_integer(x) else x, name)


def output_count(model: nn.Module, x: Tensor) -> int:
    """Check model and data, and return the number of outputs."""
    checks.module(model)
    checks.in_eval_mode(model)
    check_points(x)
    checks.weights(model, floating_like(model, x))
    samples = trial_samples(x)

    @torch.enable_grad()
    def call(batch: Tensor) -> Tensor:
        y: Tensor = model(batch.detach().clone())
        return y

    try:
        trial = checks.call(call, samples).detach().reshape(TRIAL, -1)
    except UnsupportedModelError as error:
        if isinstance(error.__cause__, RuntimeError):  # linear layers reject integers
            checks.points(x)
        refuse_pairing(call, samples, error)
        raise
    refuse_mixing(call, samples, trial)
    refuse_hidden_mixing(call, x, trial)
    return trial.shape[1]


def floating_like(model: nn.Module, x: Tensor) -> Tensor:
    """Return a tensor with the dtype and device of the gradients at ``x``."""
    parameters = (p.detach() for p in model.parameters() if p.is_floating_point())
    return next(parameters, x.double()) if is_integer(x) else x


def refuse_unreached(reached: object) -> None:
    """Raise if no trainable parameter of a module has a gradient."""
    if not reached:
        raise UnsupportedModelError(
            "the model must let gradients reach its parameters, but they reach none: remove "
            "torch.no_grad(), .detach(), comparisons and NumPy from its forward."
        )
