import gzip
import struct

import numpy as np
import pytest

from inscape.data.idx import read_idx, unpacked, write_idx
from inscape.errors import DataError

RAW = struct.pack(">BBBBII", 0, 0, 8, 2, 2, 3) + bytes([1, 2, 3, 4, 5, 6])


def test_a_file_written_by_hand_is_read():
    np.testing.assert_array_equal(read_idx(RAW), [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4), (0,)])
def test_write_and_read_are_inverse(shape):
    array = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    back = read_idx(write_idx(array))
    assert back.shape == shape
    np.testing.assert_array_equal(back, array)


def test_the_published_magic_numbers():
    images = write_idx(np.zeros((1, 28, 28), np.uint8))
    assert int.from_bytes(images[:4], "big") == 2051
    assert int.from_bytes(write_idx(np.zeros(1, np.uint8))[:4], "big") == 2049


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "train must start with the IDX magic bytes 0 0 8, found none"),
        (b"\0\0\x08", "found 00 00 08: it is no IDX file"),
        (b"\x1f\x8b\x08\x00", "found 1f 8b 08 00: it is no IDX file .unpack it"),
        (b"\0\0\x0d\x01\0\0\0\0", "must hold unsigned bytes .IDX type 8., found type 13"),
        (b"\0\0\x08\x03\0\0\0\x01", "a header of 16 bytes for 3 axes, found 8: it is truncated"),
        (RAW[:-1], r"6 bytes of data for its shape \(2, 3\), found 5: it is truncated"),
        (RAW + b"x", "found 7: it has trailing bytes; fetch it again"),
    ],
)
def test_every_fault_is_named(raw, text):
    with pytest.raises(DataError, match=text):
        read_idx(raw, "train")


def test_plain_and_packed_files_give_the_same_bytes(tmp_path):
    (tmp_path / "plain").write_bytes(RAW)
    (tmp_path / "packed").write_bytes(gzip.compress(RAW))
    assert unpacked(tmp_path / "plain", limit=99) == RAW
    assert unpacked(tmp_path / "packed", limit=99) == RAW


def test_a_bomb_is_not_unpacked_beyond_the_limit(tmp_path):
    (tmp_path / "bomb").write_bytes(gzip.compress(bytes(1_000_000)))
    assert unpacked(tmp_path / "bomb", limit=10) == bytes(10)


@pytest.mark.parametrize("damage", [lambda b: b[:-12], lambda b: b[:14] + b"\xff" * 9 + b[23:]])
def test_a_damaged_gzip_file_is_named(tmp_path, damage):
    (tmp_path / "file.gz").write_bytes(damage(gzip.compress(bytes(range(250)) * 9)))
    with pytest.raises(DataError, match=r"file.gz must be a whole gzip file, found a damaged one"):
        unpacked(tmp_path / "file.gz", limit=10_000)
