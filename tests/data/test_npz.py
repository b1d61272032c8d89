import numpy as np
import pytest

from inscape.data.npz import read_npz
from inscape.errors import DataError


def test_each_part_is_found_under_its_key(tmp_path):
    keys = ("x_train", "y_train", "x_test", "y_test")
    np.savez(tmp_path / "mnist.npz", **{key: np.full(3, i, np.uint8) for i, key in enumerate(keys)})
    parts = ("train-images", "train-labels", "test-images", "test-labels")
    result = [read_npz(tmp_path / "mnist.npz", part).tolist() for part in parts]
    assert result == [[0] * 3, [1] * 3, [2] * 3, [3] * 3]


def test_compressed_files_are_read_too(tmp_path):
    np.savez_compressed(tmp_path / "mnist.npz", x_train=np.arange(4, dtype=np.uint8))
    assert read_npz(tmp_path / "mnist.npz", "train-images").tolist() == [0, 1, 2, 3]


def test_a_missing_array_is_named(tmp_path):
    np.savez(tmp_path / "mnist.npz", x=np.zeros(3, np.uint8), z=np.zeros(1))
    with pytest.raises(DataError, match=r"must hold x_train, .* found x, z: it is no keras file"):
        read_npz(tmp_path / "mnist.npz", "train-images")


def test_another_dtype_is_refused(tmp_path):
    np.savez(tmp_path / "mnist.npz", x_train=np.zeros(3))
    with pytest.raises(DataError, match=r"x_train in .*mnist.npz must be uint8, found float64"):
        read_npz(tmp_path / "mnist.npz", "train-images")


@pytest.mark.parametrize("content", [b"", b"rubbish"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "mnist.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"must be an npz file of plain arrays.*BadZipFile"):
        read_npz(tmp_path / "mnist.npz", "train-images")


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "mnist.npz", x_train=np.array([{}, {}], dtype=object))
    with pytest.raises(DataError, match=r"must be an npz file of plain arrays.*Object arrays"):
        read_npz(tmp_path / "mnist.npz", "train-images")
