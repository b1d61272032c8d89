"""Hostile NumPy files and tables."""

import io
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from hostile.kinds import Payload, kind


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method, compresslevel=1) as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    return buffer.getvalue()


def npy(array: Any) -> bytes:
    """Return an npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def with_header(header: str, body: bytes = bytes(64), version: int = 1) -> bytes:
    """Return an npy file with any header."""
    length = struct.pack("<H", len(header)) if version == 1 else struct.pack("<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + body


def declared(raw: bytes, size: int) -> bytes:
    """Return an archive whose first member declares another size."""
    changed = bytearray(raw)
    for place in (22, changed.index(b"PK\1\2") + 24):
        changed[place : place + 4] = struct.pack("<I", size)
    return bytes(changed)


X = npy(np.ones((8, 6), np.float32))
HEADER = "{{'descr': {}, 'fortran_order': False, 'shape': {}}}"
WHOLE = packed({"x.npy": X})
BOMB = npy(np.zeros(200_000_000, np.uint8))


def _listed(name: str, suffix: str, content: Any, opened_as: str = "data") -> None:
    """Put a file with some bytes, or those that a function of the mark returns, on the list."""

    def make(path: Path, mark: Path) -> None:
        path.write_bytes(content(mark) if callable(content) else content)

    make.__name__ = name
    kind(opened_as, suffix)(make)


_listed("bomb_that_declares_4_gb", ".npz", declared(WHOLE, 4_000_000_000))
_listed("bomb_that_declares_a_kilobyte", ".npz", lambda _: declared(packed({"x.npy": BOMB}), 1000))
_listed("many_bombs", ".npz", declared(packed({f"{i}.npy": X for i in range(3)}), 2**32 - 1))
_listed("bzip2", ".npz", packed({"x.npy": X}, zipfile.ZIP_BZIP2))
_listed("lzma", ".npz", packed({"x.npy": X}, zipfile.ZIP_LZMA))
_listed("no_members", ".npz", packed({}))
_listed("path_out_of_the_folder", ".npz", lambda m: packed({f"../../{m}.npy": X, f"{m}.npy": X}))
_listed("objects_in_an_archive", ".npz", lambda m: packed({"x.npy": npy([Payload(m)])}))
_listed("other_members", ".npz", packed({"x.npy": X, "y.txt": b"text"}))
_listed("text_before", ".npz", b"PK text" + WHOLE)
_listed("text_after", ".npz", WHOLE + b"text")
_listed("second_directory", ".npz", WHOLE[:-22] + b"PK\6\7" + bytes(16) + WHOLE[-22:])
_listed("long_directory", ".npz", WHOLE[:-10] + struct.pack("<I", 2**31) + WHOLE[-6:])
_listed("cut", ".npz", WHOLE[:-40])
_listed("checksum", ".npz", WHOLE.replace(WHOLE[14:18], b"1234"))
_listed("only_a_signature", ".npz", b"PK\5\6" + bytes(18))
_listed("names_in_no_encoding", ".npz", WHOLE.replace(b"x.npy", b"\xff\xfe.np"))
_listed("inner_header", ".npz", packed({"x.npy": with_header(HEADER.format("'<f8'", "(10**9,)"))}))

_listed("shape_beyond_the_file", ".npy", with_header(HEADER.format("'<f8'", "(1000000000000,)")))
_listed("shape_below_zero", ".npy", with_header(HEADER.format("'<f8'", "(-1, -8)")))
_listed("shape_that_overflows", ".npy", with_header(HEADER.format("'<f8'", f"({2**32}, {2**32})")))
_listed("nothing_times_much", ".npy", with_header(HEADER.format("'<f8'", f"(0, {2**62})"), b""))
_listed("long_items", ".npy", with_header(HEADER.format("'<U900000000'", "(2,)")))
_listed("times", ".npy", with_header(HEADER.format("'<M8[s]'", "(8,)")))
_listed("complex_numbers", ".npy", npy(np.ones((4, 2), complex)))
_listed("records", ".npy", npy(np.zeros(4, [("a", "f4"), ("b", "i4")])))
_listed("objects", ".npy", lambda m: npy(np.array([Payload(m)], dtype=object)))
_listed("code_in_a_header", ".npy", lambda m: with_header(f"__import__('os').mknod({str(m)!r})"))
_listed("deep_header", ".npy", with_header("(" * 5000))
_listed("long_header", ".npy", with_header("{" + "'a':1," * 100_000 + "}", version=2))
_listed("new_version", ".npy", with_header("{}", version=9))
_listed("not_finite", ".npy", npy(np.full((4, 2), np.nan)))
_listed("pickle_under_another_name", ".npy", lambda m: pickle.dumps(Payload(m)))

_listed("noughts", ".csv", bytes(1000))
_listed("random_bytes", ".csv", bytes(range(256)) * 100)
_listed("one_long_line", ".csv", b"1," * 2_000_000)
_listed("open_quote", ".csv", b'"' + b"1,2\n" * 1000)
_listed("other_encoding", ".csv", "1,2\n3,4\n".encode("utf-16"))
_listed("uneven_rows", ".csv", b"1,2\n1,2,3\n" * 10)
_listed("formulas", ".csv", b'a,b\n=cmd|"/c calc"!A1,1\n')
_listed("many_columns", ".csv", b",".join([b"1"] * 20_000) + b"\n" + b",".join([b"2"] * 20_000))
_listed("huge_numbers", ".csv", b"1e999,1\n" + b"9" * 5000 + b",2\n")


def _encrypted(_: Path) -> bytes:
    raw = bytearray(WHOLE)
    raw[raw.index(b"PK\1\2") + 8] |= 1
    return bytes(raw)


_listed("encrypted", ".npz", _encrypted)

_ABOUT = (
    '{"schema": 1, "settings": {"betas": [], "penalties": []}, "data": "", "trainable": []}',
    '{"schema": 99}',
    '{"schema": "1"}',
    "[" * 5000,
    "{}",
    '{"schema": 1' + "0" * 5000 + "}",
)
for _number, _about in enumerate(_ABOUT):
    _members = {"about.npy": npy(np.array(_about)), "rates.npy": X, "checkpoints.npy": X}
    _listed(f"about_{_number}", ".npz", packed(_members), "trajectory")
_listed("bomb", ".npz", declared(WHOLE, 4_000_000_000), "trajectory")
_listed("silent_bomb", ".npz", lambda _: declared(packed({"x.npy": BOMB}), 1000), "trajectory")
_listed("objects", ".npz", lambda m: packed({"about.npy": npy([Payload(m)])}), "trajectory")
_listed("no_archive", ".npz", b"rubbish", "trajectory")


@kind("trajectory", ".npz")
@kind("data", ".npz")
def name_that_runs_on(path: Path, _: Path) -> None:
    """Declare a name of a member that takes all the rest of the file."""
    content = bytearray(packed({"x.npy": npy(np.ones((400, 6)))}, zipfile.ZIP_STORED))
    struct.pack_into("<H", content, 26, 19_000)
    path.write_bytes(content)


@kind("trajectory", ".npz")
@kind("data", ".npz")
def pipe(path: Path, _: Path) -> None:
    """Write a pipe that nobody writes to."""
    os.mkfifo(path)


@kind("trajectory", ".npz")
@kind("data", ".npz")
def folder(path: Path, _: Path) -> None:
    """Write a folder."""
    path.mkdir()


@kind("trajectory", ".npz")
@kind("data", ".npz")
def link_to_itself(path: Path, _: Path) -> None:
    """Write a link without end."""
    path.symlink_to(path)


@kind("data", ".npy")
def endless_device(path: Path, _: Path) -> None:
    """Write a link to a device that can be read for ever."""
    path.symlink_to("/dev/zero")
