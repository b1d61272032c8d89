"""Threads that train tiny networks, each a group of lanes, all from one queue."""

import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import torch
from torch import Tensor

from inscape._core.progress import progress
from inscape.ensembles.tiles.kernel import run
from inscape.ensembles.tiles.options import Task
from inscape.ensembles.tiles.state import (
    WALKED,
    Data,
    Found,
    Rules,
    Work,
    blank_found,
    blank_work,
    data_of,
    rules_of,
)

#: Seconds that the kernel runs before Python looks up again.
TURN = 0.1


class Worker:
    """One group, which has its turns in one thread at a time."""

    def __init__(self, task: Task, data: Data, rules: Rules, found: Found) -> None:
        self._work: Work = blank_work(task)
        self._shared = data, rules, found
        self._epochs = 1

    def turn(self) -> bool:
        """Train for about a turn; return whether there is more to do."""
        start = time.perf_counter()
        live = run(self._work, *self._shared, self._epochs)
        taken = time.perf_counter() - start
        self._epochs = max(1, min(int(self._epochs * TURN / taken), 8 * self._epochs))
        return live > 0

    def walked(self) -> int:
        """Return how many epochs were done since this was asked."""
        count = int(self._work.counts[WALKED])
        self._work.counts[WALKED] = 0
        return count


def train(task: Task, *, quiet: bool | None) -> dict[str, Tensor]:
    """Train all members, and return what became of them."""
    shared = data_of(task), rules_of(task), blank_found(task)
    workers = [Worker(task, *shared) for _ in range(_threads(task))]
    label = f"training {len(task.seeds)} tiny networks"
    with (
        progress(int(task.epochs.sum()), label=label, quiet=quiet) as bar,
        ThreadPoolExecutor(len(workers)) as pool,
    ):
        turns = {pool.submit(worker.turn): worker for worker in workers}
        while turns:
            for turn in wait(turns, return_when=FIRST_COMPLETED).done:
                worker = turns.pop(turn)
                more = turn.result()
                bar.advance(worker.walked())
                if more:
                    turns[pool.submit(worker.turn)] = worker
    return {name: torch.from_numpy(array) for name, array in shared[2]._asdict().items()}


def _threads(task: Task) -> int:
    lanes = 16 if task.x.itemsize == 4 else 8
    return min(task.threads, -(-len(task.seeds) // lanes))
