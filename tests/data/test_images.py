import hashlib
from itertools import combinations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from inscape.data import cifar10, fashion_mnist, mnist_binary
from inscape.data import mnist as load_mnist
from inscape.data.idx import read_idx
from inscape.errors import DataError


def test_pixels_and_labels_are_those_of_the_files(mnist, tmp_path):
    mnist.write(tmp_path, packed=True)
    data = load_mnist(data_dir=tmp_path)
    images = read_idx(mnist.raw["train-images"])
    assert data.x.shape == (30, 784)
    assert data.x.dtype == torch.float32
    assert torch.equal(data.x, torch.from_numpy(images.reshape(30, -1) / np.float32(255)))
    assert data.y.tolist() == read_idx(mnist.raw["train-labels"]).tolist()
    assert data.x_test.shape == (20, 784)
    assert data.y_test.tolist() == read_idx(mnist.raw["test-labels"]).tolist()
    assert (data.task, data.classes, data.notes) == ("classes", 10, ())


def test_images_keep_their_shape_and_precision_on_request(mnist, tmp_path):
    mnist.write(tmp_path)
    flat = load_mnist(data_dir=tmp_path, dtype=torch.float64)
    square = load_mnist(data_dir=tmp_path, flat=False, dtype=torch.float64)
    assert square.x.shape == (30, 1, 28, 28)
    assert torch.equal(square.x.flatten(1), flat.x)
    assert_close(flat.x * 255, (flat.x * 255).round())


def test_the_first_images_on_request(mnist, tmp_path):
    mnist.write(tmp_path)
    whole, few = load_mnist(data_dir=tmp_path), load_mnist(data_dir=tmp_path, n=7)
    assert torch.equal(few.x, whole.x[:7])
    assert torch.equal(few.x_test, whole.x_test)
    assert few.classes == 10


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "n must be at least 1, found 0"),
        (31, "at most the 30 training images of mnist, found 31"),
    ],
)
def test_a_wrong_number_is_refused(mnist, tmp_path, n, text):
    mnist.write(tmp_path)
    with pytest.raises(ValueError, match=text):
        load_mnist(data_dir=tmp_path, n=n)


def test_two_digits_in_their_order_the_lower_positive(mnist, tmp_path):
    mnist.write(tmp_path)
    whole, two = load_mnist(data_dir=tmp_path), mnist_binary(4, 9, data_dir=tmp_path)
    keep = [i for i, digit in enumerate(whole.y.tolist()) if digit in (4, 9)]
    assert torch.equal(two.x, whole.x[keep])
    assert two.y[:, 0].tolist() == [1.0 if whole.y[i] == 4 else -1.0 for i in keep]
    assert two.y.dtype == torch.float32
    assert len(two.x_test) == 4
    swapped = mnist_binary(9, 4, data_dir=tmp_path)
    assert swapped.hash == two.hash
    assert (swapped.settings["a"], swapped.settings["b"]) == (4, 9)
    few = mnist_binary(4, 9, n=3, data_dir=tmp_path)
    assert torch.equal(few.x, two.x[:3])
    assert torch.equal(few.x_test, two.x_test)


def test_too_many_of_two_digits_are_refused(mnist, tmp_path):
    mnist.write(tmp_path)
    with pytest.raises(
        ValueError, match="at most the 6 training images of mnist-binary:4-9, found"
    ):
        mnist_binary(9, 4, n=7, data_dir=tmp_path)


@pytest.mark.parametrize("pair", [(4, 4), (-1, 3), (3, 10)])
def test_a_pair_must_be_two_digits(pair):
    with pytest.raises(ValueError, match=f"two different digits from 0 to 9, found {pair[0]} and"):
        mnist_binary(*pair)


def test_missing_files_are_fetched_on_request_only(mnist, site, cache):
    with pytest.raises(DataError, match="run 'inscape data fetch mnist'"):
        load_mnist()
    assert site.asked == []
    assert len(load_mnist(download=True).x) == 30
    assert len(load_mnist().x) == 30


def test_fashion_is_not_mnist(mnist, fashion, tmp_path):
    fashion.write(tmp_path)
    data = fashion_mnist(data_dir=tmp_path)
    assert data.class_names[9] == "ankle boot"
    assert data.y.tolist() == read_idx(fashion.raw["train-labels"]).tolist()
    with pytest.raises(DataError, match="mnist needs 4 files"):
        load_mnist(data_dir=tmp_path)


def test_cifar_batches_follow_each_other(cifar, tmp_path):
    cifar.write(tmp_path / "cifar-10-batches-bin")
    data = cifar10(data_dir=tmp_path)
    rows = np.frombuffer(b"".join(cifar.raw.values()), np.uint8).reshape(24, 3073)
    assert data.x.shape == (20, 3, 32, 32)
    assert data.y.tolist() == rows[:20, 0].tolist()
    assert data.y_test.tolist() == rows[20:, 0].tolist()
    pixels = torch.from_numpy(rows[:, 1:] / np.float32(255))
    assert torch.equal(data.x.flatten(1), pixels[:20])
    assert torch.equal(cifar10(data_dir=tmp_path, flat=True).x_test, pixels[20:])
    assert data.notes == ()


def test_partial_cifar_is_named_and_has_its_own_hash(cifar, tmp_path):
    cifar.write(tmp_path)
    whole = cifar10(data_dir=tmp_path)
    for name in ("data_batch_2.bin", "data_batch_4.bin"):
        (tmp_path / name).unlink()
    part = cifar10(data_dir=tmp_path)
    assert part.notes == ("partial: training batches 1, 3, 5 of 5",)
    assert "partial: training batches 1, 3, 5 of 5" in repr(part)
    assert len(part.x) == 12
    assert part.hash != whole.hash
    (tmp_path / "test_batch.bin").unlink()
    alone = cifar10(data_dir=tmp_path)
    assert alone.notes[1] == "partial: no test batch"
    assert alone.x_test is None
    assert alone.classes == 10


def test_a_bad_batch_is_left_out_and_named(cifar, tmp_path):
    cifar.write(tmp_path)
    (tmp_path / "data_batch_3.bin").write_bytes(bytes(3073 * 4))
    data = cifar10(data_dir=tmp_path)
    assert data.notes[0] == "partial: training batches 1, 2, 4, 5 of 5"
    assert data.notes[1].startswith(f"ignored: {tmp_path / 'data_batch_3.bin'}: md5 ")


@pytest.mark.data
def test_real_mnist(data_dir):
    data = load_mnist(data_dir=data_dir)
    assert data.x.shape == (60_000, 784)
    assert data.x_test.shape == (10_000, 784)
    assert data.y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert data.y_test[:5].tolist() == [7, 2, 1, 0, 4]
    counts = data.y.bincount().tolist()
    assert (max(counts), counts.index(max(counts))) == (6742, 1)
    assert (data.x.min(), data.x.max()) == (0, 1)
    assert_close(data.x.mean().item(), 0.1306605, atol=1e-6, rtol=0)  # known: 33.3184 / 255
    pixels = (data.x_test * 255).round().to(torch.uint8).numpy().tobytes()
    published = "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    header = bytes.fromhex("00000803 00002710 0000001c 0000001c")
    assert hashlib.sha256(header + pixels).hexdigest() == published


@pytest.mark.data
def test_real_mnist_in_all_45_pairs(data_dir):
    whole = load_mnist(data_dir=data_dir)
    counts, test_counts = whole.y.bincount(), whole.y_test.bincount()
    pairs = list(combinations(range(10), 2))
    assert len(pairs) == 45
    for a, b in pairs[::11]:  # five of them; each reads the files again
        data = mnist_binary(a, b, data_dir=data_dir)
        assert len(data.x) == counts[a] + counts[b]
        assert len(data.x_test) == test_counts[a] + test_counts[b]
        assert (data.y == 1).sum() == counts[a]
        assert set(data.y.flatten().tolist()) == {-1.0, 1.0}
    few = mnist_binary(4, 9, n=64, data_dir=data_dir)
    keep = ((whole.y == 4) | (whole.y == 9)).nonzero()[:64, 0]
    assert torch.equal(few.x, whole.x[keep])
    assert torch.equal(few.y[:, 0] == 1, whole.y[keep] == 4)


@pytest.mark.data
def test_real_cifar_is_partial_and_says_so(data_dir):
    data = cifar10(data_dir=data_dir)
    if len(data.x) == 20_000:
        assert data.notes == ("partial: training batches 1, 2 of 5",)
    assert data.y[:5].tolist() == [6, 9, 9, 4, 1]
    assert data.y_test[:5].tolist() == [3, 8, 8, 0, 6]
    assert data.x.shape[1:] == (3, 32, 32)
    assert data.y_test.bincount().tolist() == [1000] * 10
    assert data.class_names[data.y[0]] == "frog"
