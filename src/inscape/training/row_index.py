"""Finds the rows of a batch in the training data by a hash of their values."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

#: Rows of the data that are hashed at once.
CHUNK = 4096


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
        first = self._sums(_words(x), 0)
        hashes: list[int] = (first + self._sums(_words(y), 2**16)).tolist()
        return hashes

    def _sums(self, words: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
        """Return a random linear function of every row of words."""
        key = (seed, words.shape[1])
        if key not in self._factors:
            draws = np.random.default_rng(seed).integers(2**63, size=words.shape[1:])
            self._factors[key] = draws.astype(np.uint64) * np.uint64(2) + np.uint64(1)
        mixed = words >> np.uint64(29)
        mixed ^= words
        sums: NDArray[np.uint64] = mixed @ self._factors[key]
        return sums

    def numbers(self, hashes: Sequence[int]) -> list[int]:
        """Return the number of every row, -1 for those that are not there."""
        return [self._numbers.get(key, -1) for key in hashes]

    def add(self, key: int) -> int:
        """Give a row that is not there the next number, and return it."""
        return self._numbers.setdefault(key, len(self._numbers))


def _words(rows: Tensor) -> NDArray[np.uint64]:
    """Return the bytes of every row as 64-bit words, the last one filled up with zeros."""
    plain = rows.detach().cpu().contiguous().reshape(len(rows), -1)
    if plain.dtype is torch.bfloat16:  # NumPy does not know it
        plain = plain.view(torch.int16)
    content = plain.numpy().view(np.uint8).reshape(len(rows), -1)
    rest = -content.shape[1] % 8
    if rest:
        content = np.pad(content, ((0, 0), (0, rest)))
    return content.view(np.uint64)
