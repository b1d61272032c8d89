"""Records are whole or not there, whoever writes and wherever it stops."""

import errno
import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from faults import Disk, contents, failing, killed
from inscape.cli.errors import exit_code, sentence
from inscape.files.leftovers import tidy
from inscape.lab.encoding import cell_key
from inscape.lab.store import SCHEMA, Record, Store, StoreError

FAULTS = 200  # more than the writes of a record; reaching it fails the test

VALUES = {
    "loss": 0.1 + 0.2,
    "bad": math.nan,
    "far": -math.inf,
    "steps": 7,
    "none": None,
    "rows": [{"seed": 0, "ok": True}, {"seed": 1, "ok": False}],
    "weights": np.array([[1.0, math.nan], [-0.0, 5e-324]]),
    "deep": {"file": np.arange(4, dtype=np.int8)},
}


def record(**changes) -> Record:
    settings = changes.pop("settings", {"size": 4, "rate": 0.1, "seed": 0})
    made = Record(
        experiment="paper/table-1",
        scale="smoke",
        key=cell_key("paper/table-1", settings, 3, "none"),
        settings=settings,
        data="none",
        values=VALUES,
        claims={"one": "abc"},
        provenance={"seconds": 0.25, "warnings": [], "started": "2026-01-01T00:00:00+00:00"},
        version=3,
    )
    return replace(made, **changes)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


def read(store: Store, made: Record) -> Record | None:
    return store.read(made.experiment, made.scale, made.key)


def files(store: Store) -> set[str]:
    return {path.name for path in store.root.rglob("*") if path.is_file()}


def test_a_record_comes_back_bit_for_bit(store):
    made = record()
    path = store.write(made)
    back = read(store, made)
    assert path == store.root / "paper" / "table-1" / "smoke" / f"{made.key}.json"
    for name in ("experiment", "scale", "key", "settings", "data", "claims", "provenance"):
        assert getattr(back, name) == getattr(made, name)
    assert (back.version, back.schema) == (3, SCHEMA)
    assert back.values["loss"] == 0.1 + 0.2
    assert math.isnan(back.values["bad"])
    assert back.values["far"] == -math.inf
    assert back.values["rows"] == VALUES["rows"]
    for mine, theirs in (
        (back.values["weights"], VALUES["weights"]),
        (back.values["deep"]["file"], VALUES["deep"]["file"]),
    ):
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes()
    assert store.notices == []


def test_the_json_is_strict_and_names_the_npz(store):
    path = store.write(record())

    def refuse(word: str):
        raise AssertionError(word)

    content = json.loads(path.read_text(), parse_constant=refuse)
    assert content["values"]["bad"] == {"~float": "nan"}
    assert (path.parent / content["npz"]["file"]).is_file()
    assert len(content["npz"]["sha256"]) == 64


def test_the_same_record_is_the_same_bytes(tmp_path):
    for name in "ab":
        Store(tmp_path / name).write(record())
    one, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.*")} for name in "ab"
    )
    assert one == other


def test_nothing_there_is_none(store):
    assert store.read("paper/table-1", "smoke", "0" * 16) is None
    assert store.records("paper/table-1", "smoke") == []


def test_records_come_in_the_order_of_the_keys_asked_for(store):
    made = [record(settings={"seed": seed}) for seed in range(3)]
    for item in made:
        store.write(item)
    keys = [made[2].key, "0" * 16, made[0].key]
    result = store.records("paper/table-1", "smoke", keys)
    assert [item.settings["seed"] for item in result] == [2, 0]
    every = [item.key for item in store.records("paper/table-1", "smoke")]
    assert every == sorted(item.key for item in made)
    assert [key for _, _, key in store.places()] == every


def test_writing_again_leaves_one_npz(store):
    store.write(record())
    store.write(record(values={"weights": np.zeros(3)}))
    assert read(store, record()).values["weights"].tolist() == [0, 0, 0]
    assert sum(name.endswith(".npz") for name in files(store)) == 1
    store.write(record(values={"plain": 1}))
    assert files(store) == {f"{record().key}.json"}


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    npz = next(path.parent.glob("*.npz"))
    content = bytearray(npz.read_bytes())
    content[-1] ^= 1
    npz.write_bytes(bytes(content))


def lose(path: Path) -> None:
    next(path.parent.glob("*.npz")).unlink()


def edit(name: str, value: object):
    def change(path: Path) -> None:
        content = json.loads(path.read_text())
        content[name] = value
        path.write_text(json.dumps(content))

    return change


def drop(path: Path) -> None:
    content = json.loads(path.read_text())
    del content["values"]
    path.write_text(json.dumps(content))


DAMAGE = {
    "truncated": (truncate, "is not a whole JSON record"),
    "empty": (empty, "is not a whole JSON record"),
    "list": (lambda path: path.write_text("[1]"), "is not a whole JSON record"),
    "flipped": (flip, "has an npz with another hash"),
    "no npz": (lose, "has lost its npz"),
    "other settings": (edit("settings", {"size": 5}), "key that does not match its settings"),
    "other data": (edit("data", "else"), "key that does not match its settings"),
    "other version": (edit("version", 4), "key that does not match its settings"),
    "other place": (edit("scale", "paper"), "says it belongs elsewhere"),
    "more": (edit("surprise", 1), "lacks a part of a record, or holds more"),
    "less": (drop, "lacks a part of a record, or holds more"),
}


@pytest.mark.parametrize(("damage", "said"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_record_is_set_aside_and_said(store, damage, said):
    path = store.write(record())
    damage(path)
    assert read(store, record()) is None
    (notice,) = store.notices
    assert str(path) in notice
    assert said in notice
    assert notice.endswith("it was set aside as .corrupt and will be computed anew.")
    assert not path.exists()
    assert path.with_name(f"{path.name}.corrupt-1").exists()
    store.write(record())
    assert read(store, record()) is not None
    damage(path)
    assert store.records("paper/table-1", "smoke") == []
    assert path.with_name(f"{path.name}.corrupt-2").exists()


def test_a_damaged_record_that_cannot_be_moved_is_left_out(store, monkeypatch):
    path = store.write(record())
    truncate(path)

    def refuse(self, target):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    assert read(store, record()) is None
    assert store.notices[0].endswith("it is left out (Permission denied).")
    assert path.exists()


def test_a_newer_schema_is_an_error(store):
    path = store.write(record())
    edit("schema", SCHEMA + 1)(path)
    with pytest.raises(
        StoreError, match=r"schema up to 1, found 2: .* newer .*; update inscape, or"
    ):
        read(store, record())
    assert path.exists()


@pytest.mark.parametrize("step", range(2))
@pytest.mark.parametrize("before", [False, True])
def test_a_kill_between_two_steps_leaves_old_or_nothing(store, monkeypatch, step, before):
    if before:
        store.write(record(values={"old": np.ones(2)}))
    renames = []
    rename = Path.replace

    def die(self, target):
        renames.append(target)
        if len(renames) > step:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        store.write(record())
    monkeypatch.undo()
    assert not any(name.endswith(".tmp") for name in files(store))
    result = read(store, record())
    assert (result is not None) == before
    assert not before or list(result.values) == ["old"]
    assert store.notices == []
    store.write(record())
    assert list(read(store, record()).values) == list(VALUES)


class FullDisk:
    """A file that takes ten bytes."""

    def __init__(self, path: Path) -> None:
        self.file = open(path, "wb")  # noqa: PTH123, SIM115

    def __enter__(self) -> "FullDisk":
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def write(self, content: bytes) -> None:
        self.file.write(content[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_names_the_file_and_leaves_nothing(store, monkeypatch):
    monkeypatch.setattr(Path, "open", lambda self, mode: FullDisk(self))
    with pytest.raises(OSError, match="No space left on device") as caught:
        store.write(record(values={"plain": 1}))
    monkeypatch.undo()
    assert files(store) == set()
    assert exit_code(caught.value) == 1
    path = store.path("paper/table-1", "smoke", record().key)
    assert sentence(caught.value) == (
        f"cannot write {path}: no space left on device: free some space or choose another "
        "--out folder."
    )


def test_a_value_that_cannot_be_stored_writes_nothing(store):
    with pytest.raises(TypeError, match="found set"):
        store.write(record(values={"a": np.ones(2), "b": {1}}))
    assert files(store) == set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a fork of this process")
@pytest.mark.parametrize("before", [False, True])
def test_a_kill_at_every_write_in_turn_leaves_the_old_record_or_the_new(store, before):
    for at in range(FAULTS):
        shutil.rmtree(store.root, ignore_errors=True)
        if before:
            store.write(record(values={"old": np.ones(2)}))
        child = os.fork()
        if not child:
            with failing(Disk(at, killed)):
                store.write(record())
            os._exit(0)
        died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        tidy()
        assert len(files(store)) in (0, 2, 3)
        result = read(store, record())
        assert result is not None or not before
        assert result is None or list(result.values) in (["old"], list(VALUES))
        assert store.notices == []
        store.write(record())
        assert len(files(store)) == 2
        if not died:
            break
    assert 6 < at < FAULTS


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_every_write_in_turn_fails_and_leaves_the_old_record_or_the_new(store, before, stays):
    for at in range(FAULTS):
        shutil.rmtree(store.root, ignore_errors=True)
        if before:
            store.write(record(values={"old": np.ones(2)}))
        former = contents(store.root)
        with failing(Disk(at, stays=stays)) as disk:
            error = raised(store)
        if error is not None:
            assert error.errno == errno.ENOSPC
            assert contents(store.root) == former
            store.write(record())
        assert len(files(store)) == 2
        assert list(read(store, record()).values) == list(VALUES)
        if not disk.failed:
            break
    assert 6 < at < FAULTS


def raised(store: Store) -> OSError | None:
    """Write the record and return the error that stood in the way."""
    try:
        store.write(record())
    except OSError as error:
        return error
    return None


def test_the_size_of_a_record_is_that_of_its_files(store):
    path = store.write(record())
    expected = sum(file.stat().st_size for file in path.parent.iterdir())
    truncate_me = path.with_name(f"{path.name}.corrupt-1")
    truncate_me.write_text("not counted")
    assert store.size("paper/table-1", "smoke", record().key) == expected


def test_a_store_that_does_not_mend_leaves_a_damaged_record(tmp_path):
    path = Store(tmp_path).path("paper/item", "smoke", "0123456789abcdef")
    path.parent.mkdir(parents=True)
    path.write_text("{")
    store = Store(tmp_path, mends=False)
    assert store.read("paper/item", "smoke", path.stem) is None
    assert store.damaged == {("paper/item", "smoke", path.stem): "is not a whole JSON record"}
    assert list(path.parent.iterdir()) == [path]
    (notice,) = store.take_notices()
    assert notice.endswith(": inscape reproduce sets it aside and computes it anew.")
    assert store.take_notices() == ()
