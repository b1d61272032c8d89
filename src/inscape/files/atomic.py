"""Files that appear whole or not at all, and paths that name one."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from inscape.files.leftovers import noted, temporary_path


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Open a file under a temporary name beside ``path``, and rename it when the block is done.

    A reader never sees half a file, and an error, a full disk or a kill leaves what was there
    before. What a kill leaves of the temporary file is deleted by a later process.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} must be a folder to save {path.name}: create it.")
    temporary = temporary_path(path)
    with noted(temporary):
        try:
            with temporary.open("xb") as file:
                yield file
            temporary.replace(path)
        except OSError as error:
            if error.errno is None or error.filename not in (None, os.fspath(temporary)):
                raise
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def write(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    with written(path) as file:
        file.write(content)


def write_pair(
    path: Path, text: bytes, npz: tuple[Path, bytes] | None, former: Path | None = None
) -> None:
    """Write an npz and then the text that names it; without the text there is no npz either.

    Args:
        path: File of the text, by whose renaming the new pair takes the place of the former.
        text: Holds the name of the npz.
        npz: Path and content; the name says what is in it, so that no two contents share it. None
            where the text needs no npz.
        former: The npz that the former text names; deleted once that text is replaced.
    """
    with ExitStack() as notes:
        for file in (former, npz and npz[0]):
            if file is not None:
                notes.enter_context(noted(file, unless_named_in=path))
        existed = npz is None or npz[0].exists()
        try:
            if npz is not None:
                write(*npz)
            write(path, text)
        except BaseException:
            if npz is not None and not existed:
                npz[0].unlink(missing_ok=True)
            raise
        if former is not None and (npz is None or former != npz[0]):
            with contextlib.suppress(OSError):
                former.unlink(missing_ok=True)


def check_writable(folder: Path, *, advice: str = "choose another folder.") -> None:
    """Refuse a folder that cannot be written or made, before any work; leave nothing behind."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        cause = (error.strerror or str(error)).lower()
        raise OSError(f"cannot write into the folder {nearest}: {cause}: {advice}") from error


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
