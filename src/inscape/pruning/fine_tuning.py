"""Fine-tuning between two steps: a training function, or settings of ``fit``."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from inscape.errors import did_you_mean
from inscape.pruning.scoring import Criterion

#: Trains a network in place; or settings for ``inscape.training.fit``; or nothing.
Tune = Callable[[nn.Module], object] | Mapping[str, Any] | None


def check_tune(tune: object) -> None:
    """Raise unless tune is a function, settings of ``fit`` or None."""
    if tune is not None and not callable(tune) and not isinstance(tune, Mapping):
        raise TypeError(
            "tune must be a function that trains a module in place, a mapping of settings for "
            f"inscape.training.fit, or None, found {type(tune).__name__}: pass one of them."
        )
    if isinstance(tune, Mapping):
        from inscape.training import fit

        known = list(signature(fit).parameters)[3:]
        wrong = next((name for name in tune if name not in known), None)
        if wrong is not None:
            raise ValueError(
                f"tune must hold options of inscape.training.fit, found {wrong!r}: "
                f"{did_you_mean(str(wrong), known)}"
            )


def tuned(body: nn.Module, tune: Tune, x: Tensor, criterion: Criterion, seed: int) -> nn.Module:
    """Fine-tune ``body`` in place and return it in eval mode, its weights finite.

    Settings go to ``fit`` with the loss of the criterion; ``seed`` is that of its shuffles unless
    the settings have one.
    """
    if tune is None:
        return body
    if isinstance(tune, Mapping):
        from inscape.training import fit

        settings = {"loss": criterion.loss, "seed": seed, "progress": False, **tune}
        fit(body, x, criterion.y, **settings)
        return body
    with torch.enable_grad():
        tune(body)
    body.zero_grad(set_to_none=True)
    for name, parameter in body.named_parameters():
        if not bool(parameter.isfinite().all()):
            raise ValueError(
                f"tune must leave finite weights, found NaN or Inf in {name!r}: "
                "use a smaller learning rate."
            )
    return body.eval()
