"""Path kernel: a prediction as the sum of what every training sample has added to it."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float64, Int64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.errors import BudgetError, UnsupportedModelError
from inscape._core.functional import refuse_mixing
from inscape._core.progress import Bar, progress
from inscape._core.trajectory import Trajectory, fingerprint
from inscape.kernels._descent import Adjoint, Slopes, Training
from inscape.training.losses import Loss
from inscape.training.penalties import Penalty

#: Bytes that gradients of queries may take unless the caller says otherwise.
MEMORY = 2**30

#: Residual of a step above which more nodes are taken, relative to the outputs.
TOLERANCE = 4e-15


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PathKernel(Result):
    """What every training sample has added to the outputs at some queries.

    ``initial + samples.sum(1) + decay + penalty + residual = final`` for every query and output.
    ``steps[q, s]`` is the part that the gradients of update ``s`` have added, then and through the
    optimizer's memory later.
    """

    initial: Float64[Tensor, "q c"]
    final: Float64[Tensor, "q c"]
    samples: Float64[Tensor, "q n c"]
    decay: Float64[Tensor, "q c"]
    penalty: Float64[Tensor, "q c"]
    residual: Float64[Tensor, "q c"]
    steps: Float64[Tensor, "q k c"] | None
    mode: str
    optimizer: str
    passes: int
    bytes: int
    nodes: int

    @property
    def relative_residual(self) -> float:
        """Return the largest residual, relative to the largest change of an output."""
        change = float((self.final - self.initial).abs().max())
        return float(self.residual.abs().max()) / change if change else 0.0

    def by_class(self, labels: Int64[Tensor, " n"]) -> Float64[Tensor, "q k c"]:
        """Return what the samples of every class have added together."""
        k = int(labels.max()) + 1
        into = self.samples.new_zeros(len(self.samples), k, self.samples.shape[2])
        return into.index_add_(1, labels, self.samples)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each query, sample and output."""
        for q, one in enumerate(self.samples.tolist()):
            for n, values in enumerate(one):
                for c, value in enumerate(values):
                    yield {"query": q, "sample": n, "output": c, "added": value}

    def summary(self) -> Summary:
        """Return the share of samples that half of what was added comes from."""
        size = self.samples.abs().sum(2)
        ordered = size.sort(1, descending=True).values.cumsum(1)
        half = (ordered < ordered[:, -1:] / 2).sum(1) + 1
        basis = f"{len(size)} queries, residual {self.relative_residual:.0e}"
        return Summary(value=float(half.double().mean()), kind="exact", basis=basis)


def _trained(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Any]:
    """Return a short training of the model, for contract and report."""
    from inscape.training import fit

    body = copy.deepcopy(model)
    run = fit(body, x, y.to(x.dtype), lr=0.01, epochs=3, record=2, progress=False)
    return {"trajectory": run.trajectory}


@instrument(
    reads="trajectory",
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
    mode: Literal["exact", "first-order"] = "exact",
    decay: Literal["own", "samples"] = "own",
    by_step: bool = False,
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
    Gauss and Legendre, with more nodes until the change of the output is met; ReLU chains are cut
    where a unit of a query switches. The sum then closes to rounding. ``"first-order"`` takes the
    gradient at the start of each step, as the paper does. The residual is always told.

    The training is gone through backwards: what a later step makes of a gradient is carried for
    every query, not for every sample, so that memory does not grow with the data. Steps between
    checkpoints are replayed, twice in all. Costs for each step about ``nodes`` gradients of every
    query and output, one of every sample in its batch, and their products.

    Args:
        model: The network that was trained.
        x: Inputs of the training.
        y: Targets of the training.
        trajectory: The recorded training, as ``fit(..., record=...)`` returns it.
        queries: Inputs whose predictions are split; the first eight of ``x`` by default.
        mode: Whether to integrate along steps, or to take their first order.
        decay: Whether weight decay has its own part, or that part goes to those who made the
            weights: the samples, and the initial weights as ``decay``.
        by_step: Whether to tell what the gradients of every update have added.
        loss: The loss, if the training had a function of your own.
        penalties: The penalties of the training.
        tolerance: Residual of a step, relative to the largest output, above which more nodes are
            taken.
        memory: Bytes that carried gradients of queries may take; more queries take more passes.
    """
    checks.one_of(("exact", "first-order"), mode=mode)
    checks.one_of(("own", "samples"), decay=decay)
    checks.in_eval_mode(model)
    checks.points(x)
    if trajectory is None:
        reason = "it needs a recorded training: pass fit(..., record=...).trajectory"
        return NotApplicable(what="path_kernel", reason=reason)
    if trajectory.settings.optimizer not in ("sgd", "adam", "adamw"):
        raise UnsupportedModelError(
            "the path kernel knows the updates of sgd, adam and adamw, found "
            f"{trajectory.settings.optimizer!r}: train with one of them."
        )
    if fingerprint(x, y) != trajectory.data:
        raise ValueError(
            "the path kernel needs the very data of the training, found other values, types or "
            "shapes: pass the x and y that were given to fit."
        )
    queries = x[:8] if queries is None else queries
    checks.points(queries, "queries")
    _separable(model, x)
    training = Training.of(model, x, y, trajectory, loss, penalties)
    return _split(training, queries.double(), _Choices(mode, decay, by_step, tolerance), memory)


@dataclass(frozen=True)
class _Choices:
    mode: str
    decay: str
    by_step: bool
    tolerance: float


@dataclass(eq=False, kw_only=True)
class _Sums:
    """What has been added up so far for some queries: rows are outputs times queries."""

    samples: Float64[Tensor, "r n"]
    decay: Float64[Tensor, " r"]
    penalty: Float64[Tensor, " r"]
    steps: Float64[Tensor, "r k"]


def _separable(model: nn.Module, x: Tensor) -> None:
    """Refuse a model whose training mixes samples, or is random: parts of samples have no sense."""
    two = x[:2] if len(x) > 1 else x.expand(2, *x.shape[1:])
    body = copy.deepcopy(model).train()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            refuse_mixing(lambda z: body(z.clone()), two, body(two.clone()).reshape(2, -1))
    except ValueError as error:
        raise UnsupportedModelError(
            "the path kernel needs a training in which each sample acts for itself, found batch "
            "statistics or random draws in training mode: train with such layers in eval mode or "
            "without them."
        ) from error


def _split(training: Training, queries: Tensor, choices: _Choices, memory: int) -> PathKernel:
    """Go through the training as often as the memory asks for, with some queries each time."""
    start = _weights(training, 0)
    outputs = training.network.values(start, queries[:1]).shape[1]
    held = 3 + (choices.decay == "samples")
    one = held * outputs * training.network.parameters * 8
    if one > memory:
        raise BudgetError(
            f"the gradients carried for one query take {one:,} bytes, found memory={memory:,}: "
            "raise memory to at least that."
        )
    rows = max(1, memory // one)
    parts = torch.tensor_split(queries, -(-len(queries) // rows))
    total = training.trajectory.steps * len(parts)
    with progress(total, label="going back through the training") as bar:
        found = [_pass(training, some, choices, outputs, bar) for some in parts]
    return _result(training, queries, found, choices, outputs, one * max(map(len, parts)))


def _weights(training: Training, step: int) -> Float64[Tensor, " p"]:
    state = training.trajectory.at(step)
    return torch.cat([state[name].flatten() for name in training.trajectory.trainable]).double()


def _pass(
    training: Training, queries: Tensor, choices: _Choices, outputs: int, bar: Bar
) -> tuple[_Sums, int]:
    trajectory, network = training.trajectory, training.network
    rows = outputs * len(queries)
    sums = _Sums(
        samples=torch.zeros(rows, len(training.x), dtype=torch.float64),
        decay=torch.zeros(rows, dtype=torch.float64),
        penalty=torch.zeros(rows, dtype=torch.float64),
        steps=torch.zeros(rows, trajectory.steps if choices.by_step else 0, dtype=torch.float64),
    )
    adjoint = Adjoint(
        trajectory.settings, rows, network.parameters, weights=choices.decay == "samples"
    )
    slopes = Slopes(network, queries, exact=choices.mode == "exact", tolerance=choices.tolerance)
    later = network.values(_weights(training, trajectory.steps), queries)
    for before, after in training.backwards():
        step, old = before.step, before.weights.double()
        here = network.values(old, queries)
        size = float(here.abs().max())
        along = slopes.along(old, after.weights.double(), later - here, size)
        push, decayed = adjoint.back(along, float(trajectory.rates[step]), before, after)
        parts = push @ training.gradients(step, old).T
        numbers = torch.arange(len(training.x))[trajectory.rows(step)]
        sums.samples.index_add_(1, numbers, parts)
        sums.decay += decayed
        penalty = training.penalty_gradient(step, old)
        if penalty is not None:
            sums.penalty += push @ penalty
        if choices.by_step:
            sums.steps[:, step] = parts.sum(1)
        later = here
        bar.advance(1)
    sums.decay += adjoint.share_of_start(_weights(training, 0))
    return sums, slopes.nodes


def _result(
    training: Training,
    queries: Tensor,
    found: Sequence[tuple[_Sums, int]],
    choices: _Choices,
    outputs: int,
    taken: int,
) -> PathKernel:
    def joined(name: str) -> Tensor:
        parts = [getattr(sums, name) for sums, _ in found]
        return torch.cat([p.view(outputs, -1, *p.shape[1:]) for p in parts], dim=1).movedim(0, -1)

    ends = (_weights(training, step) for step in (0, training.trajectory.steps))
    initial, final = (training.network.values(weights, queries) for weights in ends)
    samples, decay, penalty = (joined(name) for name in ("samples", "decay", "penalty"))
    settings = training.trajectory.settings
    return PathKernel(
        initial=initial,
        final=final,
        samples=samples.contiguous(),
        decay=decay.contiguous(),
        penalty=penalty.contiguous(),
        residual=final - initial - samples.sum(1) - decay - penalty,
        steps=joined("steps").contiguous() if choices.by_step else None,
        mode=choices.mode,
        optimizer=settings.optimizer,
        passes=len(found),
        bytes=taken,
        nodes=max(nodes for _, nodes in found),
    )
