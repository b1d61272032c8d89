"""How long the swaps of Boolean functions take: all classes of five inputs, and six inputs.

    python benchmarks/boolean.py             # all cores; about a minute

Compilation (or reading what was compiled), the list of orders, the list of classes and the search
are timed apart, by the wall clock and by the time of the processor: where others use the machine,
the second is the one to look at.

Bars: all 616,126 classes of five inputs in at most 5 minutes on two cores, warm; a function of six
inputs in a second (median of 20 random ones). No other program is run beside it: a C++ program is
known to need 47 seconds of processor time for the classes of five inputs after enumeration, on
another machine; the dissertation gave up.
"""

import argparse
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from bars import bar

from inscape.boolean import changes, npn, orders, random, swaps, swaps_many, table

FUNCTIONS = 20


@contextmanager
def timed(what: str) -> Iterator[None]:
    wall, processor = time.perf_counter(), time.process_time()
    yield
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"  {what:42} {wall:8.2f} s   processor {processor:8.2f} s")


def five(threads: int, listed: bool) -> None:
    """Search all classes of five inputs."""
    with timed("compilation, or reading what was compiled"):
        swaps_many(npn.classes(3), 3)
        npn.listed(3)
    with timed("enumeration of the 516 orders"):
        orders.trie(5)
    if listed:
        with timed("enumeration of the classes, anew"):
            npn.listed(5)
    numbers = npn.classes(5)
    begin = time.perf_counter()
    with timed(f"search of {len(numbers):,} classes"):
        found = swaps_many(numbers, 5, threads=threads)
    taken = time.perf_counter() - begin
    for at in np.random.default_rng(0).integers(len(numbers), size=1000):
        assert changes(table(int(numbers[at]), 5), found.weights[at]) == found.swaps[at]
    print(f"  classes with 0, 1, ... swaps: {np.bincount(found.swaps).tolist()}")
    bar(f"swaps of all classes of five inputs, {threads} threads", taken, at_most=300, unit="s")


def six() -> None:
    """Search some random functions of six inputs, one after the other."""
    with timed("enumeration of the 124,187 orders"):
        orders.trie(6)
    times, values = [], []
    for seed in range(FUNCTIONS):
        begin = time.process_time()
        values.append(swaps(random(6, seed)).swaps)
        times.append(time.process_time() - begin)
    median = statistics.median(times)
    print(f"  {FUNCTIONS} functions with {min(values)} to {max(values)} swaps")
    print(f"  median {1e3 * median:.1f} ms, most {1e3 * max(times):.1f} ms of the processor")
    bar("swaps of a random function of six inputs, median", median, at_most=1, unit="s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--anew", action="store_true", help="list the classes anew, as well")
    options = parser.parse_args()
    print(f"five inputs, {options.threads} thread(s)")
    five(options.threads, options.anew)
    print("six inputs, one thread")
    six()
