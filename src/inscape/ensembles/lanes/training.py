"""Training in lanes: groups of networks share the threads, waiting ones replace finished ones."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import numpy as np
import torch
from torch import Tensor, nn

from inscape.ensembles.lanes.group import LaneGroup, Run
from inscape.ensembles.lanes.state import DIVERGED, REACHED
from inscape.ensembles.lanes.support import shape_of
from inscape.ensembles.member import LostMembersError, Member
from inscape.runtime.progress import Bar
from inscape.runtime.progress import progress as progress_bar
from inscape.training.checks import check_end
from inscape.training.options import FitOptions
from inscape.training.update import DivergedError, Update, batches_per_epoch


def train(
    models: Sequence[nn.Module],
    xs: Sequence[Tensor],
    ys: Sequence[Tensor],
    options: FitOptions,
    seeds: Sequence[int],
) -> Iterator[Member]:
    """Train networks of one shape in lanes, and yield each when it leaves.

    The weights of a network are written to its module when it is done; the module of one that
    diverges is not changed, and after all others :class:`LostMembersError` says what happened.
    """
    runs = [
        Run(index=index, model=model, x=x.detach(), y=y.detach(), seed=seed)
        for index, (model, x, y, seed) in enumerate(zip(models, xs, ys, seeds, strict=True))
    ]
    lost: dict[int, DivergedError] = {}
    total = sum(options.epochs * _per_epoch(run, options) for run in runs)
    label = f"training {len(models)} networks"
    with progress_bar(total, label=label, quiet=options.quiet) as bar:
        for run in _finished(runs, options, bar):
            try:
                member = _member(run, options)
            except DivergedError as error:
                lost[run.index] = error
            else:
                yield member
    if lost:
        raise LostMembersError(lost)


def _finished(runs: Sequence[Run], options: FitOptions, bar: Bar) -> Iterator[Run]:
    """Yield the runs as they end, while their group goes on training."""
    waiting: dict[int, deque[Run]] = {}
    for run in sorted(runs, key=lambda run: -len(run.x)):  # long turns first, to end together
        waiting.setdefault(len(run.x), deque()).append(run)
    shape, dtype = shape_of(runs[0].model), runs[0].x.dtype
    with Team(torch.get_num_threads()) as team:
        while True:
            while team.has_room and (points := _next(waiting)):
                group = LaneGroup(shape, options, points, dtype)
                _fill(group, waiting)
                team.start(group)
            if not team.groups:
                return
            group = team.ended()
            bar.advance(group.steps_made)
            done = list(group.finished())
            for guest in group.guests:
                group.absorb(guest)
            group.guests = []
            _fill(group, waiting)
            if group.live and not _joined(group, team.groups, waiting):
                team.start(group)
            for run in done:
                bar.advance((options.epochs - run.epochs) * _per_epoch(run, options))
                yield run


class Team:
    """Threads that train one group each; with one thread, the calling thread does."""

    def __init__(self, threads: int) -> None:
        self.groups: list[LaneGroup] = []
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._turns: dict[Future[None], LaneGroup] = {}

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    @property
    def has_room(self) -> bool:
        """Whether a thread is idle."""
        return len(self.groups) < self._threads

    def start(self, group: LaneGroup) -> None:
        """Train a group for a turn."""
        self.groups.append(group)
        if self._pool:
            self._turns[self._pool.submit(group.advance)] = group

    def ended(self) -> LaneGroup:
        """Wait for a turn to end, and return its group."""
        if not self._pool:
            group = self.groups.pop()
            group.advance()
            return group
        turn = next(iter(wait(self._turns, return_when=FIRST_COMPLETED).done))
        group = self._turns.pop(turn)
        self.groups.remove(group)
        turn.result()
        return group


def _next(waiting: dict[int, deque[Run]]) -> int | None:
    """Return the number of points of the next runs that wait."""
    return next((points for points, runs in waiting.items() if runs), None)


def _fill(group: LaneGroup, waiting: dict[int, deque[Run]]) -> None:
    queue = waiting[group.points]
    while queue and group.free:
        group.enter(queue.popleft())


def _joined(group: LaneGroup, others: Sequence[LaneGroup], waiting: dict[int, deque[Run]]) -> bool:
    """Merge a group with empty lanes into another one, if other runs wait for its thread."""
    if not group.free or not _next(waiting):
        return False
    for host in others:
        expected = host.live + sum(guest.live for guest in host.guests) + group.live
        if host.points == group.points and expected <= host.live + host.free:
            host.guests.append(group)
            return True
    return False


def _member(run: Run, options: FitOptions) -> Member:
    """Write the weights into the module; raise an error if they are not finite, as ``fit`` does."""
    run.model.zero_grad(set_to_none=True)
    run.model.eval()
    steps = run.epochs * _per_epoch(run, options)
    if run.status == DIVERGED:
        raise _update(run, options).diverged(run.diverged_at, f"loss {run.loss:.3g}")
    with torch.no_grad():
        weights = torch.from_numpy(run.weights)
        for parameter in run.model.parameters():
            own, weights = weights.tensor_split([parameter.numel()])
            parameter.copy_(own.view_as(parameter))
    if not np.isfinite(run.weights).all():
        check_end(_update(run, options), steps - 1)
    return Member(
        index=run.index,
        model=run.model,
        loss=run.loss,
        epochs=run.epochs,
        steps=steps,
        stopped="loss" if run.status == REACHED else "epochs",
    )


def _update(run: Run, options: FitOptions) -> Update:
    """Return the update of ``fit``, which words the error of a divergence."""
    return Update.of(run.model, options, seed=run.seed, points=len(run.x))


def _per_epoch(run: Run, options: FitOptions) -> int:
    return batches_per_epoch(len(run.x), options.batch)
