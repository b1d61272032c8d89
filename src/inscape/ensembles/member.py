"""What goes into a training of many networks, and what comes out of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import nn

from inscape.training.losses import Loss
from inscape.training.optimizers import OptimizerFactory
from inscape.training.penalties import Penalty
from inscape.training.schedules import ScheduleFunction
from inscape.training.trajectory import Settings
from inscape.training.update import DivergedError


@dataclass(frozen=True, eq=False, kw_only=True)
class Member:
    """One network that has been trained among others.

    Attributes:
        index: Its position in the models that were given.
        model: The module that was given, trained in place, now in eval mode.
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Orders(Settings):
    """What all members are asked to do: the settings, and the functions that these only name.

    ``seed`` is that of no member: each has its own. Orders are equal only to themselves: two
    functions may share a name.
    """

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    loss_given: str | Loss
    optimizer_given: str | OptimizerFactory
    schedule_given: ScheduleFunction | None
    penalties_given: Sequence[tuple[float, Penalty]]
    progress: bool | None

    @property
    def quiet(self) -> bool | None:
        """What a progress bar asks for."""
        return None if self.progress is None else not self.progress


class LostMembersError(DivergedError):
    """Some members left the finite numbers; raised after all others have been yielded.

    Attributes:
        errors: What happened to each of them, by its index.
    """

    def __init__(self, errors: Mapping[int, DivergedError]) -> None:
        self.errors = dict(sorted(errors.items()))
        first, *more = self.errors
        others = f" (so did the members {', '.join(map(str, more))})" if more else ""
        super().__init__(f"member {first} diverged{others}: {self.errors[first]}")
