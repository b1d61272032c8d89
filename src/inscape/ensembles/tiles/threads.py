"""Threads that train tiny networks, each a group of lanes, from one queue."""

import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import torch
from torch import Tensor

from inscape.ensembles.tiles.arguments import KernelArguments
from inscape.ensembles.tiles.kernel import run
from inscape.ensembles.tiles.state import (
    EPOCHS_DONE,
    Data,
    Outcome,
    TileRules,
    Work,
    blank_outcome,
    blank_work,
    data_of,
    rules_of,
)
from inscape.runtime.progress import progress

#: Seconds between two returns of the kernel to Python.
TURN = 0.1


class Worker:
    """A group of lanes, which one thread at a time trains for a turn."""

    def __init__(
        self, arguments: KernelArguments, data: Data, rules: TileRules, outcome: Outcome
    ) -> None:
        self._work: Work = blank_work(arguments)
        self._shared = data, rules, outcome
        self._epochs = 1

    def turn(self) -> bool:
        """Train for about ``TURN`` seconds; return whether networks are left."""
        start = time.perf_counter()
        live = run(self._work, *self._shared, self._epochs)
        elapsed = time.perf_counter() - start
        self._epochs = max(1, min(int(self._epochs * TURN / elapsed), 8 * self._epochs))
        return live > 0

    def epochs_done(self) -> int:
        """Return the number of epochs since the last call."""
        count = int(self._work.counts[EPOCHS_DONE])
        self._work.counts[EPOCHS_DONE] = 0
        return count


def train(arguments: KernelArguments, *, quiet: bool | None) -> dict[str, Tensor]:
    """Train all members, and return them as tensors."""
    shared = data_of(arguments), rules_of(arguments), blank_outcome(arguments)
    workers = [Worker(arguments, *shared) for _ in range(_threads(arguments))]
    label = f"training {len(arguments.seeds)} tiny networks"
    with (
        progress(int(arguments.epochs.sum()), label=label, quiet=quiet) as bar,
        ThreadPoolExecutor(len(workers)) as pool,
    ):
        turns = {pool.submit(worker.turn): worker for worker in workers}
        while turns:
            for turn in wait(turns, return_when=FIRST_COMPLETED).done:
                worker = turns.pop(turn)
                more = turn.result()
                bar.advance(worker.epochs_done())
                if more:
                    turns[pool.submit(worker.turn)] = worker
    return {name: torch.from_numpy(array) for name, array in shared[2]._asdict().items()}


def _threads(arguments: KernelArguments) -> int:
    lanes = 16 if arguments.x.itemsize == 4 else 8
    return min(arguments.threads, -(-len(arguments.seeds) // lanes))
