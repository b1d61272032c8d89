"""Zip archives and NumPy arrays from outside: their declared sizes are read before their bytes."""

import math
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inscape.errors import DataError
from inscape.files.size_limits import check_size

#: Bytes that are unpacked at a time: no member may take more before its size is compared.
_CHUNK = 1 << 20

#: Bytes of the list of members that an archive may have: some hundred thousand names.
_DIRECTORY = 1 << 26

_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@contextmanager
def opened_zip(
    source: Path | BufferedIOBase, *, name: object = None, max_size: int | None = None
) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive that declares no more bytes than the limit, and only plain members.

    Whatever is wrong with it, also within the block, is raised as ``BadZipFile``; only the size
    is a ``DataError``.

    Args:
        source: The file.
        name: What to call it in errors; its path if not given.
        max_size: Bytes that it may unpack to; 2 GB or a quarter of memory if not given.
    """
    try:
        _check_directory(source)
        with zipfile.ZipFile(source) as archive:
            members = archive.infolist()
            for member in members:
                _check_member(member)
            check_size(name or source, sum(m.file_size for m in members), max_size=max_size)
            yield archive
    except DataError:
        raise
    except Exception as error:  # damage may raise nearly anything
        raise _damaged(error) from error


def member_names(path: Path) -> list[str]:
    """Return the names of the members of a zip archive, unpacking nothing."""
    return [member.filename for member in _members(path)]


def declared_size(path: Path) -> int:
    """Return the bytes that the members of a zip archive declare, unpacking nothing."""
    return sum(member.file_size for member in _members(path))


def _members(path: Path) -> list[zipfile.ZipInfo]:
    try:
        _check_directory(path)
        with zipfile.ZipFile(path) as archive:
            return archive.infolist()
    except Exception as error:  # damage may raise nearly anything
        raise _damaged(error) from error


def _damaged(error: Exception) -> zipfile.BadZipFile:
    """Return the error of a damaged file: one short line, for zipfile quotes whole files."""
    line = str(error).partition("\n")[0]
    line = line if len(line) < 300 else f"{line[:200]}..."
    return zipfile.BadZipFile(line or type(error).__name__)


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the bytes of a member; unpacking stops where they exceed the declared size."""
    declared = archive.getinfo(name).file_size
    content = bytearray()
    with archive.open(name) as file:
        while chunk := file.read(_CHUNK):
            content += chunk
    if len(content) != declared:
        raise zipfile.BadZipFile(f"{name!r} has {len(content)} bytes and declares {declared}")
    return bytes(content)


def read_npz(
    source: Path | BufferedIOBase,
    *,
    name: object = None,
    max_size: int | None = None,
    only: str | None = None,
) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npz archive, or only one, without pickles; see :func:`opened_zip`."""
    with opened_zip(source, name=name, max_size=max_size) as archive:
        arrays = {}
        for member in archive.infolist():
            key = member.filename.removesuffix(".npy")
            if only not in (None, key):
                continue
            with archive.open(member) as file:
                arrays[key] = _read_array(file, member.file_size)
                while file.read(_CHUNK):  # to its end, where its checksum is compared
                    pass
        return arrays


def read_npy(path: Path, *, max_size: int | None = None) -> NDArray[Any]:
    """Return the array of an npy file, without pickles; damage is a ``BadZipFile`` here too."""
    size = path.stat().st_size
    check_size(path, size, max_size=max_size)
    try:
        with path.open("rb") as file:
            return _read_array(file, size)
    except Exception as error:  # damage may raise nearly anything
        raise _damaged(error) from error


def _read_array(file: Any, size: int) -> NDArray[Any]:
    """Return an array whose header declares no more bytes than follow it."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version} of the npy format is unknown")
    read_header = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded without pickles")
    count, remaining = math.prod(shape), size - file.tell()
    if min(shape, default=0) < 0 or count * dtype.itemsize > remaining:
        raise ValueError(f"shape {shape} of {dtype} declares more bytes than the {remaining} there")
    content = np.empty(count * dtype.itemsize, np.uint8)
    view, done = content.data, 0
    while done < len(content):
        read = file.readinto(view[done : done + _CHUNK])
        if not read:
            raise EOFError("its data end early")
        done += read
    flat: NDArray[Any] = content.view(dtype) if count else np.empty(0, dtype)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _check_member(member: zipfile.ZipInfo) -> None:
    if member.flag_bits & 1:
        raise ValueError(f"{member.filename!r} is encrypted")
    if member.compress_type not in _COMPRESSIONS:
        raise ValueError(f"{member.filename!r} is packed by method {member.compress_type}")


def _check_directory(source: Path | BufferedIOBase) -> None:
    """Refuse a list of members that is too long, or that two readers would find in two places.

    An archive ends in a record that says where its list of members is, and a large one has a
    second such record (zip64). Python and PyTorch look for the latter in different ways.
    """
    end, length = _end(source)
    if end[-22:-18] != b"PK\5\6":
        raise ValueError("its end is not that of a zip archive")
    record = length - 22
    size, start = struct.unpack("<II", end[-10:-2])
    if end[-42:-38] == b"PK\6\7":
        record = length - 98
        (place,) = struct.unpack("<Q", end[-34:-26])
        size, start = struct.unpack("<QQ", end[-58:-42])
        if end[-98:-94] != b"PK\6\6" or place != record:
            raise ValueError("its list of members is in two places")
    if size > _DIRECTORY:
        raise ValueError(f"its list of members takes {size} bytes")
    if start + size != record:
        raise ValueError("its list of members is not at its end")


def _end(source: Path | BufferedIOBase) -> tuple[bytes, int]:
    """Return the last bytes of a file and its length."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            return _end(file)
    length = source.seek(0, 2)
    source.seek(max(0, length - 98))
    return source.read(98), length
