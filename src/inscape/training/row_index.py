"""Finds the rows of a batch in the training data by their values."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

#: Values of rows, flat, and their bytes as integers of 8 to 64 bits.
Content = NDArray[Any]
Words = NDArray[np.unsignedinteger[Any]]
#: Kinds of words by their bytes, the longest first.
WORDS = {8: np.uint64, 4: np.uint32, 2: np.uint16, 1: np.uint8}
#: Rows of the data that are hashed at once.
CHUNK = 4096
#: Values of a row, evenly spaced, by which it is looked up before all of them are compared.
SAMPLED = 32


class RowIndex:
    """Numbers of rows by inputs and targets; rows that are alike have the number of the first.

    The hash is a linear function of the 64-bit words of a row with random coefficients, modulo
    2^64: two rows share one by chance with a probability below 2^-40 in data of low precision.
    """

    def __init__(self, x: Tensor | None = None, y: Tensor | None = None) -> None:
        self._numbers: dict[int, int] = {}
        self._factors: dict[tuple[int, int], NDArray[np.uint64]] = {}
        if x is not None and y is not None:
            for first in range(0, len(x), CHUNK):
                own = slice(first, first + CHUNK)
                for place, key in enumerate(self.hashes(x[own], y[own])):
                    self._numbers.setdefault(key, first + place)

    def __len__(self) -> int:
        return len(self._numbers)

    def hashes(self, x: Tensor, y: Tensor) -> list[int]:
        """Return the hash of every row."""
        first = self._sums(_padded_words(x), 0)
        hashes: list[int] = (first + self._sums(_padded_words(y), 2**16)).tolist()
        return hashes

    def _sums(self, words: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
        """Return a random linear function of every row of words."""
        key = (seed, words.shape[1])
        if key not in self._factors:
            self._factors[key] = _factors(words.shape[1], seed)
        return _mixed_sums(words, self._factors[key])

    def numbers(self, hashes: Sequence[int]) -> list[int]:
        """Return the number of every row, -1 for those that are not there."""
        return [self._numbers.get(key, -1) for key in hashes]

    def add(self, key: int) -> int:
        """Give a row that is not there the next number, and return it."""
        return self._numbers.setdefault(key, len(self._numbers))


class DataIndex:
    """Looks up rows of batches in the training data.

    A row is looked up by a few of its values, and then compared as a whole with the row that has
    them. Where one of a batch differs, all its rows are looked up by the hash of all their words.
    """

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self._data = x, y
        self._x, self._y = content(x), content(y)
        self._spacing = -(-self._x.shape[1] // SAMPLED)
        while not self._tells_rows_apart() and self._spacing > 1:
            self._spacing //= 2

    def numbers(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the number of every row of a batch, -1 for those that are not in the data."""
        if (numbers := self.numbers_if_known(x, y)) is not None:
            return numbers
        if not (_fit(content(x), self._x) and _fit(content(y), self._y)):
            return torch.full((len(x),), -1)
        return torch.tensor(self._full_index.numbers(self._full_index.hashes(x, y)))

    def numbers_if_known(self, x: Tensor, y: Tensor, *, ends: bool = False) -> Tensor | None:
        """Return the number of every row of a batch; None where one is not in the data.

        Args:
            x: Inputs.
            y: Targets.
            ends: Whether only the first and the last row are compared as a whole. The others are
                taken for those in the data that have the same few values, which tell all rows
                of the data apart.
        """
        inputs, targets = content(x), content(y)
        if not (_fit(inputs, self._x) and _fit(targets, self._y)):
            return None
        places = list(map(self._first.get, self._keys(inputs, targets)))
        if None in places:
            return None
        numbers = np.array(places, dtype=np.int64)
        same = self._equal(numbers, inputs, targets, ends)
        return torch.from_numpy(numbers) if same else None

    def _tells_rows_apart(self) -> bool:
        """Give every row its key; return whether rows of the same key have the same values."""
        keys: list[int] = []
        for first in range(0, len(self._x), CHUNK):
            own = slice(first, first + CHUNK)
            keys += self._keys(self._x[own], self._y[own])
        self._first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
        if len(self._first) == len(keys):
            return True
        firsts = [self._first[key] for key in keys]
        later = [place for place, first in enumerate(firsts) if place != first]
        for begin in range(0, len(later), CHUNK):
            rows = later[begin : begin + CHUNK]
            numbers = np.array([firsts[row] for row in rows])
            if not self._equal(numbers, self._x[rows], self._y[rows], ends=False):
                return False
        return True

    def _equal(self, places: NDArray[np.int64], x: Content, y: Content, ends: bool) -> bool:
        """Return whether rows have the bytes of rows of the data; the first and last, or all."""
        compared = same_ends if ends else same_rows
        return compared(self._x, places, x) and compared(self._y, places, y)

    def _keys(self, x: Content, y: Content) -> list[int]:
        """Return a hash of some values of every row."""
        sampled = np.ascontiguousarray(x[:, :: self._spacing])
        return list(map(hash, zip(_row_bytes(sampled), _row_bytes(y), strict=True)))

    @cached_property
    def _full_index(self) -> RowIndex:
        return RowIndex(*self._data)


def _row_bytes(rows: Content) -> list[bytes]:
    """Return the bytes of every row."""
    size = rows.shape[1] * rows.itemsize
    if not size:
        return [b""] * len(rows)
    row_bytes: list[bytes] = rows.view(f"V{size}").ravel().tolist()
    return row_bytes


def same_rows(data: Content, places: NDArray[np.int64], batch: Content) -> bool:
    """Return whether rows of a batch have the bytes of some rows of the data."""
    same = _words(data).take(places, axis=0) == _words(batch)
    return bool(same.all())


def same_ends(data: Content, places: NDArray[np.int64], batch: Content) -> bool:
    """Return whether the first and the last row of a batch have the bytes of rows of the data."""
    return not len(batch) or all(
        data[places[end]].tobytes() == batch[end].tobytes() for end in (0, -1)
    )


def _factors(count: int, seed: int) -> NDArray[np.uint64]:
    draws = np.random.default_rng(seed).integers(2**63, size=(count,))
    factors: NDArray[np.uint64] = draws.astype(np.uint64) * np.uint64(2) + np.uint64(1)
    return factors


def _mixed_sums(words: NDArray[np.uint64], factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a linear function of every row of words whose high bits are mixed into the low."""
    mixed = words >> np.uint64(29)
    mixed ^= words
    sums: NDArray[np.uint64] = np.einsum("ij,j->i", mixed, factors)
    return sums


def _fit(a: Content, b: Content) -> bool:
    return a.dtype == b.dtype and a.shape[1] == b.shape[1]


def content(rows: Tensor) -> Content:
    """Return the values of every row, flat."""
    if rows.dtype is torch.bfloat16:  # NumPy does not know it
        rows = rows.view(torch.int16)
    simple = rows.device.type == "cpu" and not rows.requires_grad
    array = np.ascontiguousarray(rows.numpy() if simple else rows.numpy(force=True))
    return array.reshape(len(array), math.prod(array.shape[1:]))


def _words(content: Content) -> Words:
    """Return the bytes of every row as the longest words of which they consist."""
    size = content.shape[1] * content.itemsize
    kind = next(kind for length, kind in WORDS.items() if size % length == 0)
    return content.view(kind)


def _padded_words(rows: Tensor) -> NDArray[np.uint64]:
    """Return the bytes of every row as 64-bit words, the last one filled up with zeros."""
    row_bytes = content(rows).view(np.uint8)
    rest = -row_bytes.shape[1] % 8
    if rest:
        row_bytes = np.pad(row_bytes, ((0, 0), (0, rest)))
    return row_bytes.view(np.uint64)
