"""Files of ``torch.save`` from outside, read without running code of theirs, sizes first."""

import warnings
from pathlib import Path
from typing import Any

from inscape.files.archives import opened_zip
from inscape.files.size_limits import check_size, check_tensors


def load_tensors(path: Path, *, max_size: int | None = None) -> Any:
    """Return what a file of ``torch.save`` holds, without running code of it.

    Its declared sizes are compared with the limit first, then those of its tensors.
    """
    import torch

    check_size(path, path.stat().st_size, max_size=max_size)
    with path.open("rb") as file:
        start = file.read(2)
    if not is_pickle(start):
        with opened_zip(path, max_size=max_size):
            pass
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the pickle's protocol, which says nothing here
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    check_tensors(loaded, path, max_size=max_size)
    return loaded


def is_pickle(start: bytes) -> bool:
    """Tell by its first bytes whether a file is a pickle: 0x80 and its protocol, 2 or later."""
    return start[:1] == b"\x80" and start[1:2] <= b"\x05"
