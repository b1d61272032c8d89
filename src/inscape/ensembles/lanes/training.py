"""Training in lanes: groups take turns on all threads; who is done leaves, who waits enters."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import numpy as np
import torch
from torch import Tensor, nn

from inscape._core.progress import Bar
from inscape._core.progress import progress as progress_bar
from inscape.ensembles.lanes.group import Group, Run
from inscape.ensembles.lanes.state import DIVERGED, REACHED
from inscape.ensembles.lanes.support import shape_of
from inscape.ensembles.member import LostMembersError, Member, Orders
from inscape.training.checks import check_end
from inscape.training.losses import loss_function
from inscape.training.optimizers import build_optimizer
from inscape.training.update import DivergedError, Update, batches_per_epoch


def train(
    models: Sequence[nn.Module],
    xs: Sequence[Tensor],
    ys: Sequence[Tensor],
    settings: Orders,
    seeds: Sequence[int],
) -> Iterator[Member]:
    """Train networks of one shape in lanes, and yield each when it leaves.

    The weights of a network are written when it leaves; until then its module is as it was. One
    that diverges leaves too, its module as it was; after all others :class:`LostMembersError` tells
    what happened to it.
    """
    runs = [
        Run(index=index, model=model, x=x.detach(), y=y.detach(), seed=seed)
        for index, (model, x, y, seed) in enumerate(zip(models, xs, ys, seeds, strict=True))
    ]
    lost: dict[int, DivergedError] = {}
    total = sum(settings.epochs * _per_epoch(run, settings) for run in runs)
    label = f"training {len(models)} networks"
    with progress_bar(total, label=label, quiet=settings.quiet) as bar:
        for run in _finished(runs, settings, bar):
            try:
                member = _member(run, settings)
            except DivergedError as error:
                lost[run.index] = error
            else:
                yield member
    if lost:
        raise LostMembersError(lost)


def _finished(runs: Sequence[Run], settings: Orders, bar: Bar) -> Iterator[Run]:
    """Yield the runs as they end, the next turn of their group being under way where it can."""
    waiting: dict[int, deque[Run]] = {}
    for run in sorted(runs, key=lambda run: -len(run.x)):  # long turns first, to end together
        waiting.setdefault(len(run.x), deque()).append(run)
    shape, dtype = shape_of(runs[0].model), runs[0].x.dtype
    with Team(torch.get_num_threads()) as team:
        while True:
            while team.has_room and (points := _next(waiting)):
                group = Group(shape, settings, points, dtype)
                _fill(group, waiting)
                team.start(group)
            if not team.groups:
                return
            group = team.ended()
            bar.advance(group.walked)
            done = list(group.finished())
            for guest in group.guests:
                group.absorb(guest)
            group.guests = []
            _fill(group, waiting)
            if group.live and not _joined(group, team.groups, waiting):
                team.start(group)
            for run in done:
                bar.advance((settings.epochs - run.epochs) * _per_epoch(run, settings))
                yield run


class Team:
    """Threads that run one group each; a team of one works in the thread that waits for it."""

    def __init__(self, threads: int) -> None:
        self.groups: list[Group] = []
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._turns: dict[Future[None], Group] = {}

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    @property
    def has_room(self) -> bool:
        """Whether a thread is idle."""
        return len(self.groups) < self._threads

    def start(self, group: Group) -> None:
        """Let a group have its turn."""
        self.groups.append(group)
        if self._pool:
            self._turns[self._pool.submit(group.advance)] = group

    def ended(self) -> Group:
        """Wait for a turn to end, and return the group whose it was."""
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
    """Return the number of points of those whose turn it is."""
    return next((points for points, runs in waiting.items() if runs), None)


def _fill(group: Group, waiting: dict[int, deque[Run]]) -> None:
    queue = waiting[group.points]
    while queue and group.free:
        group.enter(queue.popleft())


def _joined(group: Group, others: Sequence[Group], waiting: dict[int, deque[Run]]) -> bool:
    """Let a group with empty lanes join another one, if its thread has other work to do."""
    if not group.free or not _next(waiting):
        return False
    for host in others:
        expected = host.live + sum(guest.live for guest in host.guests) + group.live
        if host.points == group.points and expected <= host.live + host.free:
            host.guests.append(group)
            return True
    return False


def _member(run: Run, settings: Orders) -> Member:
    """Write the weights into the module; refuse those that are not finite, as ``fit`` does."""
    run.model.zero_grad(set_to_none=True)
    run.model.eval()
    steps = run.epochs * _per_epoch(run, settings)
    if run.verdict == DIVERGED:
        raise _update(run, settings).diverged(run.diverged_at, f"loss {run.loss:.3g}")
    with torch.no_grad():
        weights = torch.from_numpy(run.weights)
        for parameter in run.model.parameters():
            own, weights = weights.tensor_split([parameter.numel()])
            parameter.copy_(own.view_as(parameter))
    if not np.isfinite(run.weights).all():
        check_end(_update(run, settings), steps - 1)
    return Member(
        index=run.index,
        model=run.model,
        loss=run.loss,
        epochs=run.epochs,
        steps=steps,
        stopped="loss" if run.verdict == REACHED else "epochs",
    )


def _update(run: Run, settings: Orders) -> Update:
    """Return the update that ``fit`` would have made, which knows what to say of a divergence."""
    return Update(
        run.model,
        loss_function(settings.loss),
        build_optimizer(settings.optimizer, run.model, settings),
        (),
        seed=run.seed,
        per_epoch=_per_epoch(run, settings),
    )


def _per_epoch(run: Run, settings: Orders) -> int:
    return batches_per_epoch(len(run.x), settings.batch)
