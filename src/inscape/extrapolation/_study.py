"""A function asked about queries, beside its peers: ever more of them, in steps."""

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
from inscape.extrapolation._surroundings import Places, Predictions, places, predictions
from inscape.functional.final_activation import ends_in_probability, lie_between_0_and_1
from inscape.functional.jacobians import Probe

Domain = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Part:
    """Some queries to some data."""

    distances: Float64[Tensor, " m"]
    zones: Int64[Tensor, " m"]
    errors: Float64[Tensor, "m k"]
    reach: float | None
    flat: bool
    warnings: tuple[str, ...]


#: What is said where a single output looks like a probability.
LOGITS = (
    "All outputs lie between 0 and 1 as probabilities do, but are read as logits, positive for "
    "class 1: let the model end in torch.sigmoid, or return the logit."
)


@dataclass(frozen=True, eq=False)
class Answer:
    """What was found so far, task by task."""

    parts: Sequence[Part]
    known: int
    folds: int


@dataclass(eq=False)
class Task:
    """Queries to some data: what is known of them so far, and the outputs at some of them."""

    x: Tensor
    y: Tensor
    queries: Tensor
    right: Tensor
    places: Places | None = None
    said: Predictions | None = None
    outputs: dict[int, Tensor] = field(default_factory=dict)


class Study:
    """A function with its peers, and the way errors are counted."""

    def __init__(
        self,
        found: Probe,
        y: Tensor,
        domain: Domain | None,
        peers: tuple[str, ...],
        *,
        seed: int,
        memory: int,
    ) -> None:
        self._found, self._domain, self.peers = found, domain, peers
        self.seed, self._rows = seed, found.rows(memory)
        self.classes = not y.is_floating_point()
        width = 1 if self.classes else y.numel() // len(y)
        if not self.classes and width != found.outputs:
            raise ValueError(
                f"labels must have as many numbers as the model has outputs, {found.outputs}, "
                f"found {width}: reshape y."
            )
        self._count = max(2, found.outputs) if self.classes else width

    def asked(self, x: Tensor, y: Tensor, queries: Tensor, right: Tensor) -> Iterator[Answer]:
        """Yield the errors at ever more of the queries that were given."""
        yield from self.steps([Task(x, y, queries, right)], known=len(x), folds=0)

    def folded(self, x: Tensor, y: Tensor, points: int, folds: int) -> Iterator[Answer]:
        """Take each fold of the data for queries to the others."""
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
            tasks.append(Task(x[rest], y[rest], x[fold], y[fold]))
        yield from self.steps(tasks, known=len(x) - len(x) // folds, folds=folds)

    def steps(self, tasks: Sequence[Task], *, known: int, folds: int) -> Iterator[Answer]:
        """Yield a result for ever more queries; once if nobody can stop on the way.

        The network answers a few queries first, then the peers answer all, then the network the
        rest: after each batch and each part of a peer's work the best result is yielded again.
        """
        total = sum(len(task.queries) for task in tasks)
        order = torch.arange(total)
        if stoppable():
            order = torch.randperm(total, generator=generator(self.seed))
        best: Answer | None = None
        done = 0
        for count in _counts(total):
            for _ in self._evaluated(tasks, order[done:count]):
                yield from [] if best is None else [best]
            done = count
            if best is None:
                for task in tasks:
                    for _ in self._placed(task):
                        pass
                if stoppable() and self.peers:
                    best = Answer([self._part(t, peers=False) for t in tasks], known, folds)
                    yield best
                for task in tasks:
                    for _ in self._said_of(task):
                        yield from [] if best is None else [best]
            best = Answer([self._part(task) for task in tasks], known, folds)
            yield best

    def _evaluated(self, tasks: Sequence[Task], numbers: Int64[Tensor, " k"]) -> Iterator[None]:
        """Evaluate the network at queries, which are numbered through all tasks."""
        ends = list(accumulate((len(task.queries) for task in tasks), initial=0))
        for task, first, last in zip(tasks, ends, ends[1:], strict=False):
            own = (numbers[(numbers >= first) & (numbers < last)] - first).sort().values
            for some in torch.split(own, self._rows) if len(own) else ():
                outputs = checks.call(self._found.f, task.queries[some.to(task.queries.device)])
                rows = outputs.detach().double().reshape(len(some), -1).cpu()
                task.outputs.update(zip(some.tolist(), rows, strict=True))
                yield

    def _placed(self, task: Task) -> Iterator[None]:
        """Find out where the queries of a task lie."""
        domain = None if self._domain is None else self._told(task.queries)
        task.places = yield from places(self._known(task), _flat(task.queries), domain)

    def _said_of(self, task: Task) -> Iterator[None]:
        """Ask the peers about the queries of a task."""
        known, queries = self._known(task), _flat(task.queries)
        task.said = yield from predictions(known, queries, self.peers, self.seed)

    def _known(self, task: Task) -> tuple[Float64[Tensor, "n d"], Float64[Tensor, "n c"]]:
        return _flat(task.x), self._columns(task.y)

    def _part(self, task: Task, *, peers: bool = True) -> Part:
        """Return distances, zones and errors of the queries that the network has answered."""
        numbers = sorted(task.outputs)
        some = torch.tensor(numbers, dtype=torch.long)
        asked, right = (given[some.to(given.device)] for given in (task.queries, task.right))
        assert task.places is not None
        said = task.said if peers else None
        warnings: tuple[str, ...] = ()
        answers = []
        if numbers:
            scores, warnings = self._read(
                torch.stack([task.outputs[n] for n in numbers]), asked, right
            )
            answers = [scores, *(values[some] for values in (said.values if said else ()))]
        errors = [self._wrong(answer, right) for answer in answers]
        width = 1 + (len(self.peers) if said else 0)
        return Part(
            distances=task.places.distances[some],
            zones=task.places.zones[some],
            errors=torch.stack(errors, dim=1) if errors else torch.zeros(0, width).double(),
            reach=task.places.reach if self._domain is None else None,
            flat=task.places.flat,
            warnings=(*(said.warnings if said else ()), *warnings),
        )

    def _read(
        self, outputs: Float64[Tensor, "m c"], queries: Tensor, right: Tensor
    ) -> tuple[Float64[Tensor, "m c"], tuple[str, ...]]:
        """Return outputs of which a single one is positive for class 1, and doubts about that."""
        if not self.classes or self._found.outputs > 1:
            return outputs, ()
        if ends_in_probability(self._found.f, queries):
            return outputs - 0.5, ()
        return outputs, (LOGITS,) if lie_between_0_and_1(outputs, right) else ()

    def _columns(self, y: Tensor) -> Float64[Tensor, "n c"]:
        if self.classes:
            return torch.nn.functional.one_hot(y.long().cpu(), self._count).double()
        return y.detach().double().reshape(len(y), -1).cpu()

    def _wrong(self, prediction: Tensor, right: Tensor) -> Float64[Tensor, " m"]:
        if not self.classes:
            return (prediction - self._columns(right)).square().mean(1)
        one = prediction.shape[1] == 1
        chosen = (prediction[:, 0] > 0).long() if one else prediction.argmax(1)
        return (chosen != right.long().cpu()).double()

    def _told(self, queries: Tensor) -> Tensor:
        said = self._domain(queries) if self._domain is not None else queries
        if said.dtype != torch.bool or said.shape != (len(queries),):
            raise ValueError(
                f"domain must tell True or False for each of the {len(queries)} points, found "
                f"{said.dtype} of shape {tuple(said.shape)}: return e.g. x.norm(dim=1) < 1."
            )
        return said.cpu()


def _counts(total: int) -> list[int]:
    """Return how many queries results are for: few at first, if the caller may stop."""
    if not stoppable():
        return [total]
    few = {max(FIRST, math.ceil(total / part)) for part in (64, 16, 4)}
    return [*sorted(count for count in few if count < total), total]


def _flat(x: Tensor) -> Float64[Tensor, "n d"]:
    return x.detach().double().flatten(1).cpu()


def drawn(x: Tensor, y: Tensor, most: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Draw some points with their labels."""
    kept = draw_rows(torch.arange(len(x))[:, None].float(), most, seed=seed)[:, 0].long()
    return x[kept.to(x.device)], y[kept.to(y.device)]
