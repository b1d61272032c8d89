"""The store: one JSON for each cell, with an npz for its arrays; the files are the truth.

Each file is written under a temporary name of its own and renamed, the npz before the JSON that
names it and its hash. So whoever reads finds whole records or none, however many processes write,
and wherever they are killed.
"""

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inscape.files.atomic import write_pair
from inscape.lab.encoding import Arrays
from inscape.lab.record import SCHEMA as SCHEMA
from inscape.lab.record import (
    CorruptError,
    parsed,
    read_file,
    to_content,
    to_json,
    to_record,
)
from inscape.lab.record import Record as Record
from inscape.lab.record import StoreError as StoreError


class Store:
    """A folder of records.

    Attributes:
        root: The folder; made when the first record is written.
        mends: Whether damaged records are set aside; else they are left as they are.
        notices: A sentence about each record that was repaired, or is to be.
        damaged: What is wrong with each damaged record that was met, by experiment, scale, key.
        unhashed: Experiment, scale and key of each record that was read and carries no hash.
    """

    def __init__(self, root: str | Path, *, mends: bool = True) -> None:
        self.root = Path(root)
        self.mends = mends
        self.notices: list[str] = []
        self.damaged: dict[tuple[str, str, str], str] = {}
        self.unhashed: set[tuple[str, str, str]] = set()

    def take_notices(self) -> tuple[str, ...]:
        """Return the notices so far and clear them."""
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
        content, arrays = to_content(record)
        path.parent.mkdir(parents=True, exist_ok=True)
        npz = None
        if arrays:
            packed = _packed(arrays)
            digest = hashlib.sha256(packed).hexdigest()
            content["npz"] = {"file": f"{record.key}.{digest[:12]}.npz", "sha256": digest}
            npz = path.with_name(content["npz"]["file"]), packed
        write_pair(path, to_json(content), npz, former=_npz_of(path))
        return path

    def read(self, experiment: str, scale: str, key: str) -> Record | None:
        """Return a record, or None where there is none that can be used.

        A damaged one is set aside under another name, and a notice says so; a store that does not
        mend only says it.
        """
        path = self.path(experiment, scale, key)
        content: dict[str, Any] = {}
        for _ in range(2):  # a record that is being replaced may lose its npz between two reads
            try:
                content = parsed(read_file(path))
                record = to_record(path, content)
            except FileNotFoundError:
                return None
            except OSError as error:
                self._left_out(path, f"cannot be read ({error.strerror})")
                return None
            except CorruptError as error:
                problem = str(error)
            else:
                if "sha256" not in content:
                    self.unhashed.add((experiment, scale, key))
                return record
        self.damaged[experiment, scale, key] = problem
        self._set_aside(path, content, problem)
        return None

    def records(
        self, experiment: str, scale: str, keys: Sequence[str] | None = None
    ) -> list[Record]:
        """Return the records with the given keys that are there, or all by key."""
        if keys is None:
            keys = sorted(path.stem for path in self.folder(experiment, scale).glob("*.json"))
        records = (self.read(experiment, scale, key) for key in keys)
        return [record for record in records if record is not None]

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

    def rebuild_index(self) -> int:
        """Make the index anew from the files and return how many records it lists."""
        from inscape.lab.index_file import Index

        return Index(self).rebuild()

    def _set_aside(self, path: Path, content: Mapping[str, Any], problem: str) -> None:
        if not self.mends:
            self.notices.append(
                f"the record {path} {problem}: inscape reproduce sets it aside and computes it "
                "anew."
            )
            return
        try:
            for file in (path, *_named_npz(path, content)):
                step_aside(file)
        except OSError as error:
            self._left_out(path, problem, error.strerror or str(error))
            return
        self.notices.append(
            f"the record {path} {problem}: it was set aside as .corrupt and will be computed anew."
        )

    def _left_out(self, path: Path, problem: str, why: str = "") -> None:
        reason = f" ({why})" if why else ""
        self.notices.append(f"the record {path} {problem}: it is left out{reason}.")


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


def _npz_of(path: Path) -> Path | None:
    """Return the npz of a record that is to be replaced."""
    try:
        return next(_named_npz(path, parsed(read_file(path))), None)
    except (OSError, CorruptError):
        return None


def _named_npz(path: Path, content: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the npz that belongs to a record, and to no other, if its content names one."""
    match content.get("npz"):
        case {"file": str(name)} if name == Path(name).name and name.startswith(f"{path.stem}."):
            yield path.with_name(name)


def step_aside(path: Path) -> None:
    """Rename a file or a folder to the first free name that ends in ``.corrupt-`` and a number."""
    number = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{number}")).exists():
        number += 1
    try:
        path.replace(aside)
    except FileNotFoundError:  # another process was quicker
        return
