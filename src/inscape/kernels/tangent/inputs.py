"""What tangent kernels take as points: floating-point numbers, and whole ones such as words."""

import torch
from torch import Tensor, nn

from inscape._core import checks
from inscape.errors import UnsupportedModelError
from inscape.functional.batch_independence import (
    TRIAL,
    refuse_hidden_mixing,
    refuse_mixing,
    refuse_pairing,
    trial_rows,
)


def whole(x: object) -> bool:
    """Tell whether ``x`` holds whole numbers."""
    other = isinstance(x, Tensor) and (x.is_complex() or x.dtype == torch.bool)
    return isinstance(x, Tensor) and not x.is_floating_point() and not other


def points(x: Tensor, name: str = "x") -> None:
    """Refuse anything but a non-empty, finite batch of numbers."""
    checks.points(x.double() if whole(x) else x, name)


def outputs(model: nn.Module, x: Tensor) -> int:
    """Check model and data, and return the number of outputs."""
    checks.module(model)
    checks.in_eval_mode(model)
    points(x)
    checks.weights(model, numbers_like(model, x))
    rows = trial_rows(x)

    @torch.enable_grad()
    def spared(batch: Tensor) -> Tensor:
        y: Tensor = model(batch.detach().clone())
        return y

    try:
        together = checks.call(spared, rows).detach().reshape(TRIAL, -1)
    except UnsupportedModelError as error:
        if isinstance(error.__cause__, RuntimeError):  # linear maps take no whole numbers
            checks.points(x)
        refuse_pairing(spared, rows, error)
        raise
    refuse_mixing(spared, rows, together)
    refuse_hidden_mixing(spared, x, together)
    return together.shape[1]


def numbers_like(model: nn.Module, x: Tensor) -> Tensor:
    """Return a tensor of the precision in which gradients at ``x`` are taken."""
    found = (p.detach() for p in model.parameters() if p.is_floating_point())
    return next(found, x.double()) if whole(x) else x


def refuse_unreached(reached: object) -> None:
    """Refuse a module none of whose trainable parameters has a gradient."""
    if not reached:
        raise UnsupportedModelError(
            "the model must let gradients reach its parameters, but they come to none: take "
            "torch.no_grad(), .detach(), comparisons and NumPy out of its forward."
        )
