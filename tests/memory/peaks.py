"""Print the peak memory of calls under a small and a large budget, each as one line of JSON.

A process of its own: what other tests have left on the heap would hide what a call takes.
"""

import argparse
import ctypes
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inscape._core import BudgetError
from memory.memory_cases import BUDGET, CASES, FITTING, LARGE


def status(name: str) -> int:
    """Return a number of bytes that Linux keeps of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024


def peak(call: Callable[[], Any]) -> tuple[int, int]:
    """Return how far the memory of the process rises during a call, and what the call returns."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    try:
        result = call()
    except BudgetError:  # a call may also say beforehand that the budget does not do
        result = None
    return status("VmHWM") - before, held(result)


def least_peak(call: Callable[[], Any], repeats: int, enough: int) -> tuple[int, int]:
    """Return the least of several peaks; one that is low enough ends the calls."""
    peaks = []
    for _ in range(repeats):
        peaks.append(peak(call))
        if peaks[-1][0] <= enough + peaks[-1][1]:
            break
    return min(peaks)


def held(result: Any) -> int:
    """Return the bytes of all tensors of a result."""
    if isinstance(result, Tensor):
        return result.numel() * result.element_size()
    values = result if isinstance(result, tuple) else vars(result).values() if result else ()
    return sum(held(value) for value in values if isinstance(value, Tensor))


def main() -> None:
    """Measure the calls that are named, or all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=[*CASES, *FITTING])
    parser.add_argument("--repeats", type=int, default=1, help="the least of several peaks is told")
    parser.add_argument("--enough", type=int, default=0, help="a peak of so many bytes is told")
    parser.add_argument("--small-only", action="store_true", help="leave the large budget")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.names:
        call = {**CASES, **FITTING}[name]()
        peak(lambda call=call: call(BUDGET))  # whatever is loaded or compiled at the first call
        small = least_peak(lambda call=call: call(BUDGET), options.repeats, options.enough)
        large = (0, 0) if options.small_only else peak(lambda call=call: call(LARGE))
        row = {"name": name, "small": small[0], "large": large[0], "result": small[1]}
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
