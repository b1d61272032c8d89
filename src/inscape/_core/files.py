"""Files that appear whole or not at all, and paths that name one."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Open a file under a temporary name beside ``path``, and rename it when the block is done.

    A reader never sees half a file, and an error or a kill leaves what was there before.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} must be a folder to save {path.name}: create it.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_regular(path: Path, what: str) -> None:
    """Refuse a path that is there and no file: reading a FIFO or a device may never end."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISDIR(mode):
        raise ValueError(f"{what} must be a file, found the folder {path}: name a file in it.")
    if not stat.S_ISREG(mode):
        raise ValueError(
            f"{what} must be a file, found {path}, a pipe, socket or device: copy it to a file."
        )
