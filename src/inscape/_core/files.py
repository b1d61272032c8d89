"""Files that appear whole or not at all."""

import os
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
