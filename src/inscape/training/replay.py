"""Replay: the weights at any step of a recorded training.

The steps after the nearest checkpoint are repeated by the same :class:`Update` as in training, so
the weights are reproducible bit for bit, given the same data, machine, number of threads and
version of PyTorch.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import UnsupportedModelError, checks
from inscape.training.function_names import is_own, name_of, own_name
from inscape.training.loop_update import LoopUpdate
from inscape.training.losses import Loss, loss_function
from inscape.training.optimizers import OptimizerFactory, build_optimizer
from inscape.training.penalties import Penalty
from inscape.training.random_state import private_random_state
from inscape.training.settings import FitSettings
from inscape.training.trajectory import Trajectory, fingerprint
from inscape.training.update import Update, batches_per_epoch

Function = TypeVar("Function")


def replay(
    trajectory: Trajectory,
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    step: int,
    *,
    loss: Loss | None = None,
    optimizer: OptimizerFactory | None = None,
    penalties: Sequence[tuple[float, Penalty]] = (),
) -> dict[str, Tensor]:
    """Return the state dict after ``step`` updates of a recorded training.

    Costs at most one update less than lie between two checkpoints. The model itself stays as it is.

    Args:
        trajectory: What :func:`fit` recorded.
        model: Module of the architecture that was trained; its weights do not matter.
        x: Inputs of the training.
        y: Targets of the training.
        step: Number of updates, from 0 to ``trajectory.steps``.
        loss: The loss, if the training had a function of your own.
        optimizer: The optimizer's factory, if the training had one of your own.
        penalties: The penalties of the training: functions are not stored.
    """
    states = walk(
        trajectory, model, x, y, step, step, loss=loss, optimizer=optimizer, penalties=penalties
    )
    return next(states)


def walk(
    trajectory: Trajectory,
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    start: int = 0,
    stop: int | None = None,
    *,
    loss: Loss | None = None,
    optimizer: OptimizerFactory | None = None,
    penalties: Sequence[tuple[float, Penalty]] = (),
) -> Iterator[dict[str, Tensor]]:
    """Yield the state dicts at the steps from ``start`` to ``stop``, both included, in order.

    Each step is made once; this is how to integrate something along a training.

    Args:
        trajectory: As in :func:`replay`.
        model: As in :func:`replay`.
        x: As in :func:`replay`.
        y: As in :func:`replay`.
        start: First step.
        stop: Last step; the end of the training if None.
        loss: As in :func:`replay`.
        optimizer: As in :func:`replay`.
        penalties: As in :func:`replay`.
    """
    stop = trajectory.steps if stop is None else stop
    first = trajectory.before(start)
    trajectory.before(stop)
    checks.at_least(start, stop=stop)
    refuse_other_data("a replay", trajectory, x, y)
    update = _restored(trajectory, model, x, y, first, stop, loss, optimizer, penalties)
    return _states(update, range(first, stop + 1), start)


def refuse_other_data(reader: str, trajectory: Trajectory, x: Tensor, y: Tensor) -> None:
    """Raise unless these are the data of a training, and hold all samples of its batches."""
    if fingerprint(x, y) != trajectory.data:
        raise ValueError(
            f"{reader} needs the very data of the training, found other values, types or shapes: "
            "pass the x and y that were given to fit."
        )
    order, loop = trajectory.order, trajectory.loop
    fits = order is None or order.shape[1] == len(x)
    if loop is not None and len(loop.rows):
        fits = fits and int(loop.rows.max()) < len(x)
    if not fits:
        raise ValueError(
            f"{reader} needs batches of the {len(x)} samples of the training, found other samples "
            "in its record: train and record again."
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Stand:
    """Weights and optimiser state of a training at a step, each as one vector.

    ``squares`` is Adam's second moment after the last update; None for other optimizers. ``clip``
    is the factor by which that update clipped gradients, ``buffers`` are those of the module.
    """

    step: int
    weights: Float[Tensor, " p"]
    squares: Float[Tensor, " p"] | None
    clip: float | Tensor | None = None
    buffers: Mapping[str, Tensor] | None = None


def stands(
    trajectory: Trajectory,
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    start: int = 0,
    stop: int | None = None,
    *,
    loss: Loss | None = None,
    penalties: Sequence[tuple[float, Penalty]] = (),
) -> Iterator[Stand]:
    """Yield weights and optimiser state at the steps from ``start`` to ``stop``, in order.

    Args:
        trajectory: As in :func:`replay`.
        model: As in :func:`replay`.
        x: As in :func:`replay`.
        y: As in :func:`replay`.
        start: First step.
        stop: Last step; the end of the training if None.
        loss: As in :func:`replay`.
        penalties: As in :func:`replay`.
    """
    stop = trajectory.steps if stop is None else stop
    first = trajectory.before(start)
    update = _restored(trajectory, model, x, y, first, stop, loss, None, penalties)
    parameters = update.parameters
    idle: Sequence[bool] | None = None
    for step in range(first, stop + 1):
        if step > first:
            update(step - 1)
            idle = refuse_idle(trajectory.settings, trajectory.trainable, parameters, idle)
        if step >= start:
            state = [update.optimizer.state[p] for p in parameters]
            yield Stand(
                step=step,
                weights=torch.cat([p.detach().flatten() for p in parameters]),
                squares=second_moments(parameters, state),
                clip=update.clip,
                buffers={name: b.detach().clone() for name, b in update.model.named_buffers()},
            )


class _FitUpdate:
    """Repeats the updates of a training by ``fit``."""

    clip: None = None

    def __init__(self, trajectory: Trajectory, update: Update, x: Tensor, y: Tensor) -> None:
        self._trajectory, self._update, self._x, self._y = trajectory, update, x, y
        self.model, self.optimizer = update.model, update.optimizer
        self.parameters: list[Tensor] = update.optimizer.param_groups[0]["params"]

    def __call__(self, step: int) -> None:
        rows, rate = self._trajectory.rows(step), float(self._trajectory.rates[step])
        with private_random_state(self._x.device), torch.enable_grad():
            self._update(step, self._x[rows].clone(), self._y[rows], [rate])


def _restored(
    trajectory: Trajectory,
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    first: int,
    last: int,
    loss: Loss | None,
    optimizer: OptimizerFactory | None,
    penalties: Sequence[tuple[float, Penalty]],
) -> "_FitUpdate | LoopUpdate":
    """Return the update of a training, restored at a checkpoint."""
    x, y = x.detach(), y.detach()
    if trajectory.loop is None:
        update = _rebuilt(trajectory, deepcopy(model), len(x), loss, optimizer, penalties)
        _restore(update, trajectory, first)
        return _FitUpdate(trajectory, update, x, y)
    if not trajectory.loop.known(first, last):
        raise ValueError(
            f"a replay needs every batch between two checkpoints, found steps {first} to {last} of "
            f"a loop that cannot be made again ({trajectory.loop.reason}): take checkpoints only, "
            "trajectory.checkpoints."
        )
    criterion = loss_of(trajectory, loss, penalties)
    own = _named_or_passed("optimizer", trajectory.settings.optimizer, optimizer)
    factory = None if isinstance(own, str) else own
    loop_update = LoopUpdate(trajectory, deepcopy(model), x, y, criterion, factory)
    stand_at(loop_update.model, trajectory, first)
    loop_update.restore(first)
    return loop_update


def refuse_idle(
    settings: FitSettings,
    names: Sequence[str],
    parameters: Sequence[Tensor],
    before: Sequence[bool] | None,
) -> Sequence[bool]:
    """Raise an error for a parameter with gradients at some steps only: its moments would pause.

    Args:
        settings: Those of the training.
        names: Names of the parameters.
        parameters: The parameters, after a step.
        before: What this returned after the step before.
    """
    now = [p.grad is None for p in parameters]
    if settings.optimizer == "sgd" and not settings.momentum and not settings.weight_decay:
        return now  # each step stands for itself
    for name, idle, was_idle in zip(names, now, before or now, strict=True):
        if idle != was_idle:
            raise UnsupportedModelError(
                "the path kernel needs gradients of a parameter at all steps or at none, found "
                f"some steps only for {name!r}: freeze it, or use it at every step."
            )
    return now


def second_moments(
    parameters: Sequence[Tensor], state: Sequence[Mapping[str, Tensor]]
) -> Float[Tensor, " p"] | None:
    """Return Adam's second moments as one vector, None if there are none.

    They are zero for a parameter without gradients.
    """
    if not any("exp_avg_sq" in own for own in state):
        return None
    squares = [
        own.get("exp_avg_sq", torch.zeros_like(p)) for p, own in zip(parameters, state, strict=True)
    ]
    return torch.cat([s.detach().flatten() for s in squares])


def _states(
    update: "_FitUpdate | LoopUpdate", steps: range, start: int
) -> Iterator[dict[str, Tensor]]:
    for step in steps:
        if step > steps[0]:
            update(step - 1)
        if step >= start:
            yield {name: t.detach().clone() for name, t in update.model.state_dict().items()}


def _rebuilt(
    trajectory: Trajectory,
    model: nn.Module,
    n: int,
    loss: Loss | None,
    optimizer: OptimizerFactory | None,
    penalties: Sequence[tuple[float, Penalty]],
) -> Update:
    settings = trajectory.settings
    criterion = loss_of(trajectory, loss, penalties)
    maker = _named_or_passed("optimizer", settings.optimizer, optimizer)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in trajectory.trainable)
    return Update(
        model.train(),
        criterion,
        build_optimizer(maker, model, settings),
        penalties,
        seed=settings.seed,
        per_epoch=batches_per_epoch(n, settings.batch),
    )


def loss_of(
    trajectory: Trajectory, loss: Loss | None, penalties: Sequence[tuple[float, Penalty]]
) -> Loss:
    """Return the loss of a training; refuse another, and penalties that it did not have."""
    settings = trajectory.settings
    known = tuple((coefficient, name_of(penalty)) for coefficient, penalty in penalties)
    if known != settings.penalties:
        raise ValueError(
            f"a replay needs the penalties of the training, {list(settings.penalties)}, found "
            f"{list(known)}: pass penalties=... as they were given to fit."
        )
    criterion = _named_or_passed("loss", settings.loss, loss)
    if not isinstance(criterion, str) and own_name(criterion) != settings.loss:
        raise ValueError(
            f"a replay needs the loss of the training, {settings.loss!r}, found "
            f"{own_name(criterion)!r}: pass loss=... as it was given to fit."
        )
    return loss_function(criterion)


def _named_or_passed(option: str, recorded: str, function: Function | None) -> str | Function:
    """Return the name that was recorded, or the function passed now for one of the user's."""
    own = is_own(recorded)
    if own and function is not None:
        return function
    if not own and function is None:
        return recorded
    kind = "none" if function is None else "a function"
    cure = f"pass {option}=... as it was given to fit" if own else f"leave {option} out"
    raise ValueError(
        f"a replay needs the {option} of the training, {recorded!r}, found {kind}: {cure}."
    )


def stand_at(model: nn.Module, trajectory: Trajectory, step: int) -> None:
    """Put the weights of a checkpoint into a model; refuse one that is not of the training."""
    state = trajectory.at(step)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        fault = " ".join(str(error).split("\n\t")[1:2])
        raise ValueError(
            f"a replay needs a model of the architecture that was trained, found another: {fault}"
        ) from error
    for name, own in model.state_dict().items():
        if own.dtype != state[name].dtype:
            raise ValueError(
                f"a replay needs a model in the numbers of the training, {state[name].dtype}, "
                f"found {name!r} in {own.dtype}: use model.to({state[name].dtype})."
            )


def _restore(update: Update, trajectory: Trajectory, step: int) -> None:
    """Put model and optimizer into the state of a checkpoint."""
    stand_at(update.model, trajectory, step)
    group = update.optimizer.param_groups[0]
    on_device = group.get("capturable") or group.get("fused")
    for number, entries in trajectory.optimizer_state(step).items():
        parameter = group["params"][number]
        # Optimizer.load_state_dict would round these to the type of the parameter.
        update.optimizer.state[parameter] = {
            key: value if key == "step" and not on_device else value.to(parameter.device)
            for key, value in entries.items()
        }
