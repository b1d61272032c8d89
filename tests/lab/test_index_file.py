"""The index answers quickly, mends itself, and is never needed."""

import sqlite3

import numpy as np
import pytest

from inscape.lab import index_file
from inscape.lab.encoding import cell_key
from inscape.lab.index_file import NAME, Index
from inscape.lab.store import Record, Store


def write(store: Store, seed: int, *, item: str = "table-1", seconds: float = 0.5) -> Record:
    settings = {"seed": seed, "rate": float("inf")}
    made = Record(
        experiment=f"paper/{item}",
        scale="smoke",
        key=cell_key(f"paper/{item}", settings, 1, "none"),
        settings=settings,
        data="none",
        values={"x": np.ones(seed + 1)},
        claims={},
        provenance={"seconds": seconds},
    )
    store.write(made)
    return made


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path)


def test_an_empty_store_has_no_entries_and_gets_no_index(store):
    assert Index(store).entries("paper/table-1") == []
    assert not (store.root / NAME).exists()


def test_entries_say_what_the_records_say(store):
    made = write(store, 3, seconds=1.5)
    (entry,) = Index(store).entries("paper/table-1")
    assert (entry.experiment, entry.scale, entry.key) == (made.experiment, "smoke", made.key)
    assert entry.settings == made.settings
    assert entry.seconds == 1.5
    assert entry.bytes == store.size(made.experiment, "smoke", made.key)


def test_known_records_are_not_read_again(store, monkeypatch):
    write(store, 0)
    before = Index(store).entries("paper/table-1")

    def refuse(*place):
        raise AssertionError("read again")

    monkeypatch.setattr(index_file, "_entry", refuse)
    assert Index(store).entries("paper/table-1") == before


def test_new_changed_and_vanished_records_are_noticed(store):
    first, second = write(store, 0), write(store, 1)
    Index(store).entries("paper/table-1")
    write(store, 2)
    write(store, 0, seconds=9.0)
    store.path("paper/table-1", "smoke", second.key).unlink()
    result = {entry.key: entry.seconds for entry in Index(store).entries("paper/table-1")}
    assert len(result) == 2
    assert result[first.key] == 9.0
    with sqlite3.connect(store.root / NAME) as db:
        assert db.execute("SELECT count(*) FROM records").fetchone() == (2,)
    db.close()


def test_a_damaged_index_is_made_anew_and_said(store):
    write(store, 0)
    (store.root / NAME).write_bytes(b"this is not a database, but it is long enough " * 50)
    assert len(Index(store).entries("paper/table-1")) == 1
    (notice,) = store.notices
    assert notice == f"the index {store.root / NAME} was damaged: it was made anew."
    assert len(Index(store).entries("paper/table-1")) == 1
    assert len(store.notices) == 1


def other_columns(path):
    database(path, "CREATE TABLE records (experiment TEXT, key TEXT)")


def another_column(path):
    database(path, f"{index_file._TABLE}; ALTER TABLE records ADD COLUMN more TEXT NOT NULL")


def view(path):
    database(path, "CREATE VIEW records AS SELECT 'paper/table-1' AS experiment")


def other_types(path):
    row = "('paper/table-1', 'smoke', 'k', 'not a time', x'00', NULL, '{}')"
    database(path, f"{index_file._TABLE}; INSERT INTO records VALUES {row}")


def settings_of_brackets(path):
    row = f"('paper/table-1', 'smoke', 'k', 1, 0.5, 3, '{'[' * 100_000}')"
    database(path, f"{index_file._TABLE}; INSERT INTO records VALUES {row}")


def text_of_no_encoding(path):
    row = "('paper/table-1', 'smoke', CAST(x'fffe' AS TEXT), 1, 0.5, 3, '{}')"
    database(path, f"{index_file._TABLE}; INSERT INTO records VALUES {row}")


def folder(path):
    path.mkdir()


def database(path, script):
    with sqlite3.connect(path) as db:
        db.executescript(script)
    db.close()


ODD = [other_columns, another_column, view, other_types, settings_of_brackets]


@pytest.mark.parametrize("odd", [*ODD, text_of_no_encoding, folder])
def test_an_index_that_we_did_not_write_is_made_anew(store, odd):
    write(store, 0)
    odd(store.root / NAME)
    assert len(Index(store).entries("paper/table-1")) == 1
    assert store.take_notices() == (
        f"the index {store.root / NAME} was damaged: it was made anew.",
    )
    Index(store).entries("paper/table-1")
    assert store.take_notices() == ()
    with sqlite3.connect(store.root / NAME) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(records)")]
        assert db.execute("SELECT count(*) FROM records").fetchone() == (1,)
    db.close()
    assert ", ".join(columns) == index_file._COLUMNS


def test_a_read_only_index_is_made_anew(store, monkeypatch):
    write(store, 0)
    Index(store).entries("paper/table-1")
    write(store, 1)
    connect = sqlite3.connect
    inode = (store.root / NAME).stat().st_ino

    def read_only(path, **options):
        if path.exists() and path.stat().st_ino == inode:  # as where another user owns the file
            return connect(f"file:{path}?mode=ro", uri=True, **options)
        return connect(path, **options)

    holds_the_inode = (store.root / NAME).open("rb")  # else the new file may get the same
    with monkeypatch.context() as patch, holds_the_inode:
        patch.setattr(sqlite3, "connect", read_only)
        assert len(Index(store).entries("paper/table-1")) == 2
    with connect(store.root / NAME) as db:
        assert db.execute("SELECT count(*) FROM records").fetchone() == (2,)
    db.close()


def test_a_folder_that_cannot_be_written_needs_no_index(store, monkeypatch):
    write(store, 0)
    (store.root / NAME).write_bytes(b"this is not a database, but it is long enough " * 50)

    def refuse(self, missing_ok=False):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(store.root), "unlink", refuse)
    assert len(Index(store).entries("paper/table-1")) == 1
    assert store.notices == []


def test_a_locked_index_is_passed_over(store, monkeypatch):
    monkeypatch.setattr(index_file, "PATIENCE", 0.05)
    write(store, 0)
    Index(store).entries("paper/table-1")
    write(store, 1)
    other = sqlite3.connect(store.root / NAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert len(Index(store).entries("paper/table-1")) == 2
    other.execute("ROLLBACK")
    other.close()
    assert store.notices == []


def test_rebuilding_lists_every_record(store):
    for seed in range(3):
        write(store, seed)
        write(store, seed, item="table-2")
    (store.root / NAME).write_bytes(b"")
    assert store.rebuild_index() == 6
    with sqlite3.connect(store.root / NAME) as db:
        rows = db.execute("SELECT experiment, count(*) FROM records GROUP BY experiment").fetchall()
    db.close()
    assert rows == [("paper/table-1", 3), ("paper/table-2", 3)]


def test_a_record_that_cannot_be_read_is_not_listed(store):
    made = write(store, 0)
    store.path("paper/table-1", "smoke", made.key).write_text("{")
    write(store, 1)
    assert len(Index(store).entries("paper/table-1")) == 1


def test_it_keeps_no_write_ahead_log(store):
    write(store, 0)
    Index(store).entries("paper/table-1")
    with sqlite3.connect(store.root / NAME) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    db.close()
