"""A disk that fails, or a process that dies, at one chosen write: every write can be tried in turn.

All ways in which Python writes are counted: files that are opened to be written, each write to
them and their closing, renames, links, folders, and statements of SQLite that change a database.
"""

import builtins
import errno
import io
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: What changes a disk through a function of ``os``; deleting works on a full one.
CALLS = ("replace", "rename", "mkdir", "link", "symlink", "write", "fsync", "ftruncate", "truncate")


def full_disk() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Disk:
    """Counts writes, and calls ``fault`` at the one numbered ``at`` and, if it stays, after it."""

    def __init__(self, at: int, fault: Callable[[], None] = full_disk, *, stays: bool = True):
        self.at, self.fault, self.stays = at, fault, stays
        self.writes = 0

    @property
    def failed(self) -> bool:
        return self.writes > self.at

    def write(self) -> None:
        """Count a write, or let it fail."""
        self.writes += 1
        if self.writes == self.at + 1 or (self.failed and self.stays):
            self.fault()


class File:
    """An open file whose writes and whose end are counted; a failing write leaves half."""

    def __init__(self, file: Any, disk: Disk) -> None:
        self._file, self._disk = file, disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, content: Any) -> int:
        try:
            self._disk.write()
        except OSError:
            self._file.write(content[: len(content) // 2])
            raise
        return self._file.write(content)

    def close(self) -> None:
        if not self._file.closed:
            self._file.close()
            self._disk.write()  # network disks may say only now that there is no room


class Database(sqlite3.Connection):
    """A connection whose changes are counted."""

    disk: Disk

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if not statement.startswith("SELECT"):
            _full(self.disk)
        return super().execute(statement, *values)

    def executemany(self, statement: str, *values: Any) -> sqlite3.Cursor:
        _full(self.disk)
        return super().executemany(statement, *values)

    def commit(self) -> None:
        _full(self.disk)
        super().commit()


def _full(disk: Disk) -> None:
    try:
        disk.write()
    except OSError as error:
        refused = sqlite3.OperationalError("database or disk is full")
        refused.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise refused from error


@contextmanager
def failing(disk: Disk) -> Iterator[Disk]:
    """Let all writes of the block go through ``disk``."""
    opened, connected, os_open = io.open, sqlite3.connect, os.open

    def open_file(file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+"):
            return opened(file, mode, *more, **options)
        disk.write()
        return File(opened(file, mode, *more, **options), disk)

    def open_number(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            disk.write()
        return os_open(path, flags, *more, **options)

    def connect(*place: Any, **options: Any) -> sqlite3.Connection:
        made = connected(*place, **options, factory=Database)
        made.disk = disk  # type: ignore[attr-defined]
        return made

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def replacement(*words: Any, **options: Any) -> Any:
            disk.write()
            return call(*words, **options)

        return replacement

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", open_file)
        patch.setattr(builtins, "open", open_file)
        patch.setattr(os, "open", open_number)
        patch.setattr(sqlite3, "connect", connect)
        for name in CALLS:
            patch.setattr(os, name, counted(getattr(os, name)))
        yield disk


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files under a folder, hidden ones too, with what is in them."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
