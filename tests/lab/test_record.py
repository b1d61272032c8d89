"""A record carries the hash of its content; whatever else stands in its file is set aside."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from inscape.lab.encoding import cell_key
from inscape.lab.index_file import Index
from inscape.lab.record import Record, content_hash, parsed, to_json
from inscape.lab.store import Store

RESULTS = Path(__file__).parents[2] / "results"


def record(seed: int = 0, **values: object) -> Record:
    settings = {"size": 4, "rate": 0.1, "seed": seed}
    return Record(
        experiment="paper/table-1",
        scale="smoke",
        key=cell_key("paper/table-1", settings, 1, "none"),
        settings=settings,
        data="none",
        values={"loss": 0.25, "list": [1, 2.0, -0.0], "w": np.ones(3), **values},
        claims={"one": "abc"},
        provenance={"seconds": 0.25, "warnings": []},
    )


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


def change(path: Path, edit) -> None:
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content, indent=1) + "\n")


def test_the_hash_is_over_all_else(store):
    content = json.loads(store.write(record()).read_text())
    assert list(content)[-1] == "sha256"
    stated = content.pop("sha256")
    assert stated == content_hash(content)
    assert len(stated) == 64
    for name in content:
        assert content_hash({**content, name: "another"}) != stated


EDITS = {
    "value": lambda c: c["values"].update(loss=0.26),
    "last digit": lambda c: c["values"].update(loss=np.nextafter(0.25, 1)),
    "sign of zero": lambda c: c["values"]["list"].__setitem__(2, 0.0),
    "integer for float": lambda c: c["values"]["list"].__setitem__(1, 2),
    "order": lambda c: c["values"]["list"].reverse(),
    "claims": lambda c: c["claims"].update(one="abd"),
    "provenance": lambda c: c["provenance"].update(seconds=0.5),
    "a value more": lambda c: c["values"].update(more=1),
    "no npz": lambda c: (c.pop("npz"), c["values"].pop("w")),
    "hash": lambda c: c.update(sha256="0" * 64),
    "hash of no text": lambda c: c.update(sha256=None),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_changed_record_is_set_aside_and_both_hashes_named(store, edit):
    path = store.write(record())
    change(path, edit)
    content = json.loads(path.read_text())
    assert store.records("paper/table-1", "smoke") == []
    (notice,) = store.notices
    assert notice == (
        f"the record {path} has values, claims or provenance that do not match its hash (stated "
        f"{str(content['sha256'])[:12]}, computed {content_hash(content)[:12]}): it was set aside "
        "as .corrupt and will be computed anew."
    )
    assert path.with_name(f"{path.name}.corrupt-1").exists()


def test_other_line_ends_and_order_of_names_are_no_change(store):
    path = store.write(record())
    content = json.loads(path.read_text())
    turned = dict(reversed(content.items()))
    path.write_bytes(json.dumps(turned, indent=3).replace("\n", "\r\n").encode())
    assert len(store.records("paper/table-1", "smoke")) == 1
    assert store.notices == []


def test_a_record_without_a_hash_is_read_and_counted(store):
    path = store.write(record())
    store.write(record(seed=1))
    change(path, lambda c: c.pop("sha256"))
    assert len(store.records("paper/table-1", "smoke")) == 2
    assert store.unhashed == {("paper/table-1", "smoke", path.stem)}
    assert store.notices == []


def replaced(old: bytes, new: bytes):
    def damage(path: Path) -> None:
        text = path.read_bytes()
        assert old in text
        path.write_bytes(text.replace(old, new, 1))

    return damage


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "kept").write_text("by the user")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def sealed(edit):
    """Return damage that carries the right hash, as an attacker would write it."""

    def damage(path: Path) -> None:
        content = json.loads(path.read_text())
        edit(content)
        content["sha256"] = content_hash(content)
        path.write_text(json.dumps(content))

    return damage


def with_npz(raw: bytes):
    """Return damage by another npz whose hash is right."""
    import hashlib

    def damage(path: Path) -> None:
        def edit(content):
            path.with_name(content["npz"]["file"]).write_bytes(raw)
            content["npz"]["sha256"] = hashlib.sha256(raw).hexdigest()

        sealed(edit)(path)

    return damage


def pickled() -> bytes:
    out = io.BytesIO()
    np.savez(out, w=np.array([{}], dtype=object))
    return out.getvalue()


def bomb() -> bytes:
    """Return an npz of a few kB that declares 4 GB."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("w.npy", bytes(1 << 20))
    raw = bytearray(out.getvalue())
    at = raw.index(b"PK\x01\x02") + 24
    raw[at : at + 4] = (0xFFFFFFF0).to_bytes(4, "little")
    return bytes(raw)


def encrypted() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("w.npy", b"secret")
    raw = bytearray(out.getvalue())
    raw[6] |= 1  # the flag of the local header, and that of the directory
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    return bytes(raw)


BRACKETS = b"[" * 100_000 + b"]" * 100_000
WHOLE, PART = "is not a whole JSON record", "lacks a part of a record, or holds more"
HOSTILE = {
    "brackets": (lambda path: path.write_bytes(BRACKETS), WHOLE),
    "brackets within": (replaced(b"0.25", BRACKETS), WHOLE),
    "900 brackets": (replaced(b"0.25", b"[" * 900 + b"]" * 900), PART),
    "objects within": (replaced(b"0.25", b'{"a":' * 50_000 + b"1" + b"}" * 50_000), WHOLE),
    "folder": (folder, "is not a file"),
    "fifo": (fifo, "is not a file"),
    "NaN": (replaced(b"0.25", b"NaN"), WHOLE),
    "Infinity": (replaced(b"0.25", b"-Infinity"), WHOLE),
    "overflow": (replaced(b"0.25", b"1e999"), PART),
    "huge integer": (replaced(b"0.25", b"9" * 5000), WHOLE),
    "huge schema": (replaced(b'"schema": 1', b'"schema": 1e999'), WHOLE),
    "schema true": (replaced(b'"schema": 1', b'"schema": true'), WHOLE),
    "twice": (replaced(b'"loss": 0.25', b'"loss": 0.25, "loss": 0.26'), WHOLE),
    "not UTF-8": (replaced(b'"abc"', b'"\xff\xfe"'), WHOLE),
    "UTF-16": (lambda path: path.write_text(path.read_text()[:60], encoding="utf-16"), WHOLE),
    "NUL": (lambda path: path.write_bytes(bytes(4096)), WHOLE),
    "version of text": (sealed(lambda c: c.update(version="1")), PART),
    "settings of list": (sealed(lambda c: c.update(settings=[1])), PART),
    "values of null": (sealed(lambda c: c.update(values=None)), PART),
    "float of no number": (sealed(lambda c: c["values"].update(loss={"~float": "x"})), PART),
    "array of no name": (sealed(lambda c: c["values"].update(w={"~npz": "v"})), PART),
    "npz of text": (sealed(lambda c: c.update(npz="x")), PART),
    "npz of number": (sealed(lambda c: c["npz"].update(file=3)), PART),
    "npz above": (sealed(lambda c: c["npz"].update(file="..")), "is not a file"),
    "npz of NUL": (sealed(lambda c: c["npz"].update(file="\0")), PART),
    "npz elsewhere": (sealed(lambda c: c["npz"].update(file="/etc/hostname")), "lost its npz"),
    "npz of garbage": (with_npz(b"garbage"), "has an npz that cannot be read"),
    "npz cut": (with_npz(pickled()[:-30]), "has an npz that cannot be read"),
    "npz pickled": (with_npz(pickled()), "has an npz that cannot be read"),
    "npz that is a bomb": (with_npz(bomb()), "has an npz that cannot be read"),
    "npz encrypted": (with_npz(encrypted()), "has an npz that cannot be read"),
}


@pytest.mark.parametrize(("damage", "problem"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_record_is_set_aside_and_the_others_are_read(store, damage, problem):
    path, other = store.write(record()), record(seed=1)
    store.write(other)
    damage(path)
    assert [entry.key for entry in Index(store).entries("paper/table-1")][-1:]  # lists the other
    assert [found.key for found in store.records("paper/table-1", "smoke")] == [other.key]
    (notice,) = store.take_notices()
    assert problem in notice
    assert notice.endswith("it was set aside as .corrupt and will be computed anew.")
    assert not path.exists()
    assert path.with_name(f"{path.name}.corrupt-1").exists()
    store.write(record())
    assert len(store.records("paper/table-1", "smoke")) == 2


def test_a_folder_is_set_aside_with_all_that_is_in_it(store):
    path = store.write(record())
    folder(path)
    assert store.read("paper/table-1", "smoke", path.stem) is None
    assert path.with_name(f"{path.name}.corrupt-1").joinpath("kept").read_text() == "by the user"


def test_setting_aside_takes_no_file_of_another_record(store):
    path, other = store.write(record()), store.write(record(seed=1))
    npz = json.loads(other.read_text())["npz"]
    change(path, lambda c: c.update(npz=npz))
    assert len(store.records("paper/table-1", "smoke")) == 1
    assert other.with_name(npz["file"]).exists()


def test_a_record_that_cannot_be_read_is_left_out_and_stays(store):
    path = store.write(record())
    path.unlink()
    path.symlink_to(path)
    assert store.read("paper/table-1", "smoke", path.stem) is None
    (notice,) = store.take_notices()
    assert notice.startswith(f"the record {path} cannot be read (")
    assert notice.endswith("): it is left out.")
    assert path.is_symlink()
    store.write(record())
    assert store.read("paper/table-1", "smoke", path.stem) is not None


def test_committed_records_carry_their_hash_and_are_as_the_store_writes_them():
    """Only a run, or a commit that says so, may change what is committed."""
    files = sorted(RESULTS.glob("*/*/*/*.json"))
    assert len(files) > 4000
    changed = []
    for file in files:
        content = parsed(file.read_bytes())
        stated = content.pop("sha256", None)
        if stated != content_hash(content) or file.read_bytes() != to_json(content):
            changed.append(file.name)
    assert changed == []
