"""The store: one JSON for each cell, with an npz for its arrays; the files are the truth.

Each file is written under a temporary name of its own and renamed, the npz before the JSON that
names it and its hash. So whoever reads finds whole records or none, however many processes write,
and wherever they are killed.
"""

import hashlib
import io
import json
import os
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from inscape.lab.encoding import Arrays, cell_key, decoded, encoded

SCHEMA = 1

#: Temporary files older than this (seconds) belong to processes that were killed.
ABANDONED = 3600.0


class StoreError(ValueError):
    """A store that this version cannot read."""


class _CorruptError(Exception):
    """What is wrong with a record, in the middle of a sentence."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """What one cell gave.

    Attributes:
        experiment: Name of the experiment whose cell it is, ``paper/item``.
        scale: Scale under which it was run.
        key: ``cell_key`` of name, settings, version and data.
        settings: Settings of the cell.
        data: Hash of the data that it read.
        values: What the cell gave: plain values and NumPy arrays.
        claims: Hash of each claim of the experiment when the cell was run.
        provenance: Versions, device, dtype, threads, seconds, start, warnings.
        version: Schema of the experiment: what its numbers mean.
        schema: Schema of the store: how they are written down.
    """

    experiment: str
    scale: str
    key: str
    settings: Mapping[str, Any]
    data: str
    values: Mapping[str, Any]
    claims: Mapping[str, str]
    provenance: Mapping[str, Any]
    version: int = 1
    schema: int = SCHEMA


class Store:
    """A folder of records.

    Attributes:
        root: The folder; made when the first record is written.
        mends: Whether damaged records are set aside; else they are left as they are.
        notices: A sentence about each thing that was mended on the way, or is to be.
        damaged: What is wrong with each damaged record that was met, by experiment, scale, key.
    """

    def __init__(self, root: str | Path, *, mends: bool = True) -> None:
        self.root = Path(root)
        self.mends = mends
        self.notices: list[str] = []
        self.damaged: dict[tuple[str, str, str], str] = {}

    def told(self) -> tuple[str, ...]:
        """Return the notices so far and forget them."""
        notices, self.notices[:] = tuple(self.notices), []
        return notices

    def folder(self, experiment: str, scale: str) -> Path:
        """Return the folder of the records of an experiment at a scale."""
        return self.root.joinpath(*experiment.split("/"), scale)

    def path(self, experiment: str, scale: str, key: str) -> Path:
        """Return the JSON file of a record."""
        return self.folder(experiment, scale) / f"{key}.json"

    def write(self, record: Record) -> Path:
        """Write a record, whole or not at all, and return the path of its JSON."""
        path = self.path(record.experiment, record.scale, record.key)
        arrays: Arrays = {}
        content: dict[str, Any] = {
            "schema": SCHEMA,
            "experiment": record.experiment,
            "scale": record.scale,
            "key": record.key,
            "version": record.version,
            "settings": encoded(record.settings),
            "data": record.data,
            "values": encoded(record.values, arrays),
            "claims": dict(record.claims),
            "provenance": encoded(record.provenance),
        }
        before = _npz_of(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if arrays:
            packed = _packed(arrays)
            digest = hashlib.sha256(packed).hexdigest()
            content["npz"] = {"file": f"{record.key}.{digest[:12]}.npz", "sha256": digest}
            _put(path.with_name(content["npz"]["file"]), packed)
        _put(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())
        if before and before != content.get("npz", {}).get("file"):
            path.with_name(before).unlink(missing_ok=True)
        return path

    def read(self, experiment: str, scale: str, key: str) -> Record | None:
        """Return a record, or None where there is none that can be used.

        A damaged one is set aside under another name, and a notice says so; a store that does not
        mend only says it.
        """
        path = self.path(experiment, scale, key)
        for _ in range(2):  # a record that is being replaced may lose its npz between two reads
            try:
                text = path.read_bytes()
            except FileNotFoundError:
                return None
            try:
                return _record(path, text)
            except _CorruptError as error:
                problem = error
        self.damaged[experiment, scale, key] = str(problem)
        self._set_aside(path, text, str(problem))
        return None

    def records(
        self, experiment: str, scale: str, keys: Sequence[str] | None = None
    ) -> list[Record]:
        """Return the records with the given keys that are there, or all by key."""
        if keys is None:
            keys = sorted(path.stem for path in self.folder(experiment, scale).glob("*.json"))
        found = (self.read(experiment, scale, key) for key in keys)
        return [record for record in found if record is not None]

    def places(self) -> Iterator[tuple[str, str, str]]:
        """Yield experiment, scale and key of every record in the store."""
        for path in sorted(self.root.glob("*/*/*/*.json")):
            paper, item, scale, name = path.relative_to(self.root).parts
            yield f"{paper}/{item}", scale, name.removesuffix(".json")

    def size(self, experiment: str, scale: str, key: str) -> int:
        """Return how many bytes a record takes."""
        folder = self.folder(experiment, scale)
        files = (file for end in ("json", "*.npz") for file in folder.glob(f"{key}.{end}"))
        return sum(file.stat().st_size for file in files)

    def tidy(self) -> None:
        """Delete temporary files that killed processes left long ago."""
        long_ago = time.time() - ABANDONED
        for file in self.root.glob("*/*/*/.*.tmp"):
            try:
                if file.stat().st_mtime < long_ago:
                    file.unlink()
            except OSError:  # another process was quicker, or it is not ours to delete
                continue

    def rebuild_index(self) -> int:
        """Make the index anew from the files and return how many records it lists."""
        from inscape.lab.index_file import Index

        return Index(self).rebuild()

    def _set_aside(self, path: Path, text: bytes, problem: str) -> None:
        about = f"the record {path} {problem}"
        if not self.mends:
            self.notices.append(f"{about}: inscape reproduce sets it aside and computes it anew.")
            return
        try:
            for file in (path, *_named_npz(path, text)):
                _step_aside(file)
        except OSError as error:
            self.notices.append(f"{about}: it is left out ({error.strerror or error}).")
            return
        self.notices.append(f"{about}: it was set aside as .corrupt and will be computed anew.")


def _record(path: Path, text: bytes) -> Record:
    """Return the record in a file, or raise ``_CorruptError`` saying what is wrong with it."""
    try:
        content = json.loads(text)
        schema = int(content["schema"])
    except (ValueError, KeyError, TypeError) as error:
        raise _CorruptError("is not a whole JSON record") from error
    if schema > SCHEMA:
        raise StoreError(
            f"{path} must have a schema up to {SCHEMA}, found {schema}: it was written by a newer "
            "Inscape; update inscape, or choose another --out folder."
        )
    try:
        arrays = _arrays(path, content.pop("npz", None))
        content["settings"] = decoded(content["settings"], {})
        content["values"] = decoded(content["values"], arrays)
        content["provenance"] = decoded(content["provenance"], {})
        record = Record(**content)
        key = cell_key(record.experiment, record.settings, record.version, record.data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _CorruptError("lacks a part of a record, or holds more") from error
    name, item, scale = path.parts[-4:-1]
    if (record.experiment, record.scale, record.key) != (f"{name}/{item}", scale, path.stem):
        raise _CorruptError("says it belongs elsewhere")
    if record.key != key:
        raise _CorruptError("has a key that does not match its settings")
    return record


def _arrays(path: Path, npz: Mapping[str, str] | None) -> Mapping[str, npt.NDArray[Any]]:
    if npz is None:
        return {}
    try:
        packed = path.with_name(Path(npz["file"]).name).read_bytes()
    except FileNotFoundError as error:
        raise _CorruptError("has lost its npz") from error
    if hashlib.sha256(packed).hexdigest() != npz["sha256"]:
        raise _CorruptError("has an npz with another hash")
    with np.load(io.BytesIO(packed), allow_pickle=False) as found:
        return dict(found)


def _packed(arrays: Arrays) -> bytes:
    """Return the bytes of an npz, the same for the same arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array, allow_pickle=False)
            about = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, on purpose
            file.writestr(about, member.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _put(path: Path, content: bytes) -> None:
    """Write a file under a name that nobody else uses, then rename it."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
        temporary.replace(path)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _npz_of(path: Path) -> str | None:
    """Return the name of the npz of a record that is to be replaced."""
    try:
        return next((file.name for file in _named_npz(path, path.read_bytes())), None)
    except OSError:
        return None


def _named_npz(path: Path, text: bytes) -> Iterator[Path]:
    try:
        yield path.with_name(Path(json.loads(text)["npz"]["file"]).name)
    except (ValueError, KeyError, TypeError):
        return


def _step_aside(file: Path) -> None:
    number = 1
    while (aside := file.with_name(f"{file.name}.corrupt-{number}")).exists():
        number += 1
    try:
        file.replace(aside)
    except FileNotFoundError:  # another process was quicker
        return
