"""Where the files of a data set are, and whether they are what their names say."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from inscape.data.catalogue import lookup
from inscape.data.files import FILE_SETS, DatasetPart, FileSet, Form, Remote
from inscape.data.idx import unpacked, write_idx
from inscape.data.npz import read_npz
from inscape.data.places import cache_dir, candidates, roots
from inscape.errors import DataError

_UNKNOWN_SIZE = 1 << 30  # read no more than this of a file whose size is not published


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One part of a data set: the file that holds it and the state of that file."""

    dataset: str
    part: str
    state: Literal["ok", "missing", "bad"]
    path: Path | None = None
    kind: str = ""
    detail: str = ""
    raw: bytes = field(default=b"", repr=False)  # the unpacked bytes, which were checked

    def row(self) -> dict[str, str]:
        """Return the row of a table or of JSON."""
        path = "" if self.path is None else str(self.path)
        shown = {"dataset": self.dataset, "part": self.part, "state": self.state, "path": path}
        return {**shown, "detail": self.detail}


def file_set(name: str) -> FileSet | None:
    """Return the published files behind a data set, or None if it needs none."""
    files = lookup(name.partition(":")[0]).files
    return FILE_SETS[files] if files else None


def find(name: str, data_dir: str | Path | None = None) -> list[DataFile]:
    """Say where each file of a data set is and if it is ok, missing or bad; change nothing.

    Every file is read and hashed. A data set that needs no files gives an empty list.
    """
    files = file_set(name)
    rows = [] if files is None else search(files, roots(data_dir))
    return [replace(row, raw=b"") for row in rows]


def search(files: FileSet, folders: tuple[Path, ...]) -> list[DataFile]:
    """Look for every part: its bad files, and then either the good one or, if none, ``missing``."""
    return [row for part in files.parts for row in _examined(files, part, folders)]


def set_aside(file: DataFile) -> DataFile:
    """Rename a bad file of our own cache to ``<name>.bad``; leave a file of the user alone."""
    path = file.path
    if file.state != "bad" or path is None:
        return file
    if not path.is_relative_to(cache_dir()):
        return replace(file, detail=f"{file.detail}; left where it is and not used")
    aside = path.with_name(f"{path.name}.bad")
    try:
        path.replace(aside)
    except FileNotFoundError:  # one file may hold several parts and be set aside with the first
        return replace(file, path=aside, detail=f"{file.detail}; set aside as {aside.name}")
    except OSError as error:
        reason = f"not used, and not set aside: {error.strerror}"
        return replace(file, detail=f"{file.detail}; {reason}")
    return replace(file, path=aside, detail=f"{file.detail}; set aside as {aside.name}")


def gather(
    files: FileSet, data_dir: str | Path | None = None
) -> tuple[dict[str, DataFile], list[str]]:
    """Return the good file of each part and notes on what is bad, or say what is missing."""
    folders = roots(data_dir)
    rows = [set_aside(row) for row in search(files, folders)]
    good = {row.part: row for row in rows if row.state == "ok"}
    bad = [f"{row.path}: {row.detail}" for row in rows if row.state == "bad"]
    lacking = [part.name for part in files.parts if part.name not in good]
    if lacking and not (files.partial and any(part != "test_batch" for part in good)):
        raise DataError(_missing(files, lacking, bad, folders))
    return good, [f"ignored: {line}" for line in bad]


def check_files(rows: list[DataFile], *, complete: bool) -> None:
    """Raise if a file is bad or, where the sets must be ``complete``, missing from one."""
    bad = [f"{row.path} ({row.detail})" for row in rows if row.state == "bad"]
    if bad:
        raise DataError(
            f"every file must be as published, found {len(bad)} that differ: {'; '.join(bad)}; "
            "fetch them again with 'inscape data fetch'."
        )
    for name, files in FILE_SETS.items():
        own_rows = [row for row in rows if row.dataset == name]
        lacking = [row.part for row in own_rows if row.state == "missing"]
        if complete and lacking and not (files.partial and len(lacking) < len(own_rows)):
            raise DataError(
                f"{name} lacks {', '.join(lacking)}: run 'inscape data fetch {name}', or name the "
                "folder that holds them with --data-dir."
            )


def mismatch(raw: bytes, known: Form | Remote) -> str:
    """Say how bytes differ from what was published; nothing if they do not."""
    if known.size and len(raw) != known.size:
        return f"{known.size} bytes expected, found {len(raw)}"
    for algorithm, digest in ((known.algorithm, known.digest), ("sha256", known.sha256)):
        actual = hashlib.new(algorithm, raw, usedforsecurity=False).hexdigest() if digest else ""
        if actual != digest:
            return f"{algorithm} {digest[:12]}... expected, found {actual[:12]}..."
    return ""


def _examined(files: FileSet, part: DatasetPart, folders: tuple[Path, ...]) -> Iterator[DataFile]:
    about = partial(DataFile, dataset=files.name, part=part.name)
    bad = False
    for path, form in candidates(files, part, folders):
        try:
            raw = _content(path, form, part.name)
            reason = mismatch(raw, form)
        except DataError as error:
            raw, reason = b"", str(error)
        except OSError as error:
            raw, reason = b"", f"cannot be read: {error.strerror or error}"
        if not reason:
            yield about(state="ok", path=path, kind=form.kind, raw=raw)
            return
        if not _belongs_elsewhere(raw, path, files):
            bad = True
            yield about(state="bad", path=path, kind=form.kind, detail=reason)
    if not bad:
        yield about(state="missing")


def _content(path: Path, form: Form, part: str) -> bytes:
    if form.kind == "npz":
        return write_idx(read_npz(path, part))
    # One byte more than expected is enough to see that a file is too long.
    return unpacked(path, limit=form.size + 1 if form.size else _UNKNOWN_SIZE)


def _belongs_elsewhere(raw: bytes, path: Path, files: FileSet) -> bool:
    """Tell whether it is a good file of another set: MNIST and Fashion-MNIST share their names."""
    return any(
        not mismatch(raw, form)
        for other in FILE_SETS.values()
        if other is not files and raw
        for part in other.parts
        for form in part.forms
        if path.name in form.names
    )


def _missing(files: FileSet, lacking: list[str], bad: list[str], folders: tuple[Path, ...]) -> str:
    subfolders = ", ".join(name for name in files.folders if name)
    wrong = f"; not used: {'; '.join(bad)}" if bad else ""
    return (
        f"{files.name} needs {len(files.parts)} files and lacks {', '.join(lacking)}: looked in "
        f"{' and '.join(map(str, folders))} and there in {subfolders}{wrong}; run "
        f"'inscape data fetch {files.name}', or name the folder that holds them with --data-dir, "
        "data_dir= or INSCAPE_DATA_DIR."
    )
