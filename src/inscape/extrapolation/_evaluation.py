"""Errors of a function and of baselines at queries, evaluated in interruptible steps."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from inscape._core import checks, draw_rows
from inscape._core.anytime import stoppable
from inscape._core.sampling import FIRST, generator
from inscape.extrapolation._zones import Locations, Predictions, locations, predictions
from inscape.functional.final_activation import ends_in_probability, lie_between_0_and_1
from inscape.functional.jacobians import Probe

Domain = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class TaskErrors:
    """Distances, zones and errors of the queries of one task."""

    distances: Float64[Tensor, " m"]
    zones: Int64[Tensor, " m"]
    errors: Float64[Tensor, "m k"]
    reach: float | None
    flat: bool
    warnings: tuple[str, ...]


#: Warning where a single output looks like a probability.
LOGITS = (
    "All outputs lie between 0 and 1 as probabilities do, but are read as logits, positive for "
    "class 1: let the model end in torch.sigmoid, or return the logit."
)


@dataclass(frozen=True, eq=False)
class PartialErrors:
    """Errors so far, task by task."""

    parts: Sequence[TaskErrors]
    known: int
    folds: int


@dataclass(eq=False)
class QueryTask:
    """Queries with their training set, and the results for them so far."""

    x: Tensor
    y: Tensor
    queries: Tensor
    right: Tensor
    locations: Locations | None = None
    predictions: Predictions | None = None
    outputs: dict[int, Tensor] = field(default_factory=dict)


class Evaluation:
    """A function with its baselines, and how errors are computed."""

    def __init__(
        self,
        probed: Probe,
        y: Tensor,
        domain: Domain | None,
        baselines: tuple[str, ...],
        *,
        seed: int,
        memory: int,
    ) -> None:
        self._probed, self._domain, self.baselines = probed, domain, baselines
        self.seed, self._rows = seed, probed.rows(memory)
        self.classes = not y.is_floating_point()
        width = 1 if self.classes else y.numel() // len(y)
        if not self.classes and width != probed.outputs:
            raise ValueError(
                f"labels must have as many numbers as the model has outputs, {probed.outputs}, "
                f"found {width}: reshape y."
            )
        self._count = max(2, probed.outputs) if self.classes else width

    def at_queries(
        self, x: Tensor, y: Tensor, queries: Tensor, right: Tensor
    ) -> Iterator[PartialErrors]:
        """Yield the errors at ever more of the queries."""
        yield from self.steps([QueryTask(x, y, queries, right)], known=len(x), folds=0)

    def cross_validated(
        self, x: Tensor, y: Tensor, points: int, folds: int
    ) -> Iterator[PartialErrors]:
        """Yield the errors of cross-validation: each fold is queried given the others."""
        if len(x) < max(folds, 4):
            raise ValueError(
                f"data without queries must have at least {max(folds, 4)} points for {folds} "
                f"folds, found {len(x)}: pass more data, or queries."
            )
        if points < max(folds, 4):
            raise ValueError(
                f"points must be at least {max(folds, 4)} for {folds} folds, found {points}: raise "
                "points, or pass queries."
            )
        x, y = drawn(x, y, points, seed=self.seed)
        order = torch.randperm(len(x), generator=generator(self.seed)).to(x.device)
        tasks = []
        for fold in order.tensor_split(folds):
            rest = torch.ones(len(x), dtype=torch.bool, device=x.device)
            rest[fold] = False
            tasks.append(QueryTask(x[rest], y[rest], x[fold], y[fold]))
        yield from self.steps(tasks, known=len(x) - len(x) // folds, folds=folds)

    def steps(
        self, tasks: Sequence[QueryTask], *, known: int, folds: int
    ) -> Iterator[PartialErrors]:
        """Yield a result for ever more queries; once if the caller cannot stop.

        The network is evaluated at a few queries first, then the baselines at all, then the network
        at the rest: after each batch and each step of a baseline the best result is yielded again.
        """
        total = sum(len(task.queries) for task in tasks)
        order = torch.arange(total)
        if stoppable():
            order = torch.randperm(total, generator=generator(self.seed))
        best: PartialErrors | None = None
        done = 0
        for target in _counts(total):
            for _ in self._evaluate(tasks, order[done:target]):
                yield from [] if best is None else [best]
            done = target
            if best is None:
                for task in tasks:
                    for _ in self._locate(task):
                        pass
                if stoppable() and self.baselines:
                    best = PartialErrors(
                        [self._task_errors(t, baselines=False) for t in tasks], known, folds
                    )
                    yield best
                for task in tasks:
                    for _ in self._predict_baselines(task):
                        yield from [] if best is None else [best]
            best = PartialErrors([self._task_errors(task) for task in tasks], known, folds)
            yield best

    def _evaluate(self, tasks: Sequence[QueryTask], chosen: Int64[Tensor, " k"]) -> Iterator[None]:
        """Evaluate the network at queries, by their indices across all tasks."""
        ends = list(accumulate((len(task.queries) for task in tasks), initial=0))
        for task, first, last in zip(tasks, ends, ends[1:], strict=False):
            indices = (chosen[(chosen >= first) & (chosen < last)] - first).sort().values
            for batch in torch.split(indices, self._rows) if len(indices) else ():
                outputs = checks.call(self._probed.f, task.queries[batch.to(task.queries.device)])
                rows = outputs.detach().double().reshape(len(batch), -1).cpu()
                task.outputs.update(zip(batch.tolist(), rows, strict=True))
                yield

    def _locate(self, task: QueryTask) -> Iterator[None]:
        """Compute distances and zones of the queries of a task."""
        domain = None if self._domain is None else self._in_domain(task.queries)
        task.locations = yield from locations(self._known(task), _flat(task.queries), domain)

    def _predict_baselines(self, task: QueryTask) -> Iterator[None]:
        """Compute the predictions of the baselines for a task."""
        known, queries = self._known(task), _flat(task.queries)
        task.predictions = yield from predictions(known, queries, self.baselines, self.seed)

    def _known(self, task: QueryTask) -> tuple[Float64[Tensor, "n d"], Float64[Tensor, "n c"]]:
        return _flat(task.x), self._columns(task.y)

    def _task_errors(self, task: QueryTask, *, baselines: bool = True) -> TaskErrors:
        """Return distances, zones and errors of the queries evaluated so far."""
        indices = sorted(task.outputs)
        chosen = torch.tensor(indices, dtype=torch.long)
        evaluated, right = (
            tensor[chosen.to(tensor.device)] for tensor in (task.queries, task.right)
        )
        assert task.locations is not None
        predictions_of_baselines = task.predictions if baselines else None
        warnings: tuple[str, ...] = ()
        answers = []
        if indices:
            scores, warnings = self._scores(
                torch.stack([task.outputs[n] for n in indices]), evaluated, right
            )
            answers = [
                scores,
                *(
                    values[chosen]
                    for values in (
                        predictions_of_baselines.values if predictions_of_baselines else ()
                    )
                ),
            ]
        errors = [self._errors(answer, right) for answer in answers]
        width = 1 + (len(self.baselines) if predictions_of_baselines else 0)
        return TaskErrors(
            distances=task.locations.distances[chosen],
            zones=task.locations.zones[chosen],
            errors=torch.stack(errors, dim=1) if errors else torch.zeros(0, width).double(),
            reach=task.locations.reach if self._domain is None else None,
            flat=task.locations.flat,
            warnings=(
                *(predictions_of_baselines.warnings if predictions_of_baselines else ()),
                *warnings,
            ),
        )

    def _scores(
        self, outputs: Float64[Tensor, "m c"], queries: Tensor, right: Tensor
    ) -> tuple[Float64[Tensor, "m c"], tuple[str, ...]]:
        """Return scores, of which a single one is positive for class 1, and warnings."""
        if not self.classes or self._probed.outputs > 1:
            return outputs, ()
        if ends_in_probability(self._probed.f, queries):
            return outputs - 0.5, ()
        return outputs, (LOGITS,) if lie_between_0_and_1(outputs, right) else ()

    def _columns(self, y: Tensor) -> Float64[Tensor, "n c"]:
        if self.classes:
            return torch.nn.functional.one_hot(y.long().cpu(), self._count).double()
        return y.detach().double().reshape(len(y), -1).cpu()

    def _errors(self, prediction: Tensor, right: Tensor) -> Float64[Tensor, " m"]:
        if not self.classes:
            return (prediction - self._columns(right)).square().mean(1)
        is_scalar = prediction.shape[1] == 1
        chosen = (prediction[:, 0] > 0).long() if is_scalar else prediction.argmax(1)
        return (chosen != right.long().cpu()).double()

    def _in_domain(self, queries: Tensor) -> Tensor:
        inside = self._domain(queries) if self._domain is not None else queries
        if inside.dtype != torch.bool or inside.shape != (len(queries),):
            raise ValueError(
                f"domain must return True or False for each of the {len(queries)} points, found "
                f"{inside.dtype} of shape {tuple(inside.shape)}: return e.g. x.norm(dim=1) < 1."
            )
        return inside.cpu()


def _counts(total: int) -> list[int]:
    """Return the numbers of queries of the results: few at first, if the caller may stop."""
    if not stoppable():
        return [total]
    coarse = {max(FIRST, math.ceil(total / part)) for part in (64, 16, 4)}
    return [*sorted(count for count in coarse if count < total), total]


def _flat(x: Tensor) -> Float64[Tensor, "n d"]:
    return x.detach().double().flatten(1).cpu()


def drawn(x: Tensor, y: Tensor, most: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Draw points with their labels, without replacement."""
    chosen = draw_rows(torch.arange(len(x))[:, None].float(), most, seed=seed)[:, 0].long()
    return x[chosen.to(x.device)], y[chosen.to(y.device)]
