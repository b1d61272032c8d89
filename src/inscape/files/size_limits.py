"""The size that a file from outside may unpack to: one limit for every reader."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from inscape.errors import DataError

#: Bytes that any file may unpack to, unless a quarter of the memory is less.
LARGEST = 2_000_000_000

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")


def memory() -> int:
    """Return the bytes that this process may have: the machine's, its container's or its own."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no such question on this system
        total = 4 * LARGEST
    with suppress(OSError, ValueError):
        total = min(total, int(_CONTROL_GROUP.read_text()))  # "max" where there is no limit
    with suppress(ImportError, OSError):
        import resource  # not on Windows

        own, _ = resource.getrlimit(resource.RLIMIT_AS)
        total = total if own == resource.RLIM_INFINITY else min(total, own)
    return total


def size_limit(max_size: int | None = None) -> int:
    """Return the bytes that a file may unpack to: 2 GB or a quarter of memory, or as given."""
    if max_size is None:
        return min(LARGEST, memory() // 4)
    if type(max_size) is not int or max_size < 1:
        raise ValueError(
            f"max_size must be a positive integer of bytes, found {max_size!r}: write for "
            "example max_size=4_000_000_000."
        )
    return max_size


def check_size(path: object, size: int, *, max_size: int | None = None) -> None:
    """Refuse a file that would unpack to more than the limit, with both figures."""
    limit = size_limit(max_size)
    if size > limit:
        raise DataError(
            f"{path} must unpack to at most {in_bytes(limit)}, found {in_bytes(size)}: use "
            f"--max-size {_rounded_up(size)} (max_size={size}) if you trust its source and have "
            "the memory."
        )


def check_tensors(loaded: Any, path: object, *, max_size: int | None = None) -> None:
    """Refuse tensors from a file that are not dense, or larger than the limit.

    A tensor with a stride of 0 can have a size that no file could hold. The indices of a sparse
    tensor may point anywhere, and PyTorch does not compare them with its size.
    """
    import torch

    size, waiting, visited = 0, [loaded], set()
    while waiting:
        value = waiting.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        if isinstance(value, torch.Tensor):
            _check_dense(value, path)
            size += value.numel() * value.element_size()
            check_size(path, size, max_size=max_size)
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list | tuple | set):
            waiting += value


def _check_dense(tensor: Any, path: object) -> None:
    kinds = {
        "a sparse": str(tensor.layout) != "torch.strided",
        "a quantized": tensor.is_quantized,
        "a nested": tensor.is_nested,
        "an empty (meta)": tensor.is_meta,
    }
    for kind, holds in kinds.items():
        if holds:
            raise DataError(
                f"{path} must hold dense tensors of numbers, found {kind} one: convert it before "
                "it is saved."
            )


def read_size(text: str) -> int:
    """Return the bytes that a text such as ``4GB`` or ``500 MB`` stands for.

    >>> read_size("4GB"), read_size("1.5 kB"), read_size("800")
    (4000000000, 1500, 800)
    """
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]?)b?", text.strip().lower())
    size = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    if size < 1:
        raise ValueError(
            f"--max-size must be a size such as 4GB or 500MB, found {text!r}: write one."
        )
    return size


def in_bytes(size: int) -> str:
    """Return a size for people.

    >>> in_bytes(2_000_000_000), in_bytes(1_550_000), in_bytes(12)
    ('2 GB', '1.55 MB', '12 bytes')
    """
    for unit in "TGMk":
        if size >= (scale := _UNITS[unit.lower()]):
            return f"{size / scale:.3g} {unit}B"
    return f"{size} bytes"


def _rounded_up(size: int) -> str:
    return f"{-(-size // 10**9)}GB" if size > 10**9 else f"{-(-size // 10**6)}MB"
