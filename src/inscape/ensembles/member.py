"""A member of an ensemble after its training, and the error that names those that diverged."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import nn

from inscape.training.update import DivergedError


@dataclass(frozen=True, eq=False, kw_only=True)
class Member:
    """A trained network of an ensemble.

    Attributes:
        index: Its position among the models.
        model: The module that was passed, trained in place, now in eval mode.
        loss: Training loss of its last epoch, as ``stop_on`` says.
        epochs: Epochs that were run.
        steps: Updates that were made.
        stopped: ``"loss"`` if the loss fell to ``stop_loss``, else ``"epochs"``.
    """

    index: int
    model: nn.Module
    loss: float
    epochs: int
    steps: int
    stopped: Literal["loss", "epochs"]


class LostMembersError(DivergedError):
    """The loss or the weights of some members became infinite or NaN.

    Raised after all other members have been yielded.

    Attributes:
        errors: The error of each of them, by its index.
    """

    def __init__(self, errors: Mapping[int, DivergedError]) -> None:
        self.errors = dict(sorted(errors.items()))
        first, *more = self.errors
        others = f" (so did the members {', '.join(map(str, more))})" if more else ""
        super().__init__(f"member {first} diverged{others}: {self.errors[first]}")
