"""The index of a store: one sqlite file for quick answers, which the records can always remake.

Only the process that drives a run writes it, in short transactions and without a write-ahead log,
which network disks do not bear. Where it is locked or cannot be written the answer comes from the
records, and where it is damaged it is made anew: nothing depends on it.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, TypeVar

from inscape.lab.encoding import decoded
from inscape.lab.store import Store

NAME = "index.sqlite"
PATIENCE = 2.0  # seconds to wait for another process

T = TypeVar("T")

_TABLE = """
CREATE TABLE IF NOT EXISTS records (
    experiment TEXT, scale TEXT, key TEXT, stamp INTEGER, seconds REAL, bytes INTEGER,
    settings TEXT, PRIMARY KEY (experiment, scale, key))
"""


@dataclass(frozen=True)
class Entry:
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

    def entries(self, experiment: str) -> list[Entry]:
        """Return a line for each record of an experiment; brings the index up to date first."""
        found = _stamps(self.store, experiment)
        if not found:
            return []
        known = self._asked(lambda db: _select(db, experiment)) or []
        current = [e for e in known if found.get((e.scale, e.key)) == e.stamp]
        listed = {(e.scale, e.key) for e in current}
        new = [
            entry
            for (scale, key), stamp in found.items()
            if (scale, key) not in listed
            and (entry := _entry(self.store, experiment, scale, key, stamp))
        ]
        if new or len(current) < len(known):
            kept = sorted([*current, *new], key=lambda e: (e.scale, e.key))
            self._asked(lambda db: _replace(db, experiment, kept))
            return kept
        return current

    def rebuild(self) -> int:
        """Make the index anew and return how many records it lists."""
        self._discard()
        experiments = sorted({name for name, _, _ in self.store.places()})
        return sum(len(self.entries(name)) for name in experiments)

    def _asked(self, ask: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return an answer of the index; None where it is locked, damaged or out of reach."""
        try:
            with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as db, db:
                db.execute(_TABLE)
                return ask(db)
        except sqlite3.OperationalError:  # locked, read-only, full: it is only an index
            return None
        except sqlite3.DatabaseError:
            self.store.notices.append(f"the index {self.path} was damaged: it was made anew.")
            self._discard()
            return None

    def _discard(self) -> None:
        for path in (self.path, self.path.with_name(f"{NAME}-journal")):
            path.unlink(missing_ok=True)


def _stamps(store: Store, experiment: str) -> dict[tuple[str, str], int]:
    """Return the records of an experiment and when each was written."""
    files = store.folder(experiment, "*").parent.glob("*/*.json")
    stamps: dict[tuple[str, str], int] = {}
    for file in sorted(files):
        try:
            stamps[file.parent.name, file.stem] = file.stat().st_mtime_ns
        except FileNotFoundError:  # set aside by another process
            continue
    return stamps


def _entry(store: Store, experiment: str, scale: str, key: str, stamp: int) -> Entry | None:
    """Return the line of a record, or None where it cannot be read."""
    path: Path = store.path(experiment, scale, key)
    try:
        content = json.loads(path.read_bytes())
        text, seconds = json.dumps(content["settings"]), float(content["provenance"]["seconds"])
        return Entry(
            experiment, scale, key, stamp, seconds, store.size(experiment, scale, key), text
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _select(db: sqlite3.Connection, experiment: str) -> list[Entry]:
    rows = db.execute("SELECT * FROM records WHERE experiment = ?", (experiment,))
    return sorted((Entry(*row) for row in rows), key=lambda e: (e.scale, e.key))


def _replace(db: sqlite3.Connection, experiment: str, entries: Iterable[Entry]) -> None:
    db.execute("DELETE FROM records WHERE experiment = ?", (experiment,))
    rows = [astuple(entry) for entry in entries]
    db.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
