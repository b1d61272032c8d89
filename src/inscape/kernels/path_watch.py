"""Path kernel computed while a training runs, for queries that are known beforehand."""

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
from inscape.kernels.path.backward_replay import moment_rows
from inscape.kernels.path.module_network import DenseSampleGradients
from inscape.kernels.path.optimizer_state import (
    EXTRA_ROWS,
    SampleMoments,
    UpdateGradients,
    refuse_full,
    rows_at_once,
)
from inscape.kernels.path.quadrature import StepQuadrature, queries_per_block
from inscape.kernels.path.result import Contributions, PathKernel, PathOptions, path_kernel_result
from inscape.kernels.path.training_gradients import (
    TrainingProblem,
    refuse_inseparable,
    refuse_shape,
    refuse_unknown,
)
from inscape.kernels.path.update_rule import UpdateRule
from inscape.kernels.path_kernel import MEMORY, TOLERANCE
from inscape.training.replay import Stand, refuse_idle, second_moments
from inscape.training.settings import FitSettings
from inscape.training.update import Update, batches_per_epoch


class PathWatch:
    """Computes the contributions of all samples to predictions while a training runs.

    The result is that of :func:`path_kernel`, accumulated forwards, without a recorded training or
    a replay. One first moment is stored per sample: ``(samples + 2) x parameters`` values for
    momentum and Adam, twice as many for ``decay="samples"``, none for plain SGD. The need is
    estimated before the first update. Moments that do not fit into ``memory`` are stored in a
    temporary file in the folder ``disk``. Each update costs the products of all queries with all
    samples, not only those of its batch: for mini-batches of momentum and Adam,
    :func:`path_kernel` is faster.

    >>> from inscape.training import fit
    >>> x = torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None]
    >>> watch = PathWatch(x[:2])
    >>> run = fit(torch.nn.Linear(1, 1).double(), x, 2 * x, lr=0.1, epochs=5, watch=watch)
    >>> split = watch.result()
    >>> torch.allclose(split.initial + split.samples.sum(1), run.model(x[:2]))
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
        """Set queries and options.

        Args:
            queries: Inputs whose predictions are split.
            mode: As in :func:`path_kernel`.
            decay: As in :func:`path_kernel`.
            by_step: As in :func:`path_kernel`; stores a moment for each update, too.
            by_layer: As in :func:`path_kernel`.
            tolerance: As in :func:`path_kernel`.
            memory: Bytes for moments and gradients of queries.
            disk: Folder of a temporary file for moments that do not fit into memory.
        """
        checks.one_of(("exact", "first-order"), mode=mode)
        checks.one_of(("own", "samples"), decay=decay)
        checks.points(queries, "queries")
        self._queries = queries.double()
        self._options = PathOptions(mode, decay, by_step, by_layer, tolerance)
        self._memory, self._disk = memory, None if disk is None else Path(disk)
        self._run: _Run | None = None

    def begin(self, update: Update, x: Tensor, y: Tensor, settings: FitSettings) -> None:
        """Check the training before its first update, and allocate memory."""
        if self._run is not None:
            raise ValueError(
                "a PathWatch watches one training, found a second: make another PathWatch for it."
            )
        refuse_unknown(settings.optimizer)
        refuse_shape(self._queries, x)
        refuse_inseparable(update.model, x)
        names = [name for name, p in update.model.named_parameters() if p.requires_grad]
        problem = TrainingProblem.of(update.model, x, y, update.loss, update.penalties, names)
        rows_per_state = moment_rows(settings, self._options.decay)
        outputs = math.prod(problem.shape)
        steps = settings.epochs * batches_per_epoch(len(x), settings.batch)
        rows = len(x) + EXTRA_ROWS + (steps + EXTRA_ROWS if self._options.by_step else 0)
        plan = _MemoryPlan.of(
            problem, rows_per_state * rows, self._queries, outputs, self._memory, self._disk
        )
        self._run = _Run(update, problem, settings, self._queries, self._options, plan, steps)

    def step(self, rows: slice | Tensor, rate: float) -> None:
        """Add the contributions of an update."""
        assert self._run is not None
        self._run.step(rows, rate)

    def result(self) -> PathKernel:
        """Return the contributions so far."""
        if self._run is None:
            raise ValueError(
                "a PathWatch has a result after a training, found none: pass it to "
                "fit(..., watch=...)."
            )
        return self._run.result()


class _Block:
    """State of some queries: contributions and quadrature."""

    def __init__(
        self,
        problem: TrainingProblem,
        queries: Tensor,
        outputs: int,
        options: PathOptions,
        steps: int,
    ) -> None:
        tensors = len(problem.trainable) if options.by_layer else 0
        self.contributions = Contributions(outputs * len(queries), len(problem.x), tensors=tensors)
        self.by_step = Contributions(outputs * len(queries), steps) if options.by_step else None
        self.quadrature = StepQuadrature(
            problem.network, queries, exact=options.mode == "exact", tolerance=options.tolerance
        )


class _Run:
    """A training that is being watched."""

    def __init__(
        self,
        update: Update,
        problem: TrainingProblem,
        settings: FitSettings,
        queries: Tensor,
        options: PathOptions,
        plan: "_MemoryPlan",
        steps: int,
    ) -> None:
        self._optimizer, self._problem, self._settings = update.optimizer, problem, settings
        self._queries, self._options, self._plan = queries, options, plan
        self._idle: Sequence[bool] | None = None
        self._stand = self._now(0)
        start = self._stand.weights
        self._initial = self._outputs = problem.network.values(start, queries)
        outputs = self._initial.shape[1]
        batches = torch.split(queries, plan.at_once)
        self._sizes = [len(batch) for batch in batches]
        self._blocks = [_Block(problem, batch, outputs, options, steps) for batch in batches]
        self._buffer = start.new_empty(plan.at_once, outputs, problem.network.parameters)
        tracks_weights = options.decay == "samples" and settings.weight_decay != 0

        def moments(rows: int) -> SampleMoments:
            return SampleMoments(settings, rows, start, shared=tracks_weights, disk=plan.disk)

        self._sample_moments = moments(len(problem.x)) if plan.state_bytes else None
        self._step_moments = moments(steps) if plan.state_bytes and options.by_step else None

    def step(self, rows: slice | Tensor, rate: float) -> None:
        parameters = self._optimizer.param_groups[0]["params"]
        self._idle = refuse_idle(self._settings, self._problem.trainable, parameters, self._idle)
        before, after = self._stand, self._now(self._stand.step + 1)
        old, problem = before.weights, self._problem
        later = problem.network.values(after.weights, self._queries)
        largest = float(self._outputs.abs().max())
        step = UpdateGradients(
            rows=rows,
            which=torch.arange(len(problem.x))[rows],
            gradients=problem.gradients(rows, old),
            penalty=problem.penalty_gradient(rows, old),
            old=old,
        )
        scale = UpdateRule.of(self._settings, rate, after.step).scale(after)
        summed = _as_one_sample(step, before.step) if self._options.by_step else step
        for moments, gradients in ((self._sample_moments, step), (self._step_moments, summed)):
            if moments is not None:
                moments.advance(gradients)
        changes = torch.split(later - self._outputs, self._sizes)
        for block, change in zip(self._blocks, changes, strict=True):
            gradients_along = self._buffer[: len(change)]
            block.contributions.move(
                block.quadrature.average(old, after.weights, change, largest), gradients_along
            )
            gradients_along = gradients_along.flatten(0, 1)
            if block.by_step is not None:
                self._add(
                    block.by_step, self._step_moments, summed, gradients_along.clone(), scale, rate
                )
            self._add(block.contributions, self._sample_moments, step, gradients_along, scale, rate)
        for moments, gradients in ((self._sample_moments, step), (self._step_moments, summed)):
            if moments is not None:
                moments.move(gradients, scale, 1 - self._shrink(rate))
        self._stand, self._outputs = after, later

    def result(self) -> PathKernel:
        for block in self._blocks:
            if block.by_step is not None:
                block.contributions.steps = block.by_step.samples[:, : self._stand.step]
        return path_kernel_result(
            [block.contributions for block in self._blocks],
            self._initial,
            self._outputs,
            self._options,
            tensors=self._problem.trainable,
            optimizer=self._settings.optimizer,
            passes=0,
            state_bytes=self._plan.state_bytes,
            disk=self._plan.state_bytes if self._plan.disk else 0,
            nodes=max(block.quadrature.nodes for block in self._blocks),
            precision=self._problem.precision,
        )

    def _add(
        self,
        contributions: Contributions,
        moments: SampleMoments | None,
        step: UpdateGradients,
        gradients_along: Tensor,
        scale: Tensor,
        rate: float,
    ) -> None:
        """Add the contributions of an update to some queries, whose gradients are overwritten."""
        shrink = self._shrink(rate)
        if shrink:
            self._add_decay(contributions, moments, step, gradients_along, -shrink)
        coefficients = gradients_along.mul_(-scale)
        if moments is not None:
            for chunk in moments.chunks():
                contributions.add_rows(
                    chunk, moments.used(step, chunk), coefficients, self._problem.network.slices
                )
            return
        contributions.add(step.rows, step.gradients, coefficients)
        contributions.decay += self._settings.weight_decay * (coefficients @ step.old)
        if step.penalty is not None:
            contributions.penalty += coefficients @ step.penalty

    def _add_decay(
        self,
        contributions: Contributions,
        moments: SampleMoments | None,
        step: UpdateGradients,
        gradients_along: Tensor,
        factor: float,
    ) -> None:
        """Add the contribution of AdamW's decay, which is decoupled from its moments."""
        if moments is None or self._options.decay == "own":
            contributions.decay += factor * (gradients_along @ step.old)
            return
        for chunk in moments.chunks():
            weights = moments.weights(chunk)
            assert weights is not None
            contributions.add_rows(
                chunk, factor * weights, gradients_along, self._problem.network.slices
            )

    def _shrink(self, rate: float) -> float:
        """Return the fraction of the weights that an update of AdamW subtracts."""
        return rate * self._settings.weight_decay if self._settings.optimizer == "adamw" else 0.0

    def _now(self, step: int) -> Stand:
        parameters = self._optimizer.param_groups[0]["params"]
        return Stand(
            step=step,
            weights=torch.cat([p.detach().flatten() for p in parameters]).double(),
            squares=second_moments(parameters, [self._optimizer.state[p] for p in parameters]),
        )


def _as_one_sample(step: UpdateGradients, step_index: int) -> UpdateGradients:
    """Return an update with one sample, whose gradient is the sum over its samples."""
    chunks = torch.split(torch.arange(len(step.which)), rows_at_once(len(step.old)))
    gradient = torch.stack([step.gradients.dense(chunk).sum(0) for chunk in chunks]).sum(
        0, keepdim=True
    )
    index = torch.tensor([step_index])
    slices = [slice(0, gradient.shape[1])]
    return replace(
        step, rows=index, which=index, gradients=DenseSampleGradients(lambda _: gradient, 1, slices)
    )


@dataclass(frozen=True)
class _MemoryPlan:
    """Bytes of the optimiser state, where it is stored, and queries per block."""

    state_bytes: int
    disk: Path | None
    at_once: int

    @classmethod
    def of(
        cls,
        problem: TrainingProblem,
        state_rows: int,
        queries: Tensor,
        outputs: int,
        memory: int,
        disk: Path | None,
    ) -> "_MemoryPlan":
        """Return the plan for so many rows of state, or raise with the least memory."""
        row_bytes = 8 * problem.network.parameters
        state_bytes = state_rows * row_bytes
        rows = min(rows_at_once(problem.network.parameters), len(problem.x) + EXTRA_ROWS)
        work = outputs * row_bytes + (3 * rows * row_bytes if state_bytes else 0)
        in_memory = state_bytes if disk is None else 0
        if in_memory + work > memory:
            advice = "" if disk or not state_bytes else ", or pass disk=... for a temporary file"
            raise BudgetError(
                f"watching takes {state_bytes:,} bytes for moments of {len(problem.x)} samples and "
                f"{work:,} to work with, found memory={memory:,}: raise memory to at least "
                f"{in_memory + work:,}{advice}."
            )
        fits = state_bytes + work <= memory
        if not fits and disk is not None:
            refuse_full(disk, state_bytes)
        available = memory - work - (state_bytes if fits else 0)
        at_once = queries_per_block(
            outputs * row_bytes, available + outputs * row_bytes, len(queries)
        )
        return cls(state_bytes, None if fits else disk, at_once)
