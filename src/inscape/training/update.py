"""One update of a training, shared by the loop and by its replay."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from inscape.training.function_names import name_of
from inscape.training.losses import Loss, loss_function
from inscape.training.optimizers import build_optimizer
from inscape.training.options import FitOptions
from inscape.training.penalties import Penalty
from inscape.training.random_state import seed_random_state


class DivergedError(ValueError):
    """A loss or a weight became infinite or NaN; the message says at which step."""


class Update:
    """One step of an optimizer down the loss plus its penalties."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        optimizer: torch.optim.Optimizer,
        penalties: Sequence[tuple[float, Penalty]],
        *,
        seed: int,
        per_epoch: int,
    ) -> None:
        self.model = model
        self.loss = loss
        self.optimizer = optimizer
        self.penalties = penalties
        self.seed = seed
        self.per_epoch = per_epoch

    @classmethod
    def of(cls, model: nn.Module, options: FitOptions, *, seed: int, points: int) -> "Update":
        """Return the update of a training of ``model`` on so many samples."""
        return cls(
            model,
            loss_function(options.loss),
            build_optimizer(options.optimizer, model, options),
            options.penalties,
            seed=seed,
            per_epoch=batches_per_epoch(points, options.batch),
        )

    def __call__(self, step: int, x: Tensor, y: Tensor, rates: Sequence[float]) -> list[float]:
        """Make update ``step`` with one learning rate per group; return loss and penalties."""
        seed_random_state(self.seed, step, x.device)
        self.optimizer.zero_grad()
        loss = scalar(self.loss(self.model(x), y), "a loss")
        terms = [scalar(penalty(self.model, x), "a penalty") for _, penalty in self.penalties]
        total = loss
        for (coefficient, _), term in zip(self.penalties, terms, strict=True):
            total = total + coefficient * term
        values = [value.item() for value in (loss, *terms)]
        if not math.isfinite(total.item()):
            raise self.diverged(step, self.listed(values))
        torch.autograd.backward(total)
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self.optimizer.step()
        return values

    def diverged(self, step: int, values: str) -> DivergedError:
        """Return the error that says at which step a value was not finite."""
        cure = "use a smaller lr" + (" or smaller coefficients" if self.penalties else "")
        epoch = step // self.per_epoch
        return DivergedError(
            f"a training must stay finite, found {values} in epoch {epoch} at step {step} (counted "
            f"from 0): {cure}."
        )

    def listed(self, values: Sequence[float]) -> str:
        """Return the loss and the penalties as text, for an error."""
        names = ["loss", *(f"penalty {name_of(penalty)}" for _, penalty in self.penalties)]
        return ", ".join(f"{n} {v:.3g}" for n, v in zip(names, values, strict=True))


def batches_per_epoch(n: int, batch: int | None) -> int:
    """Return the number of updates in one pass over ``n`` samples."""
    return 1 if batch is None else -(-n // batch)


def scalar(value: object, term: str) -> Tensor:
    """Return ``value`` if it is a scalar tensor; raise an error that names the term if not."""
    if isinstance(value, Tensor) and value.ndim == 0:
        return value
    kind = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
    raise TypeError(
        f"{term} must return a scalar tensor, found {kind}: take the mean over the points."
    )
