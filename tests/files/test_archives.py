import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from inscape.errors import DataError
from inscape.files.archives import member_names, opened_zip, read_member, read_npy, read_npz

ARRAYS = {
    "a": np.arange(12.0).reshape(3, 4),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "text": np.array("hi"),
    "empty": np.zeros((0, 3)),
    "single": np.array(3.5, np.float32),
}


@pytest.fixture
def npz(tmp_path) -> Path:
    np.savez_compressed(tmp_path / "a.npz", **ARRAYS)
    return tmp_path / "a.npz"


def test_arrays_are_those_of_numpy(npz):
    for arrays in (read_npz(npz), read_npz(io.BytesIO(npz.read_bytes()))):
        assert list(arrays) == list(ARRAYS)
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], array)
            assert arrays[name].dtype == array.dtype
    assert list(read_npz(npz, only="text")) == ["text"]
    for array in ARRAYS.values():
        np.save(npz.with_suffix(".npy"), array)
        np.testing.assert_array_equal(read_npy(npz.with_suffix(".npy")), array)


def test_the_declared_sizes_are_added_before_anything_is_read(npz):
    with pytest.raises(DataError, match="must unpack to at most 100 bytes, found 796 bytes"):
        read_npz(npz, max_size=100)
    with pytest.raises(DataError, match=r"data\.npz must unpack"):
        read_npz(io.BytesIO(npz.read_bytes()), name="data.npz", max_size=100)
    np.save(npz.with_suffix(".npy"), ARRAYS["a"])
    with pytest.raises(DataError, match="at most 100 bytes, found 224 bytes"):
        read_npy(npz.with_suffix(".npy"), max_size=100)


def lying(path: Path, declared: int) -> Path:
    """Write a megabyte of zeros that declares another size."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(1_000_000))
    raw = bytearray(path.read_bytes())
    for place in (22, raw.rindex(b"PK\1\2") + 24):
        raw[place : place + 4] = struct.pack("<I", declared)
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("declared", [10, 999_999, 1_000_001, 2_000_000])
def test_unpacking_stops_where_the_size_is_not_the_declared_one(tmp_path, declared):
    path = lying(tmp_path / "a.zip", declared)
    with pytest.raises(zipfile.BadZipFile), opened_zip(path) as archive:
        read_member(archive, "a")


def test_a_member_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path, monkeypatch):
    path = lying(tmp_path / "a.zip", 10)
    longest = 0
    inner = zipfile.ZipExtFile._read1  # type: ignore[attr-defined]

    def read(file: zipfile.ZipExtFile, count: int) -> bytes:
        nonlocal longest
        longest = max(longest, count)
        found: bytes = inner(file, count)
        return found

    monkeypatch.setattr(zipfile.ZipExtFile, "_read1", read)
    with pytest.raises(zipfile.BadZipFile), opened_zip(path) as archive:
        read_member(archive, "a")
    assert 0 < longest <= 1 << 20


HEADERS = {
    "more than there is": "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
    "negative": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
    "overflow": "{'descr': '<f8', 'fortran_order': False, 'shape': (2147483648, 2147483648)}",
    "a large item": "{'descr': '<U999999999', 'fortran_order': False, 'shape': (3,)}",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
    "an expression": "{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': ()}",
    "no header": "",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_header_that_lies_is_refused(tmp_path, header):
    raw = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + bytes(64)
    (tmp_path / "lie.npy").write_bytes(raw)
    with pytest.raises(zipfile.BadZipFile):
        read_npy(tmp_path / "lie.npy")
    with zipfile.ZipFile(tmp_path / "lie.npz", "w") as archive:
        archive.writestr("x.npy", raw)
    with pytest.raises(zipfile.BadZipFile):
        read_npz(tmp_path / "lie.npz")


def test_an_unknown_version_is_refused(tmp_path):
    (tmp_path / "new.npy").write_bytes(b"\x93NUMPY\x09\0" + bytes(100))
    with pytest.raises(zipfile.BadZipFile, match=r"version \(9, 0\) of the npy format is unknown"):
        read_npy(tmp_path / "new.npy")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        archive.writestr("x.npy", bytes(100))
    with pytest.raises(zipfile.BadZipFile, match=rf"'x\.npy' is packed by method {method}"):
        read_npz(tmp_path / "a.npz")


def test_encrypted_members_are_refused(npz):
    raw = bytearray(npz.read_bytes())
    raw[raw.index(b"PK\1\2") + 8] |= 1
    npz.write_bytes(raw)
    with pytest.raises(zipfile.BadZipFile, match=r"'a\.npy' is encrypted"):
        read_npz(npz)


def test_a_wrong_checksum_is_seen(npz):
    raw = bytearray(npz.read_bytes())
    raw[raw.index(b"PK\1\2") + 16] ^= 1
    npz.write_bytes(raw)
    with pytest.raises(zipfile.BadZipFile, match="Bad CRC-32"):
        read_npz(npz)


def test_an_archive_that_readers_take_for_two_is_refused(npz):
    raw = npz.read_bytes()
    for name, other in {
        "is not that of a zip archive": raw + b"comment",
        "not at its end": b"before" + raw,
        "in two places": raw[:-22] + b"PK\6\7" + bytes(16) + raw[-22:],
    }.items():
        npz.write_bytes(other)
        for reader in (read_npz, member_names):
            with pytest.raises(zipfile.BadZipFile, match=name):
                reader(npz)


def test_a_list_of_too_many_members_is_not_read(npz):
    raw = npz.read_bytes()
    npz.write_bytes(raw[:-10] + struct.pack("<I", 2**30) + raw[-6:])
    with pytest.raises(zipfile.BadZipFile, match="its list of members takes 1073741824 bytes"):
        member_names(npz)
