"""Options of a training: their types, defaults, checks and documentation, once for all trainers."""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, TypeVar

from inscape._core import checks
from inscape.training.function_names import name_of, own_name
from inscape.training.losses import Loss, loss_function
from inscape.training.optimizers import OptimizerFactory, check_optimizer
from inscape.training.penalties import Penalty
from inscape.training.schedules import ScheduleFunction, description
from inscape.training.settings import FitSettings, ScalarOptions

Trainer = TypeVar("Trainer", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True, eq=False)
class FitOptions(ScalarOptions):
    """The options of a training, checked: the keyword arguments that all trainers share.

    ``fit(model, x, y, lr=0.1)`` builds one; ``fit(model, x, y, **vars(options))`` passes one on.
    Two options are equal only if they are one object, since functions may share a name.

    >>> FitOptions(optimizer="adam", momentum=0.9)
    Traceback (most recent call last):
    ValueError: momentum is an option of sgd, found momentum=0.9 for the optimizer 'adam': leave...

    Attributes:
        loss: ``"mse"`` (mean over all elements), ``"cross_entropy"``, ``"bce_logits"`` or any
            function from prediction and target to a scalar.
        optimizer: ``"sgd"``, ``"adam"``, ``"adamw"``, ``"ranger"`` (RAdam with Lookahead), or a
            function from parameters to a ``torch.optim.Optimizer`` (which then sets all options
            itself).
        lr: Learning rate.
        momentum: Momentum of SGD.
        nesterov: Whether that momentum is Nesterov's.
        weight_decay: Weight decay; 0 for AdamW as well, where PyTorch's default is 0.01.
        betas: Decay rates of Adam's two moments.
        batch: Size of mini-batches, reshuffled every epoch, the last one possibly smaller; None
            uses all data at each step, in their order.
        epochs: Largest number of passes over the data.
        schedule: Factor of the learning rate at each step; see :mod:`inscape.training.schedules`.
        stop_loss: Stop at the end of the epoch whose loss is this or less.
        stop_on: ``"running"``: mean of the batch losses while training (Volhejn's rule, and that
            of Keras); ``"evaluated"``: loss on all data after the epoch, in eval mode.
        penalties: Pairs of a coefficient and a function from model and batch to a scalar. One that
            calls the model in training mode also moves batch norm's running statistics.
        progress: Whether to show progress; None shows it after two seconds unless
            ``INSCAPE_QUIET`` is set.
    """

    loss: str | Loss = "mse"
    optimizer: str | OptimizerFactory = "sgd"
    schedule: ScheduleFunction | None = None
    penalties: Sequence[tuple[float, Penalty]] = ()
    progress: bool | None = None

    def __post_init__(self) -> None:
        checks.whole(1, epochs=self.epochs)
        checks.whole(1, batch=1 if self.batch is None else self.batch)
        checks.one_of(("running", "evaluated"), stop_on=self.stop_on)
        if self.stop_loss is not None and not math.isfinite(self.stop_loss):
            raise ValueError(
                f"stop_loss must be a finite number, found {self.stop_loss}: "
                "use None to train for all epochs."
            )
        for coefficient, penalty in self.penalties:
            check_coefficient(coefficient, name_of(penalty))
        loss_function(self.loss)
        check_optimizer(own_name(self.optimizer), self)

    @property
    def quiet(self) -> bool | None:
        """Whether a progress bar is silent: the opposite of ``progress``."""
        return None if self.progress is None else not self.progress

    def settings(self, *, seed: int = 0, record: int | None = None) -> FitSettings:
        """Return what a training records of its options: functions are replaced by their names."""
        scalars = {field.name: getattr(self, field.name) for field in fields(ScalarOptions)}
        return FitSettings(
            **scalars,
            loss=own_name(self.loss),
            optimizer=own_name(self.optimizer),
            schedule=description(self.schedule),
            penalties=tuple((weight, name_of(penalty)) for weight, penalty in self.penalties),
            seed=seed,
            record=record,
        )


class FitKeywords(TypedDict, total=False):
    """The fields of :class:`FitOptions` as keyword arguments, for type checkers."""

    loss: str | Loss
    optimizer: str | OptimizerFactory
    lr: float
    momentum: float
    nesterov: bool
    weight_decay: float
    betas: tuple[float, float]
    batch: int | None
    epochs: int
    schedule: ScheduleFunction | None
    stop_loss: float | None
    stop_on: str
    penalties: Sequence[tuple[float, Penalty]]
    progress: bool | None


def check_coefficient(coefficient: float, name: str) -> None:
    """Raise an error if the coefficient of a penalty is not finite."""
    if not math.isfinite(coefficient):
        raise ValueError(
            f"the coefficient of a penalty must be finite, found {coefficient} for {name}: "
            "choose another."
        )


def shows_options(options: type) -> Callable[[Trainer], Trainer]:
    """Return a decorator that puts the fields of ``options`` into the signature of a trainer.

    Type checkers read the keyword arguments from a ``TypedDict``; ``help`` reads this signature.
    """

    def decorate(trainer: Trainer) -> Trainer:
        signature = inspect.signature(trainer)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        shared = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=field.type,
            )
            for field in fields(options)
        ]
        trainer.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        return trainer

    return decorate
