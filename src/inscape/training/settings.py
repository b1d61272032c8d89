"""Settings of a training as plain data: numbers and names, which can be written to a file."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, eq=False)
class ScalarOptions:
    """The options of a training that are numbers or words, each with its default.

    :class:`inscape.training.FitOptions` says what each of them means.
    """

    lr: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    batch: int | None = None
    epochs: int = 100
    stop_loss: float | None = None
    stop_on: str = "running"


@dataclass(frozen=True, kw_only=True)
class FitSettings(ScalarOptions):
    """The options of a finished training, with functions replaced by their names.

    A name that starts with ``own:`` is that of a function of the user's.

    Attributes:
        loss: Name of the loss.
        optimizer: Name of the optimizer.
        schedule: Description of the schedule.
        penalties: Coefficient and name of each penalty.
        seed: Seed of shuffling and of dropout.
        record: Steps between two checkpoints; None if none were recorded.
    """

    loss: str = "mse"
    optimizer: str = "sgd"
    schedule: str | None = None
    penalties: tuple[tuple[float, str], ...] = ()
    seed: int = 0
    record: int | None = None
