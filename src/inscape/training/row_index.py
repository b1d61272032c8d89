"""Finds the rows of a batch in the training data by their values."""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

#: Bytes of rows as integers of 8 to 64 bits.
Words = NDArray[np.unsignedinteger[Any]]
#: Kinds of words by their bytes, the longest first.
WORDS = {8: np.uint64, 4: np.uint32, 2: np.uint16, 1: np.uint8}
#: Rows of the data that are hashed at once.
CHUNK = 4096
#: Words of a row, evenly spaced, by which it is looked up before all of them are compared.
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

    A row is looked up by a few of its words, and then compared as a whole with the row that has
    them. Where one of a batch differs, all its rows are looked up by the hash of all their words.
    """

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self._data = x, y
        self._x, self._y = words(x), words(y)
        self._spacing = -(-self._x.shape[1] // SAMPLED)
        sampled = self._x[:, :: self._spacing].shape[1]
        self._x_factors, self._y_factors = _factors(sampled, 0), _factors(self._y.shape[1], 2**16)
        keys: list[int] = []
        for first in range(0, len(x), CHUNK):
            own = slice(first, first + CHUNK)
            keys += self._keys(self._x[own], self._y[own])
        self._first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))

    def numbers(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the number of every row of a batch, -1 for those that are not in the data."""
        x_words, y_words = words(x), words(y)
        if not (_fit(x_words, self._x) and _fit(y_words, self._y)):
            return torch.full((len(x),), -1)
        places = map(self._first.get, self._keys(x_words, y_words), repeat(-1))
        numbers = np.fromiter(places, np.int64, len(x_words))
        if len(numbers) and numbers.min() >= 0 and self._equal(numbers, x_words, y_words):
            return torch.from_numpy(numbers)
        return torch.tensor(self._full_index.numbers(self._full_index.hashes(x, y)))

    def _equal(self, numbers: NDArray[np.int64], x: Words, y: Words) -> bool:
        """Return whether words of inputs and targets are those of rows of the data."""
        pairs = ((self._x, x), (self._y, y))
        return all(bool((data.take(numbers, axis=0) == batch).all()) for data, batch in pairs)

    def _keys(self, x: Words, y: Words) -> list[int]:
        sampled = x[:, :: self._spacing].astype(np.uint64)
        sums = _mixed_sums(sampled, self._x_factors)
        sums += np.einsum("ij,j->i", y.astype(np.uint64), self._y_factors)
        keys: list[int] = sums.tolist()
        return keys

    @cached_property
    def _full_index(self) -> RowIndex:
        return RowIndex(*self._data)


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


def _fit(a: Words, b: Words) -> bool:
    return a.dtype == b.dtype and a.shape[1] == b.shape[1]


def _content(rows: Tensor) -> NDArray[Any]:
    """Return the values of every row, flat."""
    if rows.dtype is torch.bfloat16:  # NumPy does not know it
        rows = rows.view(torch.int16)
    array = np.ascontiguousarray(rows.detach().cpu().numpy())
    return array.reshape(rows.shape[0], math.prod(rows.shape[1:]))


def words(rows: Tensor) -> Words:
    """Return the bytes of every row as the longest words of which they consist."""
    content = _content(rows)
    size = content.shape[1] * content.itemsize
    kind = next(kind for length, kind in WORDS.items() if size % length == 0)
    return content.view(kind)


def _padded_words(rows: Tensor) -> NDArray[np.uint64]:
    """Return the bytes of every row as 64-bit words, the last one filled up with zeros."""
    content = _content(rows).view(np.uint8)
    rest = -content.shape[1] % 8
    if rest:
        content = np.pad(content, ((0, 0), (0, rest)))
    return content.view(np.uint64)
