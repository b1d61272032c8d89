"""What a training refuses before its first step."""

import math

import torch
from torch import Tensor, nn

from inscape._core import checks
from inscape.training.losses import Loss, check_targets, loss_function
from inscape.training.random_state import private_dice
from inscape.training.trajectory import Settings
from inscape.training.update import Update, scalar


def check_settings(settings: Settings) -> None:
    """Refuse numbers that cannot be; the optimizer checks its own options."""
    checks.whole(1, epochs=settings.epochs)
    checks.whole(1, batch=1 if settings.batch is None else settings.batch)
    checks.whole(1, record=1 if settings.record is None else settings.record)
    checks.one_of(("running", "evaluated"), stop_on=settings.stop_on)
    if settings.stop_loss is not None and not math.isfinite(settings.stop_loss):
        raise ValueError(
            f"stop_loss must be a finite number, found {settings.stop_loss}: "
            "use None to train for all epochs."
        )
    for coefficient, name in settings.penalties:
        if not math.isfinite(coefficient):
            raise ValueError(
                f"the coefficient of a penalty must be finite, found {coefficient} for {name}: "
                "choose another."
            )


def check_start(model: nn.Module, x: Tensor, y: Tensor, loss: str | Loss) -> bool:
    """Refuse data that do not fit the model or the loss; evaluates the first two points.

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
        with torch.no_grad(), private_dice(x.device):
            two = x[:2].clone()
            prediction = checks.call(model.eval(), two)
            scalar(loss_function(loss)(prediction, y[:2]), "a loss")
    finally:
        model.train(was_training)
    check_targets(loss, y, prediction)
    return two._version > 0


def check_end(update: Update, step: int) -> None:
    """Refuse weights that are not finite after the last update, which no loss has seen."""
    for name, parameter in update.model.named_parameters():
        if not bool(parameter.isfinite().all()):
            raise update.diverged(step, f"NaN or Inf in {name!r}")
