"""The training loop: one, plain, and the same bits for the same seed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core.progress import progress as progress_bar
from inscape._core.sampling import generator
from inscape.training.checks import check_end, check_settings, check_start
from inscape.training.function_names import name_of, own_name
from inscape.training.losses import Loss, loss_function
from inscape.training.observer import Watcher
from inscape.training.optimizers import OptimizerFactory, build_optimizer
from inscape.training.penalties import Penalty
from inscape.training.random_state import private_dice
from inscape.training.recorder import Recorder
from inscape.training.schedules import ScheduleFunction, begun, description, factor, tell
from inscape.training.trajectory import Settings, Trajectory, fingerprint
from inscape.training.update import Update, batches_per_epoch

#: Points that are evaluated at once where the whole data are.
CHUNK = 1024


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Fit:
    """A finished training.

    Attributes:
        model: The trained module, the same object that was given, now in eval mode.
        losses: Training loss of each epoch, as ``stop_on`` says; penalties are not in it.
        penalties: Mean of each penalty over each epoch, without its coefficient.
        epochs: Epochs that were run.
        steps: Updates that were made.
        stopped: ``"loss"`` if the loss fell to ``stop_loss``, else ``"epochs"``.
        settings: What was asked for.
        trajectory: The way, if ``record`` asked for it.
    """

    model: nn.Module
    losses: Float64[Tensor, " epochs"]
    penalties: Float64[Tensor, "epochs penalties"]
    epochs: int
    steps: int
    stopped: Literal["loss", "epochs"]
    settings: Settings
    trajectory: Trajectory | None

    @property
    def loss(self) -> float:
        """Training loss of the last epoch."""
        return float(self.losses[-1])

    def __repr__(self) -> str:
        end = "reached stop_loss" if self.stopped == "loss" else "all epochs"
        return f"Fit(loss {self.loss:.3g} after {self.epochs} epochs, {self.steps} steps: {end})"


def fit(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    loss: str | Loss = "mse",
    optimizer: str | OptimizerFactory = "sgd",
    lr: float = 0.01,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    batch: int | None = None,
    epochs: int = 100,
    schedule: ScheduleFunction | None = None,
    stop_loss: float | None = None,
    stop_on: str = "running",
    penalties: Sequence[tuple[float, Penalty]] = (),
    seed: int = 0,
    progress: bool | None = None,
    record: int | None = None,
    watch: Watcher | None = None,
) -> Fit:
    r"""Train ``model`` in place on all of ``x`` and ``y``, and return it in eval mode.

    .. math:: \min_\theta \; \mathrm{loss}(f_\theta(x), y) + \sum_k \lambda_k P_k(f_\theta, x)

    The model is in training mode meanwhile. The same seed gives the same bits (on one machine with
    one number of threads), dropout included; the global random state is not touched.

    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> run = fit(nn.Linear(1, 1), x, 2 * x + 1, lr=0.5, epochs=2)
    >>> round(run.model(torch.tensor([[10.0]])).item(), 3)
    21.0

    Args:
        model: Module to be trained; parameters that do not require gradients stay.
        x: Inputs, in the precision of the model.
        y: Targets, shaped as the outputs, or class numbers for ``"cross_entropy"``.
        loss: ``"mse"`` (mean over all elements), ``"cross_entropy"``, ``"bce_logits"`` or any
            function from prediction and target to a scalar.
        optimizer: ``"sgd"``, ``"adam"``, ``"adamw"``, ``"ranger"`` (RAdam with Lookahead), or a
            function from parameters to a ``torch.optim.Optimizer`` (which then sets all options
            itself).
        lr: Learning rate.
        momentum: Momentum of SGD.
        nesterov: Whether that momentum is Nesterov's.
        weight_decay: Decay of the weights; 0 for AdamW as well, where PyTorch takes 0.01.
        betas: Decay rates of Adam's two moments.
        batch: Size of mini-batches, reshuffled every epoch, the last one possibly smaller; None
            takes all data at each step, in their order.
        epochs: Largest number of passes over the data.
        schedule: Factor of the learning rate at each step; see :mod:`inscape.training.schedules`.
        stop_loss: Stop at the end of the epoch whose loss is this or less.
        stop_on: ``"running"``: mean of the batch losses seen while training (Volhejn's rule, and
            that of Keras); ``"evaluated"``: loss on all data after the epoch, in eval mode.
        penalties: Pairs of a coefficient and a function from model and batch to a scalar. One that
            calls the model in training mode also moves batch norm's running statistics.
        seed: Seed of shuffling and of dropout.
        progress: Whether to show progress; None shows it after two seconds unless
            ``INSCAPE_QUIET`` is set.
        record: Record a :class:`Trajectory` with a checkpoint every so many steps.
        watch: Something that looks on, such as :class:`inscape.kernels.PathWatch`.
    """
    settings = Settings(
        loss=own_name(loss),
        optimizer=own_name(optimizer),
        lr=lr,
        momentum=momentum,
        nesterov=nesterov,
        weight_decay=weight_decay,
        betas=betas,
        batch=batch,
        epochs=epochs,
        schedule=description(schedule),
        stop_loss=stop_loss,
        stop_on=stop_on,
        penalties=tuple((coefficient, name_of(penalty)) for coefficient, penalty in penalties),
        seed=seed,
        record=record,
    )
    check_settings(settings)
    spare = check_start(model, x, y, loss)
    update = Update(
        model,
        loss_function(loss),
        build_optimizer(optimizer, model, settings),
        penalties,
        seed=seed,
        per_epoch=batches_per_epoch(len(x), batch),
    )
    quiet = None if progress is None else not progress
    schedule = begun(schedule)
    x, y = x.detach(), y.detach()
    if watch:
        watch.begin(update, x, y, settings)
    return _run(update, x, y, settings, schedule, watch, quiet=quiet, spare=spare)


def _run(
    update: Update,
    x: Tensor,
    y: Tensor,
    settings: Settings,
    schedule: ScheduleFunction | None,
    watch: Watcher | None,
    *,
    quiet: bool | None,
    spare: bool,
) -> Fit:
    """Run the loop itself, once everything is checked and made.

    ``spare``: the model writes over its input, so that it is handed copies of the data.
    """
    every = settings.record
    recorder = Recorder(update.model, update.optimizer, every) if every else None
    shuffle = generator(settings.seed)
    base_rates = [group["lr"] for group in update.optimizer.param_groups]
    losses: list[float] = []
    penalties: list[list[float]] = []
    step, note = 0, ""
    stopped: Literal["loss", "epochs"] = "epochs"
    total = settings.epochs * update.per_epoch
    with _training(update.model, x), progress_bar(total, label="training", quiet=quiet) as bar:
        for _ in range(settings.epochs):
            seen = [0.0] * (1 + len(settings.penalties))  # loss and penalties, summed over points
            for rows in _batches(len(x), settings.batch, shuffle, recorder):
                batch = x[rows].clone() if spare else x[rows]
                rates = [rate * factor(schedule, step) for rate in base_rates]
                values = update(step, batch, y[rows], rates)
                seen = [s + len(batch) * value for s, value in zip(seen, values, strict=True)]
                step += 1
                if recorder:
                    recorder.step(rates[0])
                if watch:
                    watch.step(rows, rates[0])
                bar.advance(note=note)
            running, *means = (s / len(x) for s in seen)
            losses.append(
                running
                if settings.stop_on == "running"
                else _evaluated(update, x.clone() if spare else x, y)
            )
            penalties.append(means)
            tell(schedule, losses[-1])
            note = f"loss {losses[-1]:.1e}"
            if settings.stop_loss is not None and losses[-1] <= settings.stop_loss:
                stopped = "loss"
                break
    check_end(update, step - 1)
    return Fit(
        model=update.model,
        losses=torch.tensor(losses, dtype=torch.float64),
        penalties=torch.tensor(penalties, dtype=torch.float64),
        epochs=len(losses),
        steps=step,
        stopped=stopped,
        settings=settings,
        trajectory=recorder.trajectory(settings, fingerprint(x, y)) if recorder else None,
    )


@contextmanager
def _training(model: nn.Module, x: Tensor) -> Iterator[None]:
    """Keep the model in training mode, then leave it in eval mode and without gradients."""
    model.train()
    try:
        with private_dice(x.device), torch.enable_grad():
            yield
    finally:
        model.zero_grad(set_to_none=True)
        model.eval()


def _batches(
    n: int, batch: int | None, shuffle: torch.Generator, recorder: Recorder | None
) -> Sequence[slice | Tensor]:
    """Return which rows each update of the next epoch uses."""
    if batch is None:
        return [slice(None)]
    order = torch.randperm(n, generator=shuffle)
    if recorder:
        recorder.epoch(order)
    return torch.split(order, batch)


@torch.no_grad()
def _evaluated(update: Update, x: Tensor, y: Tensor) -> float:
    """Return the loss on all data as it is now, in eval mode."""
    update.model.eval()
    parts = zip(torch.split(x, CHUNK), torch.split(y, CHUNK), strict=True)
    total = sum(len(xs) * update.loss(update.model(xs), ys).item() for xs, ys in parts)
    update.model.train()
    return total / len(x)
