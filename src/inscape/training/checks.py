"""Checks of model and data before the first step of a training, and of weights after the last."""

import torch
from torch import Tensor, nn

from inscape._core import checks
from inscape.training.losses import Loss, check_targets, loss_function
from inscape.training.random_state import private_random_state
from inscape.training.update import Update, scalar


def check_start(model: nn.Module, x: Tensor, y: Tensor, loss: str | Loss) -> bool:
    """Raise an error if the data do not fit the model or the loss, by evaluating two points.

    Returns whether the model writes over its input.
    """
    checks.points(x)
    checks.labels(y, x)
    if y.device != x.device:
        raise ValueError(
            f"x and y must be on one device, found {x.device} and {y.device}: "
            f"use y.to({str(x.device)!r})."
        )
    checks.weights(model, x)
    was_training = model.training
    try:
        with torch.no_grad(), private_random_state(x.device):
            two = x[:2].clone()
            prediction = checks.call(model.eval(), two)
            scalar(loss_function(loss)(prediction, y[:2]), "a loss")
    finally:
        model.train(was_training)
    check_targets(loss, y, prediction)
    return two._version > 0


def check_end(update: Update, step: int) -> None:
    """Raise an error if weights are not finite after the last update, which no loss has seen."""
    for name, parameter in update.model.named_parameters():
        if not bool(parameter.isfinite().all()):
            raise update.diverged(step, f"NaN or Inf in {name!r}")
