"""From bytes to tensors: images scaled to [0, 1], labels as classes or as signs of two digits."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from inscape._core import checks
from inscape.data.catalogue import Value
from inscape.data.dataset import Dataset
from inscape.data.draws import word

DIGITS = tuple("0123456789")


@dataclass(frozen=True, kw_only=True, eq=False)
class Pixels:
    """Images (n, channels, height, width) and labels of both halves as bytes; test may be empty."""

    images: UInt8[np.ndarray, "n k h w"]
    labels: UInt8[np.ndarray, " n"]
    test_images: UInt8[np.ndarray, "m k h w"]
    test_labels: UInt8[np.ndarray, " m"]
    highest: int = 255

    def classes(
        self,
        name: str,
        class_names: tuple[str, ...],
        *,
        n: int | None,
        flat: bool,
        dtype: torch.dtype,
        settings: dict[str, Value],
        notes: tuple[str, ...] = (),
    ) -> Dataset:
        """Return the first ``n`` training images and all test images with their classes."""
        rows = _first(n, len(self.images), name)
        tested = len(self.test_labels) > 0
        return Dataset(
            name=name,
            x=self._scaled(self.images[:rows], flat, dtype),
            y=_long(self.labels[:rows]),
            task="classes",
            x_test=self._scaled(self.test_images, flat, dtype) if tested else None,
            y_test=_long(self.test_labels) if tested else None,
            notes=notes,
            settings={**settings, "flat": flat, "dtype": word(dtype)},
            class_names=class_names,
        )

    def signs(
        self,
        name: str,
        a: int,
        b: int,
        *,
        n: int | None,
        flat: bool,
        dtype: torch.dtype,
        settings: dict[str, Value],
        notes: tuple[str, ...] = (),
    ) -> Dataset:
        """Return the images of two classes in their order: +1 for the lower, -1 for the other."""
        low, high = pair(a, b)
        train = np.flatnonzero(np.isin(self.labels, (low, high)))
        test = np.flatnonzero(np.isin(self.test_labels, (low, high)))
        train = train[: _first(n, len(train), f"{name}:{low}-{high}")]

        def sign(labels: UInt8[np.ndarray, " n"]) -> Float[Tensor, "n 1"]:
            return torch.from_numpy(np.where(labels == low, 1.0, -1.0)[:, None]).to(dtype)

        return Dataset(
            name=name,
            x=self._scaled(self.images[train], flat, dtype),
            y=sign(self.labels[train]),
            task="regression",
            x_test=self._scaled(self.test_images[test], flat, dtype),
            y_test=sign(self.test_labels[test]),
            notes=notes,
            settings={"a": low, "b": high, **settings, "n": n, "flat": flat, "dtype": word(dtype)},
        )

    def _scaled(
        self, images: UInt8[np.ndarray, "n k h w"], flat: bool, dtype: torch.dtype
    ) -> Float[Tensor, "n *d"]:
        x = torch.tensor(images).to(dtype).div_(self.highest)
        return x.flatten(1) if flat else x


def pair(a: int, b: int) -> tuple[int, int]:
    """Return two digits, the lower first."""
    if a == b or not {a, b} <= set(range(10)):
        raise ValueError(
            f"a and b must be two different digits from 0 to 9, found {a} and {b}: "
            "choose e.g. a=4, b=9."
        )
    return min(a, b), max(a, b)


def _long(labels: UInt8[np.ndarray, " n"]) -> Int[Tensor, " n"]:
    return torch.from_numpy(labels.astype(np.int64))


def _first(n: int | None, available: int, name: str) -> int:
    if n is None:
        return available
    checks.at_least(1, n=n)
    if n > available:
        raise ValueError(
            f"n must be at most the {available} training images of {name}, found {n}: "
            "ask for fewer, or leave n out for all."
        )
    return n
