"""The line in which a benchmark reports a bar, and the clock that all benchmarks share.

    from bars import bar, threads, times

    with threads(1):                                     # torch and BLAS, both sides alike
        taken = times(peer=recipe, ours=instrument_call)     # interleaved, wall time
    bar("tangent_kernel, ResNet-8, N=32", taken["peer"] / taken["ours"], at_least=1.3)

prints ``bar | tangent_kernel, ResNet-8, N=32 | 1.52 | at least 1.3 | met``. A ratio is the peer's
time divided by ours (above 1: ours is faster); a limit in seconds or megabytes has its unit.
``benchmarks/run.py`` collects these lines into ``benchmarks/RESULTS.md``. A benchmark may print
anything else beside them. ``at_least=None, at_most=None`` reports a value that has no bar.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PREFIX = "bar | "


def bar(
    name: str,
    value: float,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    unit: str = "x",
) -> bool:
    """Print the value reached and its bar in one line; return whether the bar is met."""
    if "|" in name:
        raise ValueError(f"a name without '|' was expected, got {name!r}")
    met = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
    limits = [("at least", at_least), ("at most", at_most)]
    wanted = " and ".join(
        f"{words} {limit:g} {unit}".strip() for words, limit in limits if limit is not None
    )
    verdict = ("met" if met else "MISSED") if wanted else "-"
    reached = f"{value:.3g} {unit}".strip()
    print(f"{PREFIX}{name} | {reached} | {wanted or '-'} | {verdict}", flush=True)
    return met


def times(rounds: int = 5, warm: int = 1, **works: Callable[[], object]) -> dict[str, float]:
    """Return the median wall time of each work in seconds, all run in turn in every round.

    Every second round runs them in the opposite order. ``warm`` rounds are run first, untimed.
    """
    taken: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(-warm, rounds):
        for name in works if turn % 2 == 0 else reversed(works):
            begin = time.perf_counter()
            works[name]()
            if turn >= 0:
                taken[name].append(time.perf_counter() - begin)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Give torch, BLAS and OpenMP ``count`` threads each; import what loads them before."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(limits=count):
            yield
    finally:
        torch.set_num_threads(before)
