"""Path kernel while a training runs, for queries that are known beforehand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import checks
from inscape.errors import BudgetError
from inscape.kernels.path.backward_replay import carried_rows
from inscape.kernels.path.gradients_between import WrittenParts
from inscape.kernels.path.optimizer_state import OTHERS, Carried, Step, refuse_full, rows_at_once
from inscape.kernels.path.quadrature import Slopes, per_block
from inscape.kernels.path.result import Choices, PathKernel, Sums, gathered
from inscape.kernels.path.training_gradients import (
    Task,
    refuse_inseparable,
    refuse_shape,
    refuse_unknown,
)
from inscape.kernels.path.update_rule import UpdateRule
from inscape.kernels.path_kernel import MEMORY, TOLERANCE
from inscape.training.replay import Stand, refuse_idle, second_moments
from inscape.training.trajectory import Settings
from inscape.training.update import Update, batches_per_epoch


class PathWatch:
    """Splits predictions into what every sample adds, while a training runs.

    The result is that of :func:`path_kernel`, found the other way round: forwards, with no recorded
    training and no replay. What has to be carried is one moment for each sample, so ``(samples + 2)
    x parameters`` numbers for momentum and Adam, and as many again for ``decay="samples"``; plain
    gradient descent carries nothing. That is estimated before the first update. If it does not fit
    into ``memory`` it goes to a temporary file in the folder ``disk``, and the result says how
    much. Each update costs the products of all queries with all samples, not with its batch only:
    for mini-batches of momentum and Adam, :func:`path_kernel` is faster.

    >>> from inscape.training import fit
    >>> x = torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None]
    >>> watch = PathWatch(x[:2])
    >>> run = fit(torch.nn.Linear(1, 1).double(), x, 2 * x, lr=0.1, epochs=5, watch=watch)
    >>> found = watch.result()
    >>> torch.allclose(found.initial + found.samples.sum(1), run.model(x[:2]))
    True
    """

    def __init__(
        self,
        queries: Float[Tensor, "q *d"],
        *,
        mode: Literal["exact", "first-order"] = "exact",
        decay: Literal["own", "samples"] = "own",
        by_step: bool = False,
        by_layer: bool = False,
        tolerance: float = TOLERANCE,
        memory: int = MEMORY,
        disk: str | Path | None = None,
    ) -> None:
        """Choose what is watched.

        Args:
            queries: Inputs whose predictions are split.
            mode: As in :func:`path_kernel`.
            decay: As in :func:`path_kernel`.
            by_step: As in :func:`path_kernel`; carries a moment for each update, too.
            by_layer: As in :func:`path_kernel`.
            tolerance: As in :func:`path_kernel`.
            memory: Bytes that carried moments and gradients of queries may take.
            disk: Folder for a temporary file where moments go if memory does not hold them.
        """
        checks.one_of(("exact", "first-order"), mode=mode)
        checks.one_of(("own", "samples"), decay=decay)
        checks.points(queries, "queries")
        self._queries = queries.double()
        self._choices = Choices(mode, decay, by_step, by_layer, tolerance)
        self._memory, self._disk = memory, None if disk is None else Path(disk)
        self._run: _Run | None = None

    def begin(self, update: Update, x: Tensor, y: Tensor, settings: Settings) -> None:
        """Look at the training before its first update, and take what is needed."""
        if self._run is not None:
            raise ValueError(
                "a PathWatch watches one training, found a second: make another PathWatch for it."
            )
        refuse_unknown(settings.optimizer)
        refuse_shape(self._queries, x)
        refuse_inseparable(update.model, x)
        names = [name for name, p in update.model.named_parameters() if p.requires_grad]
        task = Task.of(update.model, x, y, update.loss, update.penalties, names)
        held = carried_rows(settings, self._choices.decay)
        outputs = math.prod(task.shape)
        steps = settings.epochs * batches_per_epoch(len(x), settings.batch)
        rows = len(x) + OTHERS + (steps + OTHERS if self._choices.by_step else 0)
        plan = _Plan.of(task, held * rows, self._queries, outputs, self._memory, self._disk)
        self._run = _Run(update, task, settings, self._queries, self._choices, plan, steps)

    def step(self, rows: slice | Tensor, rate: float) -> None:
        """Add what an update has done."""
        assert self._run is not None
        self._run.step(rows, rate)

    def result(self) -> PathKernel:
        """Return what samples have added so far."""
        if self._run is None:
            raise ValueError(
                "a PathWatch has a result after a training, found none: pass it to "
                "fit(..., watch=...)."
            )
        return self._run.result()


class _Block:
    """Some of the queries."""

    def __init__(
        self, task: Task, queries: Tensor, outputs: int, choices: Choices, steps: int
    ) -> None:
        tensors = len(task.trainable) if choices.by_layer else 0
        self.sums = Sums(outputs * len(queries), len(task.x), tensors=tensors)
        self.by_step = Sums(outputs * len(queries), steps) if choices.by_step else None
        self.slopes = Slopes(
            task.network, queries, exact=choices.mode == "exact", tolerance=choices.tolerance
        )


class _Run:
    """A training that is being watched."""

    def __init__(
        self,
        update: Update,
        task: Task,
        settings: Settings,
        queries: Tensor,
        choices: Choices,
        plan: "_Plan",
        steps: int,
    ) -> None:
        self._optimizer, self._task, self._settings = update.optimizer, task, settings
        self._queries, self._choices, self._plan = queries, choices, plan
        self._idle: Sequence[bool] | None = None
        self._stand = self._now(0)
        start = self._stand.weights
        self._initial = self._here = task.network.values(start, queries)
        outputs = self._initial.shape[1]
        parts = torch.split(queries, plan.at_once)
        self._sizes = [len(part) for part in parts]
        self._blocks = [_Block(task, part, outputs, choices, steps) for part in parts]
        self._room = start.new_empty(plan.at_once, outputs, task.network.parameters)
        shared = choices.decay == "samples" and settings.weight_decay != 0

        def carried(rows: int) -> Carried:
            return Carried(settings, rows, start, shared=shared, disk=plan.disk)

        self._carried = carried(len(task.x)) if plan.carried else None
        self._by_step = carried(steps) if plan.carried and choices.by_step else None

    def step(self, rows: slice | Tensor, rate: float) -> None:
        parameters = self._optimizer.param_groups[0]["params"]
        self._idle = refuse_idle(self._settings, self._task.trainable, parameters, self._idle)
        before, after = self._stand, self._now(self._stand.step + 1)
        old, task = before.weights, self._task
        later = task.network.values(after.weights, self._queries)
        size = float(self._here.abs().max())
        step = Step(
            rows=rows,
            which=torch.arange(len(task.x))[rows],
            gradients=task.gradients(rows, old),
            penalty=task.penalty_gradient(rows, old),
            old=old,
        )
        scale = UpdateRule.of(self._settings, rate, after.step).scale(after)
        whole = _together(step, before.step) if self._choices.by_step else step
        for carried, own in ((self._carried, step), (self._by_step, whole)):
            if carried is not None:
                carried.advance(own)
        changes = torch.split(later - self._here, self._sizes)
        for block, change in zip(self._blocks, changes, strict=True):
            slopes = self._room[: len(change)]
            block.sums.move(block.slopes.along(old, after.weights, change, size), slopes)
            slopes = slopes.flatten(0, 1)
            if block.by_step is not None:
                self._add(block.by_step, self._by_step, whole, slopes.clone(), scale, rate)
            self._add(block.sums, self._carried, step, slopes, scale, rate)
        for carried, own in ((self._carried, step), (self._by_step, whole)):
            if carried is not None:
                carried.move(own, scale, 1 - self._shrink(rate))
        self._stand, self._here = after, later

    def result(self) -> PathKernel:
        for block in self._blocks:
            if block.by_step is not None:
                block.sums.steps = block.by_step.samples[:, : self._stand.step]
        return gathered(
            [block.sums for block in self._blocks],
            self._initial,
            self._here,
            self._choices,
            tensors=self._task.trainable,
            optimizer=self._settings.optimizer,
            passes=0,
            taken=self._plan.carried,
            disk=self._plan.carried if self._plan.disk else 0,
            nodes=max(block.slopes.nodes for block in self._blocks),
            precision=self._task.precision,
        )

    def _add(
        self,
        sums: Sums,
        carried: Carried | None,
        step: Step,
        slopes: Tensor,
        scale: Tensor,
        rate: float,
    ) -> None:
        """Add what an update has done to some queries, whose gradients are written over."""
        shrink = self._shrink(rate)
        if shrink:
            self._add_decay(sums, carried, step, slopes, -shrink)
        push = slopes.mul_(-scale)
        if carried is not None:
            for chunk in carried.chunks():
                sums.add_rows(chunk, carried.used(step, chunk), push, self._task.network.slices)
            return
        sums.add(step.rows, step.gradients, push)
        sums.decay += self._settings.weight_decay * (push @ step.old)
        if step.penalty is not None:
            sums.penalty += push @ step.penalty

    def _add_decay(
        self, sums: Sums, carried: Carried | None, step: Step, slopes: Tensor, factor: float
    ) -> None:
        """Add what the decay of AdamW has done, which is apart from its moments."""
        if carried is None or self._choices.decay == "own":
            sums.decay += factor * (slopes @ step.old)
            return
        for chunk in carried.chunks():
            own = carried.weights(chunk)
            assert own is not None
            sums.add_rows(chunk, factor * own, slopes, self._task.network.slices)

    def _shrink(self, rate: float) -> float:
        """Return the share of the weights that an update of AdamW takes away."""
        return rate * self._settings.weight_decay if self._settings.optimizer == "adamw" else 0.0

    def _now(self, step: int) -> Stand:
        parameters = self._optimizer.param_groups[0]["params"]
        return Stand(
            step=step,
            weights=torch.cat([p.detach().flatten() for p in parameters]).double(),
            squares=second_moments(parameters, [self._optimizer.state[p] for p in parameters]),
        )


def _together(step: Step, number: int) -> Step:
    """Return an update whose samples are one: what they add is that of the update."""
    some = torch.split(torch.arange(len(step.which)), rows_at_once(len(step.old)))
    gradient = torch.stack([step.gradients.written(k).sum(0) for k in some]).sum(0, keepdim=True)
    only = torch.tensor([number])
    slices = [slice(0, gradient.shape[1])]
    return replace(
        step, rows=only, which=only, gradients=WrittenParts(lambda _: gradient, 1, slices)
    )


@dataclass(frozen=True)
class _Plan:
    """How much is carried, where, and for how many queries gradients are written out at once."""

    carried: int
    disk: Path | None
    at_once: int

    @classmethod
    def of(
        cls, task: Task, held: int, queries: Tensor, outputs: int, memory: int, disk: Path | None
    ) -> "_Plan":
        """Return what fits with so many rows held, or say the least that would."""
        row = 8 * task.network.parameters
        carried = held * row
        rows = min(rows_at_once(task.network.parameters), len(task.x) + OTHERS)
        work = outputs * row + (3 * rows * row if carried else 0)
        inside = carried if disk is None else 0
        if inside + work > memory:
            where = "" if disk or not carried else ", or pass disk=... for a temporary file"
            raise BudgetError(
                f"watching takes {carried:,} bytes for moments of {len(task.x)} samples and "
                f"{work:,} to work with, found memory={memory:,}: raise memory to at least "
                f"{inside + work:,}{where}."
            )
        fits = carried + work <= memory
        if not fits and disk is not None:
            refuse_full(disk, carried)
        left = memory - work - (carried if fits else 0)
        at_once = per_block(outputs * row, left + outputs * row, len(queries))
        return cls(carried, None if fits else disk, at_once)
