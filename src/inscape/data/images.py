"""MNIST, Fashion-MNIST and CIFAR-10, read from verified files."""

from pathlib import Path

import numpy as np
import torch

from inscape.data.cifar import Batch, read_binary, read_pickle
from inscape.data.dataset import Dataset
from inscape.data.fetching import fetch
from inscape.data.files import FILE_SETS
from inscape.data.idx import read_idx
from inscape.data.pixels import DIGITS, Pixels, pair
from inscape.data.store import DataFile, gather

_CLOTHES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
_THINGS = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)


def mnist(
    *,
    n: int | None = None,
    flat: bool = True,
    dtype: torch.dtype = torch.float32,
    data_dir: str | Path | None = None,
    download: bool = False,
) -> Dataset:
    """Return MNIST: 60,000 training and 10,000 test images of handwritten digits, in [0, 1].

    Args:
        n: The first n training images; all if not given.
        flat: Rows of 784 numbers; otherwise images of shape (1, 28, 28).
        dtype: Floating type of the images.
        data_dir: Where to look first; INSCAPE_DATA_DIR if not given, and then the cache.
        download: Fetch what is missing.
    """
    pixels, notes = _idx("mnist", data_dir, download)
    return pixels.classes(
        "mnist", DIGITS, n=n, flat=flat, dtype=dtype, settings={"n": n}, notes=notes
    )


def mnist_binary(
    a: int,
    b: int,
    *,
    n: int | None = None,
    flat: bool = True,
    dtype: torch.dtype = torch.float32,
    data_dir: str | Path | None = None,
    download: bool = False,
) -> Dataset:
    """Return two digits of MNIST as a regression: +1 for the lower one, -1 for the other.

    Volhejn, section 4.3.2, as the thesis' code has it: the lower digit is +1 (erratum V8), the
    training set is the first ``n`` images of the two digits in MNIST's order, not balanced (V5),
    and the test set is all test images of the two.

    Args:
        a: One digit.
        b: The other digit; their order does not matter.
        n: Training images; all of the two digits if not given.
        flat: Rows of 784 numbers; otherwise images of shape (1, 28, 28).
        dtype: Floating type of images and labels.
        data_dir: Where to look first; INSCAPE_DATA_DIR if not given, and then the cache.
        download: Fetch what is missing.
    """
    pair(a, b)
    pixels, notes = _idx("mnist", data_dir, download)
    return pixels.signs("mnist-binary", a, b, n=n, flat=flat, dtype=dtype, settings={}, notes=notes)


def fashion_mnist(
    *,
    n: int | None = None,
    flat: bool = True,
    dtype: torch.dtype = torch.float32,
    data_dir: str | Path | None = None,
    download: bool = False,
) -> Dataset:
    """Return Fashion-MNIST: 60,000 training and 10,000 test images of clothes, in [0, 1].

    Its files have the names of MNIST's; they are told apart by their hashes.

    Args:
        n: The first n training images; all if not given.
        flat: Rows of 784 numbers; otherwise images of shape (1, 28, 28).
        dtype: Floating type of the images.
        data_dir: Where to look first; INSCAPE_DATA_DIR if not given, and then the cache.
        download: Fetch what is missing.
    """
    pixels, notes = _idx("fashion-mnist", data_dir, download)
    return pixels.classes(
        "fashion-mnist", _CLOTHES, n=n, flat=flat, dtype=dtype, settings={"n": n}, notes=notes
    )


def cifar10(
    *,
    n: int | None = None,
    flat: bool = False,
    dtype: torch.dtype = torch.float32,
    data_dir: str | Path | None = None,
    download: bool = False,
) -> Dataset:
    """Return CIFAR-10: photographs of 32 x 32 pixels in three channels, in [0, 1].

    Whole, it has 50,000 training and 10,000 test images. Some of its batches are enough: then the
    notes of the result say which ones were there.

    Args:
        n: The first n training images; all if not given.
        flat: Rows of 3072 numbers; otherwise images of shape (3, 32, 32).
        dtype: Floating type of the images.
        data_dir: Where to look first; INSCAPE_DATA_DIR if not given, and then the cache.
        download: Fetch what is missing.
    """
    good, notes = _gathered("cifar10", data_dir, download)
    batches = {part: _batch(file) for part, file in good.items()}
    test = batches.pop("test_batch", None)
    images, labels = (np.concatenate(arrays) for arrays in zip(*batches.values(), strict=True))
    pixels = Pixels(
        images=images,
        labels=labels,
        test_images=test[0] if test else images[:0],
        test_labels=test[1] if test else labels[:0],
    )
    notes = (*_partial(list(batches), test is not None), *notes)
    return pixels.classes(
        "cifar10", _THINGS, n=n, flat=flat, dtype=dtype, settings={"n": n}, notes=notes
    )


def _gathered(
    name: str, data_dir: str | Path | None, download: bool
) -> tuple[dict[str, DataFile], tuple[str, ...]]:
    if download:
        fetch(name, data_dir=data_dir)
    good, notes = gather(FILE_SETS[name], data_dir)
    return good, tuple(notes)


def _idx(name: str, data_dir: str | Path | None, download: bool) -> tuple[Pixels, tuple[str, ...]]:
    good, notes = _gathered(name, data_dir, download)
    arrays = {part: read_idx(file.raw, str(file.path)) for part, file in good.items()}
    pixels = Pixels(
        images=arrays["train-images"][:, None],
        labels=arrays["train-labels"],
        test_images=arrays["test-images"][:, None],
        test_labels=arrays["test-labels"],
    )
    return pixels, notes


def _batch(file: DataFile) -> Batch:
    read = read_binary if file.kind == "binary" else read_pickle
    return read(file.raw, str(file.path))


def _partial(training: list[str], tested: bool) -> tuple[str, ...]:
    """Name the batches that were there, if some were not."""
    notes = []
    if len(training) < 5:
        numbers = ", ".join(name.rpartition("_")[2] for name in training)
        notes.append(f"partial: training batches {numbers} of 5")
    if not tested:
        notes.append("partial: no test batch")
    return tuple(notes)
