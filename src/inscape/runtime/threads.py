"""Threads: one pool works at a time, on as many threads as help.

PyTorch and NumPy bring a pool of threads each. Between two calls the threads of one keep their
cores busy waiting for more, while those of the other wait for the cores: a singular value
decomposition of 2000 x 784 took 43 s on two threads, and 0.4 s on one. The same happens where other
processes want the cores: then one thread is quicker than two.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from inscape.runtime.deadline import now

#: More threads must take less than this fraction of the time of one.
WORTH = 0.9
#: Rounds of one call on one thread and one on all, and the seconds after which they end.
ROUNDS, ENOUGH = 6, 0.5


@contextmanager
def one_pool() -> Iterator[None]:
    """Leave the threads to PyTorch while the block runs: NumPy and SciPy compute on one."""
    import scipy.linalg  # its library must be loaded to be limited  # noqa: F401
    from threadpoolctl import ThreadpoolController

    with ThreadpoolController().select(internal_api="openblas").limit(limits=1):
        yield


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    """Let PyTorch compute on so many threads while the block runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def quicker_threads(run: Callable[[], object]) -> int:
    """Return on how many of PyTorch's threads a call is quicker now: on one, or on all."""
    most = torch.get_num_threads()
    if most == 1:
        return 1
    took, begun = {1: 0.0, most: 0.0}, now()
    for _ in range(ROUNDS):
        for count in took:
            with on_threads(count):
                start = now()
                run()
                took[count] += now() - start
        if now() - begun > ENOUGH:
            break
    return most if took[most] < WORTH * took[1] else 1
