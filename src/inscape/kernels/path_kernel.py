"""Path kernel: a prediction as the sum of contributions of all training samples.

An update is linear in the gradients of past samples once its own denominators are known: for SGD,
momentum and Nesterov, and for Adam and AdamW with their second moments held fixed. So every step
splits into contributions of samples, of weight decay and of penalties. In mode ``"exact"`` the
gradients of the queries are integrated along each step by Gauss-Legendre quadrature, with nodes
doubled until the change of the output is met; steps are cut at the breakpoints of each query, and
those of modules with other kinks where the residual is largest, by 64 further cuts at most. The sum
then closes to rounding, except for modules with more kinks than that. ``"first-order"`` uses the
gradient at the start of each step, as the paper does. The residual is always returned.

The training is traversed backwards, and the adjoint of the optimiser state is stored for every
query, not for every sample: memory grows with the data only by the activations of one batch, and 64
MiB for gradients of its samples. Momentum and Adam need one value per parameter for each query and
output, ``decay="samples"`` one more; plain SGD none. The need is estimated before the run, kept
below ``memory`` by several passes, and returned as ``bytes``. Steps between checkpoints are
replayed in each pass. Each step costs about ``nodes`` gradients of every query and output, one of
every sample in its batch, and their inner products.
"""

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from inscape._core import NotApplicable, checks, instrument
from inscape.errors import BudgetError, UnsupportedModelError
from inscape.kernels.path.backward_replay import Adjoint, RecordedTraining, moment_rows, refuse_gaps
from inscape.kernels.path.linear_chain import SampleGradients
from inscape.kernels.path.module_network import ModuleNetwork
from inscape.kernels.path.quadrature import StepQuadrature, queries_per_block
from inscape.kernels.path.result import Contributions, PathKernel, PathOptions, path_kernel_result
from inscape.kernels.path.training_gradients import (
    TrainingProblem,
    in_float64,
    refuse_inseparable,
    refuse_outputs,
    refuse_shape,
    refuse_unknown,
)
from inscape.kernels.path.update_rule import refuse_options
from inscape.runtime.progress import Bar, progress
from inscape.training.losses import Loss
from inscape.training.penalties import Penalty
from inscape.training.replay import loss_of, refuse_other_data, stand_at
from inscape.training.trajectory import Trajectory

#: Default bytes for gradients of queries.
MEMORY = 2**30

#: Residual of a step above which nodes are added, relative to the outputs.
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
    r"""Return the contributions of all training samples to predictions of a trained network.

    .. math:: f_K(x) - f_0(x) = \sum_k \int_0^1 \langle \nabla f(x; w_k + t \Delta_k),
              \Delta_k \rangle \, dt, \quad \Delta_k = \sum_i \Delta_k^{(i)}

    The first lines of this module say how, and at what cost. :class:`PathWatch` returns the same
    from a training while it runs.

    Args:
        model: The network that was trained.
        x: Training inputs.
        y: Training targets.
        trajectory: The recorded training, as ``fit(..., record=...)`` returns it.
        queries: Inputs whose predictions are split; the first eight of ``x`` by default.
        outputs: Indices of the outputs that are split; all by default.
        mode: Integrate the gradient along each step, or use its value at the start of the step.
        decay: Whether weight decay is a contribution of its own, or is attributed to the samples
            and the initial weights (as ``decay``) that made the weights.
        by_step: Whether to return the contribution of every update.
        by_layer: Whether to return the contribution of every parameter tensor.
        loss: The loss, if the training had a function of your own.
        penalties: The penalties of the training.
        tolerance: Residual of a step, relative to the largest output, above which nodes are added.
        memory: Bytes for the steps between checkpoints and the optimiser state of queries; beyond
            it queries are split into several passes.
    """
    options = PathOptions(mode, decay, by_step, by_layer, tolerance)
    _check_arguments(model, x, y, options)
    if trajectory is None:
        reason = "it needs a recorded training: pass fit(..., record=...).trajectory"
        return NotApplicable(what="path_kernel", reason=reason)
    _check_trajectory(trajectory, x, y)
    queries = x[:8] if queries is None else queries
    checks.points(queries, "queries")
    refuse_shape(queries, x)
    recorded = _recorded_training(model, x, y, trajectory, loss, penalties, outputs)
    split = _split(recorded, queries.double(), options, memory)
    if outputs is None or isinstance(recorded.problem.network, ModuleNetwork):
        return split
    return split.of_outputs(outputs)


def _recorded_training(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    trajectory: Trajectory,
    loss: Loss | None,
    penalties: Sequence[tuple[float, Penalty]],
    outputs: Sequence[int] | None,
) -> RecordedTraining:
    """Return the recorded training with its network at the initial weights."""
    criterion = loss_of(trajectory, loss, penalties)
    body = copy.deepcopy(model)
    stand_at(body, trajectory, 0)
    mixes_batch = _mixes_batch(body, x, trajectory)
    problem = TrainingProblem.of(body, x, y, criterion, penalties, trajectory.trainable, outputs)
    refuse_outputs(outputs, problem.shape)
    return RecordedTraining(
        problem=problem,
        trajectory=trajectory,
        loss=loss,
        penalties=penalties,
        mixes_batch=mixes_batch,
    )


def _check_arguments(model: nn.Module, x: Tensor, y: Tensor, options: PathOptions) -> None:
    checks.one_of(("exact", "first-order"), mode=options.mode)
    checks.one_of(("own", "samples"), decay=options.decay)
    checks.module(model)
    checks.in_eval_mode(model)
    checks.points(x)
    checks.labels(y, x)


def _check_trajectory(trajectory: Trajectory, x: Tensor, y: Tensor) -> None:
    """Raise unless the recorded training is complete, supported, and of these data."""
    refuse_unknown(trajectory.settings.optimizer)
    refuse_other_data("the path kernel", trajectory, x, y)
    refuse_gaps(trajectory)
    refuse_options(trajectory)


def _split(
    recorded: RecordedTraining, queries: Tensor, options: PathOptions, memory: int
) -> PathKernel:
    """Return the contributions to all queries, in as many passes as the memory requires."""
    problem, steps = recorded.problem, recorded.trajectory.steps
    initial, final = (recorded.values(step, queries) for step in (0, steps))
    query_bytes = 8 * problem.network.parameters * initial.shape[1]
    state_bytes = moment_rows(recorded.trajectory.settings, options.decay) * query_bytes
    step_bytes = recorded.bytes_between()
    least = state_bytes + query_bytes + step_bytes
    if least > memory:
        raise BudgetError(
            f"going back takes {step_bytes:,} bytes for the steps between two checkpoints and "
            f"{state_bytes + query_bytes:,} for the gradients of one query, found "
            f"memory={memory:,}: raise memory to at least {least:,}, or record more checkpoints."
        )
    available = memory - state_bytes - step_bytes  # a third each: state, gradients, their average
    at_once = queries_per_block(
        query_bytes, 2 * available // 3 if state_bytes else available, len(queries)
    )
    queries_per_pass = (
        max(1, (memory - step_bytes - 2 * at_once * query_bytes) // state_bytes)
        if state_bytes
        else len(queries)
    )
    batches = torch.tensor_split(queries, -(-len(queries) // queries_per_pass))
    with progress(steps * len(batches), label="going back through the training") as bar:
        blocks_of_pass = [
            _pass(recorded, torch.split(batch, at_once), options, bar) for batch in batches
        ]
    results = [block for blocks in blocks_of_pass for block in blocks]
    return path_kernel_result(
        [contributions for contributions, _ in results],
        initial,
        final,
        options,
        tensors=recorded.trajectory.trainable,
        optimizer=recorded.trajectory.settings.optimizer,
        passes=len(batches),
        state_bytes=state_bytes * max(map(len, batches)) + step_bytes,
        disk=0,
        nodes=max(nodes for _, nodes in results),
        precision=problem.precision,
        loop=recorded.trajectory.loop is not None,
    )


def _mixes_batch(body: nn.Module, x: Tensor, trajectory: Trajectory) -> bool:
    """Return whether training mode mixes samples, which only a recorded loop may do."""
    float64_model = in_float64(body, x)  # float32 rounding would hide weak mixing
    try:
        refuse_inseparable(float64_model, x.double())
    except UnsupportedModelError:
        if trajectory.loop is None:
            raise
        return True
    return False


class _Block:
    """State of some queries during a pass: contributions, quadrature and adjoint."""

    def __init__(
        self, recorded: RecordedTraining, queries: Tensor, outputs: int, options: PathOptions
    ) -> None:
        trajectory, network = recorded.trajectory, recorded.problem.network
        rows = outputs * len(queries)
        self.contributions = Contributions(
            rows,
            len(recorded.problem.x) + (trajectory.loop is not None),
            steps=trajectory.steps if options.by_step else 0,
            tensors=len(trajectory.trainable) if options.by_layer else 0,
        )
        self.quadrature = StepQuadrature(
            network, queries, exact=options.mode == "exact", tolerance=options.tolerance
        )
        self.adjoint = Adjoint(trajectory.settings, rows, network.parameters, decay=options.decay)


def _pass(
    recorded: RecordedTraining, batches: Sequence[Tensor], options: PathOptions, bar: Bar
) -> list[tuple[Contributions, int]]:
    """Traverse the training backwards once; return contributions and nodes of each block.

    At each step the blocks of queries are handled one after the other.
    """
    problem, trajectory = recorded.problem, recorded.trajectory
    network = problem.network
    queries, sizes = torch.cat(list(batches)), [len(batch) for batch in batches]
    later = recorded.values(trajectory.steps, queries)
    c = later.shape[1]
    blocks = [_Block(recorded, batch, c, options) for batch in batches]
    buffer = torch.empty(max(sizes), c, network.parameters, dtype=torch.float64)
    for before, after in recorded.backwards():
        step, old, new = before.step, before.weights.double(), after.weights.double()
        rule = recorded.rule(step)
        scale = rule.scale(after)
        reached = later
        if recorded.mixes_batch:
            recorded.set_buffers(before)
            reached = network.values(new, queries)
        earlier = network.values(old, queries)
        gradients = list(recorded.gradients(before))
        penalty = problem.penalty_gradient(trajectory.rows(step), old)
        changes = torch.split(reached - earlier, sizes)
        drifts = torch.split(later - reached, sizes)
        for block, change, drift in zip(blocks, changes, drifts, strict=True):
            gradients_along = buffer[: len(change)]
            block.contributions.move(
                block.quadrature.average(old, new, change, float(earlier.abs().max())),
                gradients_along,
            )
            block.contributions.statistics += drift.flatten()
            coefficients, by_decay = block.adjoint.step_back(
                gradients_along.flatten(0, 1), rule, old, scale
            )
            clipped = coefficients if after.clip is None else coefficients * after.clip
            _attribute(block.contributions, gradients, clipped, step if options.by_step else None)
            block.contributions.decay += by_decay
            if penalty is not None:
                block.contributions.penalty += coefficients @ penalty
        later = earlier
        bar.advance(1)
    for block in blocks:
        block.contributions.decay += block.adjoint.decay_of_start(recorded.weights(0))
    return [(block.contributions, block.quadrature.nodes) for block in blocks]


def _attribute(
    contributions: Contributions,
    gradients: Iterable[tuple[slice | Tensor, SampleGradients]],
    coefficients: Tensor,
    step: int | None,
) -> None:
    """Add the contributions of the samples of an update, and free their gradients."""
    for samples, sample_gradients in gradients:
        products = contributions.add(samples, sample_gradients, coefficients)
        if step is not None:
            contributions.steps[:, step] += products.sum(1)
