"""Path kernel: a prediction as the sum of what every training sample has added to it."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from inscape._core import NotApplicable, checks, instrument
from inscape._core.progress import Bar, progress
from inscape.errors import BudgetError, UnsupportedModelError
from inscape.kernels.path.backward_replay import Adjoint, Recorded, carried_rows, refuse_gaps
from inscape.kernels.path.gradients_between import General
from inscape.kernels.path.quadrature import Slopes, per_block
from inscape.kernels.path.result import Choices, PathKernel, Sums, gathered
from inscape.kernels.path.training_gradients import (
    Task,
    in_float64,
    refuse_inseparable,
    refuse_outputs,
    refuse_shape,
    refuse_unknown,
)
from inscape.kernels.path.update_rule import refuse_options
from inscape.kernels.tangent.linear_chain import Parts
from inscape.training.losses import Loss
from inscape.training.penalties import Penalty
from inscape.training.replay import loss_of, stand_at
from inscape.training.trajectory import Trajectory, fingerprint

#: Bytes that gradients of queries may take unless the caller says otherwise.
MEMORY = 2**30

#: Residual of a step above which more nodes are taken, relative to the outputs.
TOLERANCE = 4e-15


def _trained(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Any]:
    """Return a short training of the model, for contract and report."""
    from inscape.training import fit

    body = copy.deepcopy(model)
    run = fit(body, x, y.to(x.dtype), lr=0.01, epochs=3, record=2, progress=False)
    return {"trajectory": run.trajectory}


@instrument(
    reads="trajectory",
    larger="made by more examples",
    cost="minutes",
    work=lambda n, c: 100.0 * n * c,
    meaning="Half of what training added to a prediction comes from {value} samples, on average.",
    cites="domingos2020every; courtois2025path, Eq. (9)",
    example=_trained,
    by_default=False,
)
def path_kernel(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    trajectory: Trajectory | None = None,
    queries: Tensor | None = None,
    outputs: Sequence[int] | None = None,
    mode: Literal["exact", "first-order"] = "exact",
    decay: Literal["own", "samples"] = "own",
    by_step: bool = False,
    by_layer: bool = False,
    loss: Loss | None = None,
    penalties: Sequence[tuple[float, Penalty]] = (),
    tolerance: float = TOLERANCE,
    memory: int = MEMORY,
) -> PathKernel | NotApplicable:
    r"""Split predictions of a trained network into what every training sample has added.

    .. math:: f_K(x) - f_0(x) = \sum_k \int_0^1 \langle \nabla f(x; w_k + t \Delta_k),
              \Delta_k \rangle \, dt, \quad \Delta_k = \sum_i \Delta_k^{(i)}

    An update is linear in the gradients of past samples once its own denominators are known: that
    of gradient descent, momentum and Nesterov, and that of Adam and AdamW with their second moments
    as they were. So every step splits into parts of samples, and weight decay and penalties have
    parts of their own. ``"exact"`` integrates the queries' gradients along each step by the rule of
    Gauss and Legendre, with more nodes until the change of the output is met; steps are cut
    where a unit of a query switches, and those of modules with other kinks where the change is
    missed most, into 64 parts at most. The sum then closes to rounding, but for modules with more
    kinks than that.
    ``"first-order"`` takes the gradient at the start of each step, as the paper does. The residual
    is always told.

    The training is gone through backwards: what a later step makes of a gradient is carried for
    every query, not for every sample: memory grows with the data only by what goes through the
    network for one batch, and 64 MiB for gradients of its samples. For momentum and Adam that is
    one row of parameters for each query and output, with ``decay="samples"`` one more; for plain
    gradient descent nothing. It is estimated before the run, kept under ``memory`` by several
    passes, and told as ``bytes``. Steps between checkpoints are replayed in each pass, and not at
    all where there is one at every step. Costs for each step about ``nodes`` gradients of every
    query and output, one of every sample in its batch, and their products.

    :class:`PathWatch` finds the same while a training runs, without a record of it.

    Args:
        model: The network that was trained.
        x: Inputs of the training.
        y: Targets of the training.
        trajectory: The recorded training, as ``fit(..., record=...)`` returns it.
        queries: Inputs whose predictions are split; the first eight of ``x`` by default.
        outputs: Numbers of the outputs that are split; all by default. Fewer take less time, but
            for chains of linear maps.
        mode: Whether to integrate along steps, or to take their first order.
        decay: Whether weight decay has its own part, or that part goes to those who made the
            weights: the samples, and the initial weights as ``decay``.
        by_step: Whether to tell what the gradients of every update have added.
        by_layer: Whether to tell the part of every parameter tensor in what samples have added.
        loss: The loss, if the training had a function of your own.
        penalties: The penalties of the training.
        tolerance: Residual of a step, relative to the largest output, above which more nodes are
            taken.
        memory: Bytes that steps between checkpoints and carried gradients of queries may take; more
            queries take more passes.
    """
    checks.one_of(("exact", "first-order"), mode=mode)
    checks.one_of(("own", "samples"), decay=decay)
    checks.module(model)
    checks.in_eval_mode(model)
    checks.points(x)
    checks.labels(y, x)
    if trajectory is None:
        reason = "it needs a recorded training: pass fit(..., record=...).trajectory"
        return NotApplicable(what="path_kernel", reason=reason)
    refuse_unknown(trajectory.settings.optimizer)
    if fingerprint(x, y) != trajectory.data:
        raise ValueError(
            "the path kernel needs the very data of the training, found other values, types or "
            "shapes: pass the x and y that were given to fit."
        )
    refuse_gaps(trajectory)
    refuse_options(trajectory)
    criterion = loss_of(trajectory, loss, penalties)
    queries = x[:8] if queries is None else queries
    checks.points(queries, "queries")
    refuse_shape(queries, x)
    body = copy.deepcopy(model)
    stand_at(body, trajectory, 0)
    together = _acts_together(body, x, trajectory)
    task = Task.of(body, x, y, criterion, penalties, trajectory.trainable, outputs)
    refuse_outputs(outputs, task.shape)
    recorded = Recorded(
        task=task, trajectory=trajectory, loss=loss, penalties=penalties, together=together
    )
    choices = Choices(mode, decay, by_step, by_layer, tolerance)
    split = _split(recorded, queries.double(), choices, memory)
    if outputs is None or isinstance(task.network, General):
        return split
    return split.of_outputs(outputs)


def _split(recorded: Recorded, queries: Tensor, choices: Choices, memory: int) -> PathKernel:
    """Go through the training as often as the memory asks for, with some queries each time."""
    task, steps = recorded.task, recorded.trajectory.steps
    initial, final = (recorded.values(step, queries) for step in (0, steps))
    row = 8 * task.network.parameters * initial.shape[1]
    held = carried_rows(recorded.trajectory.settings, choices.decay) * row
    between = recorded.bytes_between()
    if held + row + between > memory:
        raise BudgetError(
            f"going back takes {between:,} bytes for the steps between two checkpoints and "
            f"{held + row:,} for the gradients of one query, found memory={memory:,}: raise memory "
            f"to at least {held + row + between:,}, or record more checkpoints."
        )
    spare = memory - held - between  # a third each: carried, gradients of a block, their average
    at_once = per_block(row, 2 * spare // 3 if held else spare, len(queries))
    rows = max(1, (memory - between - 2 * at_once * row) // held) if held else len(queries)
    parts = torch.tensor_split(queries, -(-len(queries) // rows))
    with progress(steps * len(parts), label="going back through the training") as bar:
        found = [_pass(recorded, torch.split(part, at_once), choices, bar) for part in parts]
    blocks = [block for one in found for block in one]
    return gathered(
        [sums for sums, _ in blocks],
        initial,
        final,
        choices,
        tensors=recorded.trajectory.trainable,
        optimizer=recorded.trajectory.settings.optimizer,
        passes=len(parts),
        taken=held * max(map(len, parts)) + between,
        disk=0,
        nodes=max(nodes for _, nodes in blocks),
        precision=task.precision,
        loop=recorded.trajectory.loop is not None,
    )


def _acts_together(body: nn.Module, x: Tensor, trajectory: Trajectory) -> bool:
    """Return whether the samples of a batch act together, which only a recorded loop may do."""
    double = in_float64(body, x)  # rounding hides weak mixtures
    try:
        refuse_inseparable(double, x.double())
    except UnsupportedModelError:
        if trajectory.loop is None:
            raise
        return True
    return False


class _Block:
    """Some queries on their way back through a training."""

    def __init__(self, recorded: Recorded, queries: Tensor, outputs: int, choices: Choices) -> None:
        trajectory, network = recorded.trajectory, recorded.task.network
        rows = outputs * len(queries)
        self.sums = Sums(
            rows,
            len(recorded.task.x) + (trajectory.loop is not None),
            steps=trajectory.steps if choices.by_step else 0,
            tensors=len(trajectory.trainable) if choices.by_layer else 0,
        )
        self.slopes = Slopes(
            network, queries, exact=choices.mode == "exact", tolerance=choices.tolerance
        )
        self.adjoint = Adjoint(trajectory.settings, rows, network.parameters, decay=choices.decay)


def _pass(
    recorded: Recorded, parts: Sequence[Tensor], choices: Choices, bar: Bar
) -> list[tuple[Sums, int]]:
    """Go back once with some queries, a block of them after the other at each step.

    Returns the sums of each block and its number of nodes; what was carried is freed.
    """
    task, trajectory = recorded.task, recorded.trajectory
    network = task.network
    queries, sizes = torch.cat(list(parts)), [len(part) for part in parts]
    later = recorded.values(trajectory.steps, queries)
    c = later.shape[1]
    blocks = [_Block(recorded, part, c, choices) for part in parts]
    room = torch.empty(max(sizes), c, network.parameters, dtype=torch.float64)
    for before, after in recorded.backwards():
        step, old, new = before.step, before.weights.double(), after.weights.double()
        rule = recorded.rule(step)
        scale = rule.scale(after)
        reached = later
        if recorded.together:
            recorded.set_buffers(before)
            reached = network.values(new, queries)
        here = network.values(old, queries)
        gradients = list(recorded.gradients(before))
        penalty = task.penalty_gradient(trajectory.rows(step), old)
        changes = torch.split(reached - here, sizes)
        drifts = torch.split(later - reached, sizes)
        for block, change, drift in zip(blocks, changes, drifts, strict=True):
            slopes = room[: len(change)]
            block.sums.move(block.slopes.along(old, new, change, float(here.abs().max())), slopes)
            block.sums.statistics += drift.flatten()
            push, decayed = block.adjoint.back(slopes.flatten(0, 1), rule, old, scale)
            used = push if after.clip is None else push * after.clip
            _attribute(block.sums, gradients, used, step if choices.by_step else None)
            block.sums.decay += decayed
            if penalty is not None:
                block.sums.penalty += push @ penalty
        later = here
        bar.advance(1)
    for block in blocks:
        block.sums.decay += block.adjoint.share_of_start(recorded.weights(0))
    return [(block.sums, block.slopes.nodes) for block in blocks]


def _attribute(
    sums: Sums, gradients: Iterable[tuple[slice | Tensor, Parts]], push: Tensor, step: int | None
) -> None:
    """Add what the samples of an update have moved, and let go of their gradients."""
    for which, own in gradients:
        parts = sums.add(which, own, push)
        if step is not None:
            sums.steps[:, step] += parts.sum(1)
