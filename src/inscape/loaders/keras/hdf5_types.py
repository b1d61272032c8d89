"""Numbers, shapes and types in the bytes of an HDF5 file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

#: The place of what was never written.
UNDEFINED = 2**64 - 1
_MOST_DIMENSIONS = 32


class Cursor:
    """Reads numbers, bytes and parts of a block, and nothing outside of it."""

    def __init__(
        self,
        content: bytes,
        place: int,
        refuse: Callable[[str, str], NoReturn],
        end: int | None = None,
    ) -> None:
        self._content, self.place, self.refuse = content, place, refuse
        self._end = len(content) if end is None else end

    @property
    def left(self) -> int:
        """Return how many bytes are left."""
        return self._end - self.place

    def take(self, size: int) -> bytes:
        """Return so many bytes and go on behind them."""
        raw = self.peek(size)
        self.place += size
        return raw

    def peek(self, size: int) -> bytes:
        """Return so many bytes and stay."""
        self._check(size)
        return self._content[self.place : self.place + size]

    def skip(self, size: int) -> None:
        """Go on behind so many bytes."""
        self._check(size)
        self.place += size

    def number(self, size: int) -> int:
        """Return a number of so many bytes, none negative."""
        return int.from_bytes(self.take(size), "little")

    def part(self, size: int, pad: int = 1) -> "Cursor":
        """Return a cursor for so many bytes, and go on behind them and what pads them."""
        self._check(size)
        inner = Cursor(self._content, self.place, self.refuse, self.place + size)
        self.place = min(self.place + -(-size // pad) * pad, self._end)
        return inner

    def text_at(self, offset: int) -> str:
        """Return the text that begins so many bytes on, up to a zero."""
        start = self.place + offset
        end = self._content.find(b"\0", start, self._end) if start < self._end else -1
        if end < 0:
            self.refuse("names that end", "one that does not")
        return self._content[start:end].decode("utf-8", "replace")

    def _check(self, size: int) -> None:
        if not 0 <= size <= self.left:
            self.refuse("all of its parts", f"one that ends {size - self.left} bytes too late")


@dataclass(frozen=True)
class Space:
    """The shape of an array or attribute; () for one value."""

    sizes: tuple[int, ...]


@dataclass(frozen=True)
class ElementType:
    """The type of an element: a number (``dtype``), or text, which may lie elsewhere (``far``)."""

    size: int
    dtype: np.dtype[np.generic] | None = None
    far: bool = False


def read_space(body: Cursor) -> Space:
    """Return a shape."""
    version, rank = body.number(1), body.number(1)
    body.skip(1)
    if version not in (1, 2) or rank > _MOST_DIMENSIONS:
        body.refuse(f"shapes of at most {_MOST_DIMENSIONS} sizes", f"{rank} (version {version})")
    if version == 1:
        body.skip(5)
    elif body.number(1) == 2:  # null
        return Space((0,))
    return Space(tuple(body.number(8) for _ in range(rank)))


def read_kind(body: Cursor) -> ElementType:
    """Return a type: IEEE floats, integers, truth values and text are known."""
    family = body.number(1) & 15
    bits = body.number(3)
    size = body.number(4)
    order = ">" if bits & 1 else "<"
    if family == 0 and size in (1, 2, 4, 8):
        return ElementType(size, np.dtype(f"{order}{'i' if bits & 8 else 'u'}{size}"))
    if family == 1 and size in (2, 4, 8):
        body.skip(5)
        exponent = body.number(1)
        if {2: 5, 4: 8, 8: 11}[size] != exponent:
            body.refuse("IEEE floats", f"floats with exponents of {exponent} bits")
        return ElementType(size, np.dtype(f"{order}f{size}"))
    if family == 3:
        return ElementType(size)
    if family == 9 and bits & 15 == 1 and size == 16:
        return ElementType(size, far=True)
    if family == 8 and size == 1:
        return ElementType(size, np.dtype("u1"))
    return body.refuse("numbers and text", f"elements of kind {family} with {size} bytes")
