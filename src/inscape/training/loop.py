"""The training loop: one, plain, and reproducible bit for bit from its seed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Unpack

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core import checks
from inscape._core.sampling import generator
from inscape.runtime.progress import Bar
from inscape.runtime.progress import progress as progress_bar
from inscape.training.checks import check_end, check_start
from inscape.training.observer import Watcher
from inscape.training.options import FitKeywords, FitOptions, shows_options
from inscape.training.random_state import private_random_state
from inscape.training.recorder import Recorder
from inscape.training.schedules import begun, factor, tell
from inscape.training.settings import FitSettings
from inscape.training.trajectory import Trajectory, fingerprint
from inscape.training.update import Update

#: Samples per batch where the loss on all data is evaluated.
CHUNK = 1024


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Fit:
    """A finished training.

    Attributes:
        model: The trained module, the object that was passed, now in eval mode.
        losses: Training loss of each epoch, as ``stop_on`` says; penalties are not in it.
        penalties: Mean of each penalty over each epoch, without its coefficient.
        epochs: Epochs that were run.
        steps: Updates that were made.
        stopped: ``"loss"`` if the loss fell to ``stop_loss``, else ``"epochs"``.
        settings: The options, with functions replaced by their names.
        trajectory: Checkpoints and batches of the training, if ``record`` was given.
    """

    model: nn.Module
    losses: Float64[Tensor, " epochs"]
    penalties: Float64[Tensor, "epochs penalties"]
    epochs: int
    steps: int
    stopped: Literal["loss", "epochs"]
    settings: FitSettings
    trajectory: Trajectory | None

    @property
    def loss(self) -> float:
        """Training loss of the last epoch."""
        return float(self.losses[-1])

    def __repr__(self) -> str:
        end = "reached stop_loss" if self.stopped == "loss" else "all epochs"
        return f"Fit(loss {self.loss:.3g} after {self.epochs} epochs, {self.steps} steps: {end})"


@shows_options(FitOptions)
def fit(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    seed: int = 0,
    record: int | None = None,
    watch: Watcher | None = None,
    **options: Unpack[FitKeywords],
) -> Fit:
    r"""Train ``model`` in place on all of ``x`` and ``y``, and return it in eval mode.

    .. math:: \min_\theta \; \mathrm{loss}(f_\theta(x), y) + \sum_k \lambda_k P_k(f_\theta, x)

    The model is in training mode meanwhile. A training is reproducible bit for bit from its seed
    (on one machine with one number of threads), dropout included; the global random state is not
    touched.

    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> run = fit(nn.Linear(1, 1), x, 2 * x + 1, lr=0.5, epochs=2)
    >>> round(run.model(torch.tensor([[10.0]])).item(), 3)
    21.0

    Args:
        model: Module to be trained; parameters that do not require gradients stay.
        x: Inputs, in the precision of the model.
        y: Targets, shaped as the outputs, or class numbers for ``"cross_entropy"``.
        seed: Seed of shuffling and of dropout.
        record: Record a :class:`Trajectory` with a checkpoint every so many steps.
        watch: An observer of the training, such as :class:`inscape.kernels.PathWatch`.
        **options: The options of :class:`FitOptions`, where each is explained: ``loss="mse"``,
            ``optimizer="sgd"``, ``lr=0.01``, ``momentum=0.0``, ``nesterov=False``,
            ``weight_decay=0.0``, ``betas=(0.9, 0.999)``, ``batch=None``, ``epochs=100``,
            ``schedule=None``, ``stop_loss=None``, ``stop_on="running"``, ``penalties=()``,
            ``progress=None``.
    """
    chosen = FitOptions(**options)
    checks.whole(1, record=1 if record is None else record)
    overwrites = check_start(model, x, y, chosen.loss)
    update = Update.of(model, chosen, seed=seed, points=len(x))
    settings = chosen.settings(seed=seed, record=record)
    x, y = x.detach(), y.detach()
    if watch:
        watch.begin(update, x, y, settings)
    return _Loop(update, x, y, chosen, settings, watch, overwrites=overwrites).run()


class _Loop:
    """A training under way, once everything is checked and built.

    ``overwrites``: the model writes over its input, so that it gets copies of the data.
    """

    def __init__(
        self,
        update: Update,
        x: Tensor,
        y: Tensor,
        options: FitOptions,
        settings: FitSettings,
        watch: Watcher | None,
        *,
        overwrites: bool,
    ) -> None:
        self.update, self.x, self.y = update, x, y
        self.options, self.settings, self.watch = options, settings, watch
        self.overwrites = overwrites
        record = settings.record
        self.recorder = Recorder(update.model, update.optimizer, record) if record else None
        self.schedule = begun(options.schedule)
        self.shuffle = generator(settings.seed)
        self.base_rates = [group["lr"] for group in update.optimizer.param_groups]
        self.steps = 0

    def run(self) -> Fit:
        """Run epochs until the loss is reached or there are no more."""
        losses: list[float] = []
        penalties: list[list[float]] = []
        stopped: Literal["loss", "epochs"] = "epochs"
        stop_loss, total = self.options.stop_loss, self.options.epochs * self.update.per_epoch
        quiet = self.options.quiet
        with (
            _training(self.update.model, self.x),
            progress_bar(total, label="training", quiet=quiet) as bar,
        ):
            for _ in range(self.options.epochs):
                note = f"loss {losses[-1]:.1e}" if losses else ""
                running, *means = self._epoch(bar, note)
                losses.append(running if self.options.stop_on == "running" else self._evaluated())
                penalties.append(means)
                tell(self.schedule, losses[-1])
                if stop_loss is not None and losses[-1] <= stop_loss:
                    stopped = "loss"
                    break
        check_end(self.update, self.steps - 1)
        return Fit(
            model=self.update.model,
            losses=torch.tensor(losses, dtype=torch.float64),
            penalties=torch.tensor(penalties, dtype=torch.float64),
            epochs=len(losses),
            steps=self.steps,
            stopped=stopped,
            settings=self.settings,
            trajectory=self._trajectory(),
        )

    def _epoch(self, bar: Bar, note: str) -> list[float]:
        """Make one pass over the data; return the mean loss and the mean of each penalty."""
        sums = [0.0] * (1 + len(self.options.penalties))
        for indices in self._batches():
            batch = self.x[indices].clone() if self.overwrites else self.x[indices]
            rates = [rate * factor(self.schedule, self.steps) for rate in self.base_rates]
            values = self.update(self.steps, batch, self.y[indices], rates)
            sums = [total + len(batch) * value for total, value in zip(sums, values, strict=True)]
            self.steps += 1
            if self.recorder:
                self.recorder.step(rates[0])
            if self.watch:
                self.watch.step(indices, rates[0])
            bar.advance(note=note)
        return [total / len(self.x) for total in sums]

    def _batches(self) -> Sequence[slice | Tensor]:
        """Return the indices of the samples of each update of the next epoch."""
        if self.options.batch is None:
            return [slice(None)]
        order = torch.randperm(len(self.x), generator=self.shuffle)
        if self.recorder:
            self.recorder.epoch(order)
        return torch.split(order, self.options.batch)

    @torch.no_grad()
    def _evaluated(self) -> float:
        """Return the loss on all data with the weights of now, in eval mode."""
        x = self.x.clone() if self.overwrites else self.x
        model, loss = self.update.model.eval(), self.update.loss
        parts = zip(torch.split(x, CHUNK), torch.split(self.y, CHUNK), strict=True)
        total = sum(len(inputs) * loss(model(inputs), targets).item() for inputs, targets in parts)
        model.train()
        return total / len(x)

    def _trajectory(self) -> Trajectory | None:
        if self.recorder is None:
            return None
        return self.recorder.trajectory(self.settings, fingerprint(self.x, self.y))


@contextmanager
def _training(model: nn.Module, x: Tensor) -> Iterator[None]:
    """Keep the model in training mode, then leave it in eval mode and without gradients."""
    model.train()
    try:
        with private_random_state(x.device), torch.enable_grad():
            yield
    finally:
        model.zero_grad(set_to_none=True)
        model.eval()
