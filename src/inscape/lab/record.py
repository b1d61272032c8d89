"""A record and its JSON file, which carries the hash of its own content.

The hash is over the content without the hash itself: names sorted, no white space, floats by
``repr``. So it does not depend on line ends or indentation, and any other number gives another.
"""

import hashlib
import io
import json
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from inscape.errors import DataError
from inscape.files.archives import read_npz
from inscape.lab.encoding import Arrays, cell_key, decoded, encoded
from inscape.lab.records import SCHEMA as SCHEMA
from inscape.lab.records import Record as Record

#: The type of each part of the JSON; the hash and the npz may be missing.
PARTS = {
    "schema": int,
    "experiment": str,
    "scale": str,
    "key": str,
    "version": int,
    "settings": dict,
    "data": str,
    "values": dict,
    "claims": dict,
    "provenance": dict,
}


class StoreError(ValueError):
    """A store that this version cannot read."""


class CorruptError(Exception):
    """What is wrong with a record, in the middle of a sentence."""


def content_hash(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the content of a record, its own hash left out.

    >>> content_hash({"b": 1, "a": 0.5}) == content_hash({"a": 0.5, "b": 1, "sha256": "any"})
    True
    """
    hashed = {name: value for name, value in content.items() if name != "sha256"}
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def to_content(record: Record) -> tuple[dict[str, Any], Arrays]:
    """Return a record as JSON can hold it, and its arrays; npz and hash are yet to be added."""
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
    return content, arrays


def to_json(content: Mapping[str, Any]) -> bytes:
    """Return the content of a record as the bytes of its file, with its hash at the end."""
    hashed = {**content, "sha256": content_hash(content)}
    return (json.dumps(hashed, indent=1, allow_nan=False) + "\n").encode()


def read_file(path: Path) -> bytes:
    """Return the bytes of a file, or raise ``CorruptError`` where it is a folder or a device."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise CorruptError("is not a file")
    return path.read_bytes()


def parsed(text: bytes) -> dict[str, Any]:
    """Return the content of a record, or raise ``CorruptError`` where it is no strict JSON."""
    try:
        content = json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise CorruptError("is not a whole JSON record") from error
    if not isinstance(content, dict) or type(content.get("schema")) is not int:
        raise CorruptError("is not a whole JSON record")
    return content


def to_record(path: Path, content: dict[str, Any]) -> Record:
    """Return the record with that content, or raise ``CorruptError`` saying what is wrong with it.

    Args:
        path: Its file; the folders say which experiment and scale it belongs to.
        content: From ``parsed``.
    """
    if content["schema"] > SCHEMA:
        raise StoreError(
            f"{path} must have a schema up to {SCHEMA}, found {content['schema']}: it was written "
            "by a newer Inscape; update inscape, or choose another --out folder."
        )
    try:
        record = _decoded(path, content)
        _check_place(path, record)
        _check_hash(content)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptError("lacks a part of a record, or holds more") from error
    return record


def _decoded(path: Path, content: Mapping[str, Any]) -> Record:
    parts = {name: value for name, value in content.items() if name not in ("npz", "sha256")}
    if {name: type(value) for name, value in parts.items()} != PARTS:
        raise TypeError("a part is missing, unknown or of another type")
    arrays = _arrays(path, content.get("npz"))
    return Record(
        **{
            **parts,
            "settings": decoded(parts["settings"], {}),
            "values": decoded(parts["values"], arrays),
            "provenance": decoded(parts["provenance"], {}),
        }
    )


def _check_place(path: Path, record: Record) -> None:
    paper, item, scale = path.parts[-4:-1]
    if (record.experiment, record.scale, record.key) != (f"{paper}/{item}", scale, path.stem):
        raise CorruptError("says it belongs elsewhere")
    if record.key != cell_key(record.experiment, record.settings, record.version, record.data):
        raise CorruptError("has a key that does not match its settings")


def _check_hash(content: Mapping[str, Any]) -> None:
    """Refuse a record that was changed after it was written; one without a hash passes."""
    stated = content.get("sha256")
    if "sha256" in content and stated != (computed := content_hash(content)):
        raise CorruptError(
            "has values, claims or provenance that do not match its hash (stated "
            f"{str(stated)[:12]}, computed {computed[:12]})"
        )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name stands twice")
    return content


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _arrays(path: Path, npz: Any) -> Mapping[str, npt.NDArray[Any]]:
    if npz is None:
        return {}
    if not isinstance(npz, dict) or {type(npz.get(name)) for name in ("file", "sha256")} != {str}:
        raise CorruptError("lacks a part of a record, or holds more")
    try:
        packed = read_file(path.with_name(Path(npz["file"]).name))
    except FileNotFoundError as error:
        raise CorruptError("has lost its npz") from error
    if hashlib.sha256(packed).hexdigest() != npz["sha256"]:
        raise CorruptError("has an npz with another hash")
    try:
        return read_npz(io.BytesIO(packed), name=npz["file"])
    except (DataError, zipfile.BadZipFile) as error:
        raise CorruptError(f"has an npz that cannot be read ({error})") from error
