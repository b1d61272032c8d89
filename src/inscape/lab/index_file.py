"""The index of a store: one sqlite file for quick answers, which the records can always remake.

Only the process that drives a run writes it, in short transactions and without a write-ahead log,
which network disks do not bear. Where it is locked the answer comes from the records, and where it
is damaged, read-only or has other columns it is made anew: nothing depends on it.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from inscape.lab.encoding import decoded
from inscape.lab.record import CorruptError, parsed, read_file
from inscape.lab.store import Store, step_aside

NAME = "index.sqlite"
PATIENCE = 2.0  # seconds to wait for another process

#: Errors that say nothing against the file: in use by another process, full disk, disk error.
_TRANSIENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
}

T = TypeVar("T")

_TABLE = """
CREATE TABLE IF NOT EXISTS records (
    experiment TEXT, scale TEXT, key TEXT, stamp INTEGER, seconds REAL, bytes INTEGER,
    settings TEXT, PRIMARY KEY (experiment, scale, key))
"""
_COLUMNS = "experiment, scale, key, stamp, seconds, bytes, settings"


@dataclass(frozen=True)
class IndexedRecord:
    """One line of the index; ``stamp`` tells whether the file has changed since."""

    experiment: str
    scale: str
    key: str
    stamp: int
    seconds: float
    bytes: int
    text: str

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings of the cell."""
        settings: dict[str, Any] = decoded(json.loads(self.text), {})
        return settings


class Index:
    """The index of one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.path = store.root / NAME

    def entries(self, experiment: str) -> list[IndexedRecord]:
        """Return a line for each record of an experiment; brings the index up to date first."""
        stamps = _stamps(self.store, experiment)
        if not stamps:
            return []
        known = self._answer_or_none(lambda db: _select(db, experiment)) or []
        current = [e for e in known if stamps.get((e.scale, e.key)) == e.stamp]
        listed = {(e.scale, e.key) for e in current}
        new = [
            entry
            for (scale, key), stamp in stamps.items()
            if (scale, key) not in listed
            and (entry := _entry(self.store, experiment, scale, key, stamp))
        ]
        if new or len(current) < len(known):
            entries = sorted([*current, *new], key=lambda e: (e.scale, e.key))
            self._answer_or_none(lambda db: _replace(db, experiment, entries))
            return entries
        return current

    def rebuild(self) -> int:
        """Make the index anew and return how many records it lists."""
        self._discard()
        experiments = sorted({name for name, _, _ in self.store.places()})
        return sum(len(self.entries(name)) for name in experiments)

    def _answer_or_none(self, ask: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return an answer of the index; None where it is in use or cannot be made anew."""
        try:
            return self._answer(ask)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _TRANSIENT:
                return None  # it is only an index
        except (TypeError, ValueError, KeyError, RecursionError):  # entries that we did not write
            pass
        if not self._discard():
            return None
        self.store.notices.append(f"the index {self.path} was damaged: it was made anew.")
        try:
            return self._answer(ask)
        except sqlite3.Error:
            return None

    def _answer(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as db, db:
            db.execute(_TABLE)
            return ask(db)

    def _discard(self) -> bool:
        """Delete the index and tell whether there was one that could be; folders step aside."""
        try:
            for path in (self.path.with_name(f"{NAME}-journal"), self.path):
                existed = path.exists()
                if path.is_dir():
                    step_aside(path)
                path.unlink(missing_ok=True)
        except OSError:  # a folder that cannot be written
            return False
        return existed


def _stamps(store: Store, experiment: str) -> dict[tuple[str, str], int]:
    """Return the records of an experiment and when each was written."""
    files = store.folder(experiment, "*").parent.glob("*/*.json")
    stamps: dict[tuple[str, str], int] = {}
    for file in sorted(files):
        try:
            stamps[file.parent.name, file.stem] = file.stat().st_mtime_ns
        except OSError:  # set aside by another process, or a link that leads nowhere
            continue
    return stamps


def _entry(store: Store, experiment: str, scale: str, key: str, stamp: int) -> IndexedRecord | None:
    """Return the line of a record, or None where it cannot be read."""
    path: Path = store.path(experiment, scale, key)
    try:
        content = parsed(read_file(path))
        text, seconds = json.dumps(content["settings"]), float(content["provenance"]["seconds"])
        return IndexedRecord(
            experiment, scale, key, stamp, seconds, store.size(experiment, scale, key), text
        )
    except (OSError, CorruptError, ValueError, KeyError, TypeError):
        return None


def _select(db: sqlite3.Connection, experiment: str) -> list[IndexedRecord]:
    rows = db.execute(f"SELECT {_COLUMNS} FROM records WHERE experiment = ?", (experiment,))
    return sorted(map(_checked, rows), key=lambda e: (e.scale, e.key))


def _checked(row: tuple[Any, ...]) -> IndexedRecord:
    """Return the line of the index in a row, or raise where it is none."""
    if tuple(map(type, row)) != tuple(field.type for field in fields(IndexedRecord)):
        raise TypeError("a column has another type")
    entry = IndexedRecord(*row)
    _ = entry.settings
    return entry


def _replace(db: sqlite3.Connection, experiment: str, entries: Iterable[IndexedRecord]) -> None:
    db.execute("DELETE FROM records WHERE experiment = ?", (experiment,))
    rows = [astuple(entry) for entry in entries]
    db.executemany(
        f"INSERT OR REPLACE INTO records ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows
    )
