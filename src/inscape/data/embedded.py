"""The digits that come with scikit-learn: real images that need no files and no network."""

import hashlib

import numpy as np
import torch
from jaxtyping import UInt8

from inscape._core import checks, generator
from inscape.data.catalogue import Value
from inscape.data.dataset import Dataset
from inscape.data.pixels import DIGITS, Pixels
from inscape.errors import DataError

_SHA256 = (
    "8f26b2bd9d135c256808f68f14fdabddde6d9c7f869ae419704b051f0f14b3b3",
    "8ba4f891220f5e4c9c819638d1602d74b83618f167043c6da52a2a247841ddf0",
)


def digits(
    *,
    n: int | None = None,
    n_test: int = 360,
    seed: int = 0,
    flat: bool = True,
    dtype: torch.dtype = torch.float32,
) -> Dataset:
    """Return the 1797 handwritten digits of 8 x 8 pixels that scikit-learn carries.

    The published values 0 to 16 are divided by 16. There is no published split: a seeded
    permutation takes ``n_test`` images for the test and keeps the others in its order.

    Args:
        n: The first n training images; all if not given.
        n_test: Images of the test half, the others train; 0 for none.
        seed: Seed of the split.
        flat: Rows of 64 numbers; otherwise images of shape (1, 8, 8).
        dtype: Floating type of the images.
    """
    pixels = _split(n_test, seed)
    return pixels.classes(
        "digits",
        DIGITS,
        n=n,
        flat=flat,
        dtype=dtype,
        settings={"n": n, "n_test": n_test, "seed": seed},
    )


def digits_binary(
    a: int,
    b: int,
    *,
    n: int | None = None,
    n_test: int = 360,
    seed: int = 0,
    flat: bool = True,
    dtype: torch.dtype = torch.float32,
) -> Dataset:
    """Return two of scikit-learn's digits, labelled +1 (the lower one) and -1, as a regression.

    The same images and split as :func:`digits`, in the form of ``mnist_binary``.

    Args:
        a: One digit.
        b: The other digit.
        n: Training images: the first n of the two digits; all if not given.
        n_test: Images of the test half before the two digits are picked, at least 50.
        seed: Seed of the split.
        flat: Rows of 64 numbers; otherwise images of shape (1, 8, 8).
        dtype: Floating type of images and labels.
    """
    if n_test < 50:
        raise ValueError(
            f"n_test must be at least 50, so that both digits occur, found {n_test}: raise it."
        )
    pixels = _split(n_test, seed)
    settings: dict[str, Value] = {"n_test": n_test, "seed": seed}
    return pixels.signs("digits-binary", a, b, n=n, flat=flat, dtype=dtype, settings=settings)


def _split(n_test: int, seed: int) -> Pixels:
    checks.at_least(0, seed=seed)
    images, labels = _embedded()
    if not 0 <= n_test < len(images):
        raise ValueError(
            f"n_test must lie between 0 and {len(images) - 1}, found {n_test}: "
            "leave at least one image to train on."
        )
    order = torch.randperm(len(images), generator=generator(seed)).numpy()
    train, test = order[n_test:], order[:n_test]
    return Pixels(
        images=images[train],
        labels=labels[train],
        test_images=images[test],
        test_labels=labels[test],
        highest=16,
    )


def _embedded() -> tuple[UInt8[np.ndarray, "n 1 8 8"], UInt8[np.ndarray, " n"]]:
    from sklearn.datasets import load_digits

    stored = load_digits()
    images, labels = stored.images.astype(np.uint8), stored.target.astype(np.uint8)
    hashes = tuple(hashlib.sha256(array.tobytes()).hexdigest() for array in (images, labels))
    if hashes != _SHA256:
        raise DataError(
            f"scikit-learn's digits must have sha256 {_SHA256[0][:12]}..., found "
            f"{hashes[0][:12]}...: reinstall scikit-learn."
        )
    return images[:, None], labels
