import gzip

import numpy as np
import pytest

from inscape.data.files import FILE_SETS
from inscape.data.idx import read_idx
from inscape.data.places import presence, roots
from inscape.data.store import check_files, file_set, find, gather, set_aside
from inscape.errors import DataError

PARTS = ["train-images", "train-labels", "test-images", "test-labels"]


def states(rows) -> list[str]:
    return [row.state for row in rows]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("folder", ["", "mnist", "MNIST/raw", "FashionMNIST/raw"])
def test_files_are_found_in_every_folder_plain_or_packed_again(mnist, tmp_path, folder, packed):
    mnist.write(tmp_path / "data" / folder, packed=packed)
    rows = find("mnist", tmp_path / "data")
    assert states(rows) == ["ok"] * 4
    assert [row.part for row in rows] == PARTS
    assert {row.path.parent for row in rows} == {tmp_path / "data" / folder}


def test_names_with_a_dot_are_found(mnist, tmp_path):
    mnist.write(tmp_path)
    (tmp_path / "train-images-idx3-ubyte").rename(tmp_path / "train-images.idx3-ubyte")
    assert states(find("mnist", tmp_path)) == ["ok"] * 4


def test_keras_files_are_checked_by_their_contents(mnist, tmp_path):
    keys = ("x_train", "y_train", "x_test", "y_test")
    arrays = dict(zip(keys, map(read_idx, mnist.raw.values()), strict=True))
    np.savez_compressed(tmp_path / "mnist.npz", **arrays)
    rows = find("mnist", tmp_path)
    assert states(rows) == ["ok"] * 4
    assert {row.kind for row in rows} == {"npz"}
    arrays["x_train"] = arrays["x_train"] + 1
    np.savez_compressed(tmp_path / "mnist.npz", **arrays)
    assert states(find("mnist", tmp_path)) == ["bad", "ok", "ok", "ok"]


def test_the_given_folder_comes_before_the_variable_and_the_cache(
    mnist, tmp_path, cache, monkeypatch
):
    for folder in (tmp_path / "a", tmp_path / "b", cache / "mnist"):
        mnist.write(folder)
    assert find("mnist")[0].path.parent == cache / "mnist"
    monkeypatch.setenv("INSCAPE_DATA_DIR", str(tmp_path / "b"))
    assert find("mnist")[0].path.parent == tmp_path / "b"
    assert find("mnist", tmp_path / "a")[0].path.parent == tmp_path / "a"
    assert roots(tmp_path / "a") == (tmp_path / "a", cache)


def test_what_one_folder_lacks_comes_from_the_next(mnist, tmp_path, cache):
    mnist.write(tmp_path / "a")
    mnist.write(cache)
    (tmp_path / "a" / mnist.name("test-labels")).unlink()
    assert [row.path.parent for row in find("mnist", tmp_path / "a")] == [
        *[tmp_path / "a"] * 3,
        cache,
    ]


def test_mnist_and_fashion_are_told_apart_by_their_hashes(mnist, fashion, tmp_path):
    fashion.write(tmp_path / "mnist", packed=True)  # the wrong folder on purpose
    mnist.write(tmp_path / "FashionMNIST" / "raw", packed=True)
    for name, small, folder in (
        ("mnist", mnist, "FashionMNIST/raw"),
        ("fashion-mnist", fashion, "mnist"),
    ):
        rows = find(name, tmp_path)
        assert states(rows) == ["ok"] * 4
        assert {row.path.parent for row in rows} == {tmp_path / folder}
        good, _ = gather(FILE_SETS[name], tmp_path)
        assert {part: row.raw for part, row in good.items()} == small.raw


def test_another_set_under_the_same_names_is_missing_not_bad(mnist, fashion, tmp_path):
    fashion.write(tmp_path)
    assert states(find("mnist", tmp_path)) == ["missing"] * 4


def test_nothing_there_says_what_where_and_how(mnist, tmp_path, cache):
    with pytest.raises(DataError) as caught:
        gather(FILE_SETS["mnist"], tmp_path)
    text = str(caught.value)
    assert text.startswith("mnist needs 4 files and lacks train-images, train-labels, test-images")
    assert f"looked in {tmp_path} and {cache}" in text
    assert "FashionMNIST/raw" in text
    assert "'inscape data fetch mnist'" in text
    assert "--data-dir, data_dir= or INSCAPE_DATA_DIR." in text


@pytest.mark.parametrize("given", [True, False])
def test_a_folder_that_is_none_is_named_with_its_source(tmp_path, monkeypatch, given):
    monkeypatch.setenv("INSCAPE_DATA_DIR", str(tmp_path / "none"))
    source = "data_dir" if given else "INSCAPE_DATA_DIR"
    with pytest.raises(DataError, match=f"^{source} must name a folder, found .*none, which is"):
        roots(tmp_path / "none" if given else None)


def test_a_bad_file_of_the_user_is_named_left_alone_and_not_used(mnist, tmp_path):
    mnist.write(tmp_path)
    path = tmp_path / mnist.name("train-labels")
    wrong = path.read_bytes()[:-1] + b"\x07"
    path.write_bytes(wrong)
    row = find("mnist", tmp_path)[1]
    assert (row.state, row.path) == ("bad", path)
    assert "sha256" in row.detail
    with pytest.raises(
        DataError, match=r"lacks train-labels: .*not used: .*train-labels-idx1"
    ) as e:
        gather(FILE_SETS["mnist"], tmp_path)
    assert "left where it is and not used" in str(e.value)
    assert path.read_bytes() == wrong


def test_a_bad_file_of_the_user_gives_way_to_the_good_one_of_the_cache(mnist, tmp_path, cache):
    mnist.write(tmp_path / "a")
    mnist.write(cache)
    path = tmp_path / "a" / mnist.name("train-labels")
    path.write_bytes(path.read_bytes() + b"x")
    good, notes = gather(FILE_SETS["mnist"], tmp_path / "a")
    assert good["train-labels"].path == cache / mnist.name("train-labels")
    assert good["train-labels"].raw == mnist.raw["train-labels"]
    (note,) = notes
    assert note.startswith(f"ignored: {path}: 38 bytes expected, found 39; left where it is")


def test_a_bad_file_of_the_cache_is_set_aside(mnist, cache):
    mnist.write(cache / "mnist", packed=True)
    path = cache / "mnist" / (mnist.name("test-images") + ".gz")
    path.write_bytes(path.read_bytes()[:-40])
    assert find("mnist")[2].state == "bad"
    assert path.exists(), "finding changes nothing"
    with pytest.raises(DataError, match=r"must be a whole gzip file.*set aside as t10k-images"):
        gather(FILE_SETS["mnist"])
    assert not path.exists()
    assert path.with_name(path.name + ".bad").exists()
    assert states(find("mnist")) == ["ok", "ok", "missing", "ok"]


def test_one_bad_archive_of_four_parts_is_set_aside_once(mnist, cache):
    cache.mkdir(parents=True)
    (cache / "mnist.npz").write_bytes(b"rubbish")
    rows = [set_aside(row) for row in find("mnist")]
    assert all(row.detail.endswith("set aside as mnist.npz.bad") for row in rows)
    assert [path.name for path in cache.iterdir()] == ["mnist.npz.bad"]


def test_a_file_that_cannot_be_set_aside_is_still_named(mnist, cache, monkeypatch):
    mnist.write(cache)
    (cache / mnist.name("train-labels")).write_bytes(b"x")

    def fail(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    row = set_aside(find("mnist")[1])
    assert row.detail.endswith("; not used, and not set aside: Permission denied")


def test_a_file_that_cannot_be_read_is_bad(mnist, tmp_path, monkeypatch):
    mnist.write(tmp_path)

    def fail(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("inscape.data.store.unpacked", fail)
    assert find("mnist", tmp_path)[0].detail == "cannot be read: Permission denied"


def test_a_partial_set_is_allowed_where_parts_stand_alone(cifar, tmp_path):
    cifar.write(tmp_path)
    for part in ("data_batch_2", "data_batch_5", "test_batch"):
        (tmp_path / cifar.name(part)).unlink()
    good, notes = gather(FILE_SETS["cifar10"], tmp_path)
    assert list(good) == ["data_batch_1", "data_batch_3", "data_batch_4"]
    assert notes == []


def test_a_test_batch_alone_is_not_enough(cifar, tmp_path):
    cifar.write(tmp_path)
    for part in range(1, 6):
        (tmp_path / f"data_batch_{part}.bin").unlink()
    with pytest.raises(
        DataError, match=r"cifar10 needs 6 files and lacks data_batch_1, .*batch_5:"
    ):
        gather(FILE_SETS["cifar10"], tmp_path)


def test_made_and_embedded_sets_have_no_files():
    assert file_set("disc:n=3") is None
    assert find("digits") == []
    assert file_set("mnist-binary:4-9") is FILE_SETS["mnist"]


def test_the_verdict_names_bad_files_first(mnist, tmp_path):
    mnist.write(tmp_path)
    check_files(find("mnist", tmp_path), complete=True)
    (tmp_path / mnist.name("train-labels")).write_bytes(b"x")
    with pytest.raises(DataError, match=r"found 1 that differ: .*train-labels-idx1-ubyte \(38 byt"):
        check_files(find("mnist", tmp_path), complete=False)
    (tmp_path / mnist.name("train-labels")).unlink()
    check_files(find("mnist", tmp_path), complete=False)
    with pytest.raises(
        DataError, match=r"^mnist lacks train-labels: run 'inscape data fetch mnist'"
    ):
        check_files(find("mnist", tmp_path), complete=True)


def test_the_verdict_lets_a_partial_set_pass_but_not_an_absent_one(cifar, tmp_path):
    with pytest.raises(DataError, match=r"^cifar10 lacks data_batch_1"):
        check_files(find("cifar10", tmp_path), complete=True)
    cifar.write(tmp_path)
    (tmp_path / "data_batch_2.bin").unlink()
    check_files(find("cifar10", tmp_path), complete=True)


def test_presence_looks_at_names_only(mnist, tmp_path):
    assert presence("mnist", (tmp_path,)) == "not on disk"
    for i, part in enumerate(PARTS):
        (tmp_path / mnist.name(part)).write_bytes(gzip.compress(b"rubbish"))
        assert presence("mnist", (tmp_path,)) == ("partly on disk" if i < 3 else "on disk")
