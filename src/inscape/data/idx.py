"""The IDX format of MNIST: a header in big-endian integers, then raw bytes."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inscape.errors import DataError

_BYTES = 8  # the type code of unsigned bytes, the only one that these files use


def read_idx(raw: bytes, name: str = "the file") -> NDArray[np.uint8]:
    """Return the array that an unpacked IDX file of bytes holds; ``name`` is for the errors.

    >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    array([7, 8, 9], dtype=uint8)
    """
    if len(raw) < 4 or raw[:2] != b"\0\0":
        raise DataError(
            f"{name} must start with the IDX magic bytes 0 0 8, found "
            f"{raw[:4].hex(' ') or 'none'}: it is no IDX file (unpack it if it is compressed)."
        )
    if raw[2] != _BYTES:
        raise DataError(
            f"{name} must hold unsigned bytes (IDX type 8), found type {raw[2]}: "
            "only the published uint8 files are read."
        )
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise DataError(
            f"{name} must have a header of {start} bytes for {raw[3]} axes, found {len(raw)}: "
            "it is truncated; fetch it again."
        )
    shape = struct.unpack(f">{raw[3]}I", raw[4:start])
    expected, size = math.prod(shape), len(raw) - start
    if size != expected:
        fault = "is truncated" if size < expected else "has trailing bytes"
        raise DataError(
            f"{name} must hold {expected} bytes of data for its shape {shape}, found {size}: "
            f"it {fault}; fetch it again."
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def write_idx(array: NDArray[np.uint8]) -> bytes:
    """Return the bytes of the unpacked IDX file that holds ``array``."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, _BYTES, array.ndim, *array.shape)
    return header + array.tobytes()


def unpacked(path: Path, *, limit: int) -> bytes:
    """Read a plain or gzipped file, at most ``limit`` bytes of it once unpacked."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        try:
            return gzip.GzipFile(fileobj=file).read(limit) if packed else file.read(limit)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"{path} must be a whole gzip file, found a damaged one ({error}): fetch it again."
            ) from error
