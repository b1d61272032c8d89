import os
import pickle
import struct

import numpy as np
import pytest

from inscape.data.cifar import read_binary, read_pickle
from inscape.errors import DataError

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 3072)).astype(np.uint8)
LABELS = [6, 0, 9]


def test_binary_rows_are_a_label_and_three_planes():
    raw = b"".join(
        bytes([label]) + row.tobytes() for label, row in zip(LABELS, IMAGES, strict=True)
    )
    images, labels = read_binary(raw)
    assert labels.tolist() == LABELS
    assert images.shape == (3, 3, 32, 32)
    assert images[1, 2, 5, 7] == IMAGES[1, 2 * 1024 + 5 * 32 + 7]


@pytest.mark.parametrize("raw", [b"", bytes(3072), bytes(3074)])
def test_binary_of_another_length_is_refused(raw):
    with pytest.raises(DataError, match=f"images of 3073 bytes, found {len(raw)} bytes"):
        read_binary(raw, "data_batch_1.bin")


def test_binary_with_another_label_is_refused():
    with pytest.raises(DataError, match=r"b.bin must have labels from 0 to 9, found 11"):
        read_binary(bytes([11]) + bytes(3072), "b.bin")


@pytest.mark.parametrize("protocol", range(5))
def test_pickles_of_older_protocols_are_read(protocol):
    raw = pickle.dumps({b"data": IMAGES, b"labels": LABELS, b"batch_label": b"1 of 5"}, protocol)
    images, labels = read_pickle(raw)
    np.testing.assert_array_equal(images.reshape(3, -1), IMAGES)
    assert labels.tolist() == LABELS


def _python_2_pickle() -> bytes:
    """Write by hand what Python 2 wrote: old module names, 8-bit strings, protocol 2."""

    def text(value: bytes) -> bytes:
        return b"T" + struct.pack("<I", len(value)) + value

    array = b"".join(
        (
            b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85",
            text(b"b") + b"tR(K\x01K\x03M\x00\x0c\x86",
            b"cnumpy\ndtype\n(" + text(b"u1") + b"K\x00K\x01tR(K\x03" + text(b"|"),
            b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" + text(IMAGES.tobytes()) + b"tb",
        )
    )
    labels = b"]" + b"".join(b"K" + bytes([label]) + b"a" for label in LABELS)
    pairs = text(b"data") + array + b"s" + text(b"labels") + labels + b"s"
    return b"\x80\x02}" + pairs + b"."


def test_the_pickles_of_python_2_are_read():
    images, labels = read_pickle(_python_2_pickle())
    np.testing.assert_array_equal(images.reshape(3, -1), IMAGES)
    assert labels.tolist() == LABELS


class Evil:
    def __init__(self, call, *args):
        self.call, self.args = call, args

    def __reduce__(self):
        return self.call, self.args


@pytest.mark.parametrize(
    ("call", "args", "named"),
    [
        (os.system, ("true",), r"(posix|nt).system"),
        (eval, ("1",), "builtins.eval"),
        (np.load, ("x",), r"numpy.*load"),
        (getattr, ({}, "pop"), "builtins.getattr"),
    ],
)
def test_a_pickle_that_asks_for_code_is_refused_and_named(call, args, named):
    raw = pickle.dumps({b"data": IMAGES, b"labels": Evil(call, *args)})
    with pytest.raises(DataError, match=rf"batch asks for {named}, .*refused and nothing was run"):
        read_pickle(raw, "batch")


def test_code_in_a_pickle_does_not_run(tmp_path):
    made = tmp_path / "made"
    with pytest.raises(DataError, match="refused"):
        read_pickle(pickle.dumps(Evil(os.mkdir, str(made))))
    assert not made.exists()


def test_another_codec_is_refused():
    raw = b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR."
    with pytest.raises(DataError, match="asks for the codec 'rot13'"):
        read_pickle(raw)


@pytest.mark.parametrize("raw", [b"", b"rubbish", pickle.dumps([1, 2])[:-2], b"\x80\x02K"])
def test_a_damaged_pickle_is_refused(raw):
    with pytest.raises(DataError, match=r"must be a pickled CIFAR-10 batch, found a damaged file"):
        read_pickle(raw)


@pytest.mark.parametrize(
    "stored",
    [
        [1, 2],
        {b"data": IMAGES},
        {b"data": IMAGES.astype(float), b"labels": LABELS},
        {b"data": IMAGES[:, :9], b"labels": LABELS},
        {b"data": IMAGES[0], b"labels": LABELS},
        {b"data": IMAGES, b"labels": LABELS[:2]},
        {b"data": IMAGES, b"labels": [1, 2, 10]},
        {b"data": IMAGES, b"labels": "abc"},
    ],
)
def test_anything_but_a_batch_is_refused(stored):
    with pytest.raises(DataError, match=r"must hold uint8 data of shape \(n, 3072\) and a list"):
        read_pickle(pickle.dumps(stored))
