"""Telling files apart by what they hold, before anything reads them."""

import pickletools
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Literal
from zipfile import BadZipFile

from inscape.errors import did_you_mean
from inscape.files.archives import member_names, opened_zip
from inscape.files.atomic import check_regular
from inscape.files.tensors import is_pickle

Kind = Literal[
    "torch",
    "torchscript",
    "exported",
    "numpy archive",
    "numpy array",
    "safetensors",
    "pickle",
    "hdf5",
    "lfs pointer",
    "web page",
    "truncated archive",
    "empty",
    "other",
]

_PHRASES: dict[Kind, str] = {
    "torch": "a file of torch.save",
    "torchscript": "a TorchScript archive",
    "exported": "an exported program (.pt2)",
    "numpy archive": "a NumPy archive (.npz)",
    "numpy array": "a NumPy array (.npy)",
    "safetensors": "a safetensors file",
    "pickle": "a pickle",
    "hdf5": "an HDF5 file (Keras?)",
    "lfs pointer": "a Git LFS pointer instead of the file itself (run git lfs pull)",
    "web page": "a web page (was the download an error message?)",
    "truncated archive": "a truncated archive (copy or save it again)",
    "empty": "an empty file",
    "other": "a file of another kind",
}

_STARTS: tuple[tuple[bytes, Kind], ...] = (
    (b"\x93NUMPY", "numpy array"),
    (b"\x89HDF\r\n", "hdf5"),
    (b"version https://git-lfs", "lfs pointer"),
    (b"<!doctype html", "web page"),
    (b"<html", "web page"),
)

#: Bytes of a pickle that are searched for names; what follows are numbers.
_LOOK = 1 << 26
_ANY_SIZE = 1 << 62  # of the archive around it, since no more than that is read of it

#: What every file of torch.save names, and no reader has to run.
_PLAIN = ("torch._utils.", "torch.storage.", "collections.OrderedDict", "numpy.")


def existing(path: str | Path, role: str) -> Path:
    """Return the path of a file that is there, or offer the names that are near."""
    try:
        file = Path(path).expanduser()
    except RuntimeError as error:
        raise ValueError(
            f"{role} must be an existing file, found {path}, and no such user: check the path."
        ) from error
    if file.is_file():
        return file
    check_regular(file, role)
    names = [item.name for item in file.parent.iterdir()] if file.parent.is_dir() else []
    raise ValueError(
        f"{role} must be an existing file, found no {file}: "
        f"{did_you_mean(file.name, names, otherwise='check the path.', quoted=True)}"
    )


def kind_of(path: Path) -> Kind:
    """Return what a file is, judged by its bytes."""
    with path.open("rb") as file:
        start = file.read(64)
    if not start:
        return "empty"
    if start.startswith(b"PK"):
        return _kind_of_zip(path)
    for mark, kind in _STARTS:
        if start.lower().startswith(mark.lower()):
            return kind
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < path.stat().st_size:
        return "safetensors"
    return "pickle" if is_pickle(start) else "other"


def phrase(path: Path) -> str:
    """Say what a file is, for the part of an error that says what was found."""
    return _PHRASES[kind_of(path)]


def short(error: Exception) -> str:
    """Return the kind of an error and the one line of it that says something."""
    match = re.search(r"Unsupported operand \d+", str(error))  # deep in a long text of PyTorch
    text = match[0] if match else str(error).strip().partition("\n")[0]
    text = text.partition(" This file can still be loaded")[0]  # PyTorch's advice to trust it
    return f"{type(error).__name__}: {text}"


def globals_in(path: Path) -> list[str]:
    """Return the names of functions and classes that a pickle would call, without calling any.

    Of a damaged archive none are returned.
    """
    try:
        names = list(_globals_in_stream(BytesIO(_pickle_in(path))))
    except BadZipFile:
        return []
    return [name for name in dict.fromkeys(names) if not name.startswith(_PLAIN)]


def _pickle_in(path: Path) -> bytes:
    """Return the first bytes of a pickle, or of that in an archive of torch.save."""
    if kind_of(path) not in ("torch", "torchscript"):
        with path.open("rb") as file:
            return file.read(_LOOK)
    with opened_zip(path, max_size=_ANY_SIZE) as archive:
        name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        with archive.open(name) as file:
            return file.read(_LOOK)


def _globals_in_stream(stream: BytesIO) -> Iterator[str]:
    """Yield names as far as the stream can be read: several pickles may stand in a row."""
    try:
        while True:
            yield from _globals_in_one(stream)
    except (ValueError, IndexError, EOFError, UnicodeDecodeError):
        return


def _globals_in_one(stream: BytesIO) -> Iterator[str]:
    texts: list[str] = []
    memo: dict[int, str | None] = {}
    last: str | None = None
    for code, arg, _ in pickletools.genops(stream):
        match code.name:
            case "GLOBAL" | "INST":
                yield str(arg).replace(" ", ".")
            case "STACK_GLOBAL":
                yield ".".join(texts[-2:])
            case "MEMOIZE":
                memo[len(memo)] = last
                continue
            case "BINGET" | "LONG_BINGET":
                arg = memo.get(int(arg or 0))
        last = arg if isinstance(arg, str) else None
        if last is not None:
            texts.append(last)


def _kind_of_zip(path: Path) -> Kind:
    try:
        names = member_names(path)
    except BadZipFile:
        return "truncated archive"
    ends = {name.partition("/")[2] for name in names}
    if "archive_format" in ends or "models/model.json" in ends:
        return "exported"
    if "constants.pkl" in ends and any(name.startswith("code/") for name in ends):
        return "torchscript"
    if "data.pkl" in ends:
        return "torch"
    return "numpy archive" if names and all(n.endswith(".npy") for n in names) else "other"
