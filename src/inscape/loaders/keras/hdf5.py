"""The part of HDF5 that Keras writes, read from bytes: groups, attributes, plain arrays of numbers.

Nothing else of the format is followed: no other files (external storage, external links, virtual
data sets), no filters, no references. Every place that a file names is compared with its length
before it is read.
"""

from collections.abc import Iterator
from math import prod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from inscape.errors import DataError
from inscape.files.size_limits import check_size
from inscape.loaders.keras.hdf5_types import (
    UNDEFINED,
    Cursor,
    ElementType,
    Space,
    read_kind,
    read_space,
)

SIGNATURE = b"\x89HDF\r\n\x1a\n"
#: Objects (groups, arrays, blocks of them) that a file may have.
_OBJECTS = 200_000
_DEEPEST = 40

_SPACE, _LINK_INFO, _TYPE, _LINK, _EXTERNAL, _LAYOUT = 1, 2, 3, 6, 7, 8
_FILTERS, _ATTRIBUTE, _CONTINUATION, _TABLE, _ATTRIBUTE_INFO = 11, 12, 16, 17, 21

Messages = list[tuple[int, Cursor]]


class Hdf5Group:
    """A group: attributes, and groups and arrays by name; read when asked for."""

    def __init__(self, file: "File", messages: Messages, depth: int) -> None:
        self._file, self._depth = file, depth
        self.attributes = dict(file.attributes(messages))
        self._places = dict(file.links(messages))

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __getitem__(self, path: str) -> "Hdf5Group | NDArray[Any]":
        """Return what is called so; a path with slashes goes through groups."""
        name, _, rest = path.strip("/").partition("/")
        if name not in self._places:
            self._file.refuse(f"something called {name!r}", "nothing of that name")
        inner: Hdf5Group | NDArray[Any] = self._file.item(self._places[name], self._depth + 1)
        if not rest:
            return inner
        if not isinstance(inner, Hdf5Group):
            self._file.refuse(f"a group called {name!r}", "an array")
        return inner[rest]

    def group(self, path: str) -> "Hdf5Group":
        """Return a group, and nothing else."""
        inner = self[path]
        return inner if isinstance(inner, Hdf5Group) else self._file.refuse("a group", "an array")

    def array(self, path: str) -> NDArray[Any]:
        """Return an array, and nothing else."""
        inner = self[path]
        return self._file.refuse("an array", "a group") if isinstance(inner, Hdf5Group) else inner


class File:
    """An HDF5 file in memory."""

    def __init__(self, content: bytes, name: object, *, max_size: int | None = None) -> None:
        self._content, self._name, self._max_size = content, name, max_size
        self._objects = self._bytes = 0
        if content[:8] != SIGNATURE:
            self.refuse("the beginning of an HDF5 file", "another one")

    @property
    def root(self) -> Hdf5Group:
        """Return the group that holds all others."""
        head = self.at(8)
        version = head.number(1)
        if version > 3:
            self.refuse("version 0 to 3 of the format", f"version {version}")
        if version >= 2:
            widths = head.number(1), head.number(1)
            head.skip(1 + 24)
        else:
            head.skip(4)
            widths = head.number(1), head.number(1)
            head.skip(9 + 4 * version + 32 + 8)
        if widths != (8, 8):
            self.refuse("places of 8 bytes", f"{widths[0]} and {widths[1]}")
        group: Hdf5Group = self.item(head.number(8), 0, group=True)
        return group

    def item(self, place: int, depth: int, *, group: bool = False) -> Any:
        """Return the group or array whose header is at a place."""
        if depth > _DEEPEST:
            self.refuse(f"groups of at most {_DEEPEST} levels", "more")
        messages = list(self._messages(place))
        kinds = {kind for kind, _ in messages}
        if _LAYOUT in kinds and not group:
            return self._array(messages, kinds)
        return Hdf5Group(self, messages, depth)

    def at(self, place: int) -> Cursor:
        """Return a cursor that reads from a place on."""
        self._objects += 1
        if self._objects > _OBJECTS:
            self.refuse(f"at most {_OBJECTS:,} parts", "more")
        if not 0 <= place < len(self._content):
            self.refuse("parts inside the file", f"one at {place}")
        return Cursor(self._content, place, self.refuse)

    def refuse(self, expected: str, content: str) -> NoReturn:
        """Refuse the file."""
        raise DataError(
            f"{self._name} must be an HDF5 file as Keras writes it, with {expected}, found "
            f"{content}: save the model again with model.save('model.keras')."
        )

    def _messages(self, place: int) -> Iterator[tuple[int, Cursor]]:
        """Yield the messages of an object's header, of both versions, with their continuations."""
        head = self.at(place)
        if head.peek(4) == b"OHDR":
            yield from self._new_messages(head)
            return
        if head.number(1) != 1:
            self.refuse("headers of version 1 or 2", "another one")
        head.skip(7)
        blocks = [(head.place + 8, head.number(4))]
        while blocks:
            start, size = blocks.pop()
            block = self.at(start).part(size)
            while block.left >= 8:
                kind, length, flags = block.number(2), block.number(2), block.number(1)
                block.skip(3)
                body = block.part(length)
                if kind == _CONTINUATION:
                    blocks.append((body.number(8), body.number(8)))
                    self.at(blocks[-1][0])
                else:
                    yield self._unshared(kind, flags), body

    def _new_messages(self, head: Cursor) -> Iterator[tuple[int, Cursor]]:
        head.skip(5)
        flags = head.number(1)
        head.skip((16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0))
        size = head.number(1 << (flags & 3))
        blocks = [(head.place, size)]
        while blocks:
            start, size = blocks.pop()
            block = self.at(start).part(size)
            while block.left >= 4:
                kind, length, marks = block.number(1), block.number(2), block.number(1)
                block.skip(2 if flags & 4 else 0)
                body = block.part(length)
                if kind == _CONTINUATION:
                    start, size = body.number(8), body.number(8)
                    if self.at(start).peek(4) != b"OCHK" or size < 8:
                        self.refuse("whole headers", "a continuation that is none")
                    blocks.append((start + 4, size - 8))
                else:
                    yield self._unshared(kind, marks), body

    def _unshared(self, kind: int, flags: int) -> int:
        if flags & 2 and kind in (_SPACE, _TYPE, _LAYOUT, _ATTRIBUTE):
            self.refuse("descriptions where they belong", "a shared one")
        return kind

    def attributes(self, messages: Messages) -> Iterator[tuple[str, Any]]:
        """Yield the attributes of an object: text, or arrays of text and numbers."""
        for kind, body in messages:
            if kind == _ATTRIBUTE_INFO and any(b != 0xFF for b in body.peek(body.left)[-8:]):
                self.refuse("attributes in the header", "very many of them elsewhere")
            if kind != _ATTRIBUTE:
                continue
            version = body.number(1)
            body.skip(1)
            sizes = [body.number(2) for _ in range(3)]
            body.skip(1 if version == 3 else 0)
            pad = 8 if version == 1 else 1
            name, kind_at, space_at = (body.part(size, pad) for size in sizes)
            text = name.peek(name.left).partition(b"\0")[0].decode("utf-8", "replace")
            element, space = read_kind(kind_at), read_space(space_at)
            yield text, self._values(element, space, body)

    def links(self, messages: Messages) -> Iterator[tuple[str, int]]:
        """Yield the names in a group and the places of what they name."""
        for kind, body in messages:
            if kind == _TABLE:
                tree, heap = body.number(8), body.number(8)
                yield from self._table(tree, self._heap(heap), 0)
            elif kind == _LINK:
                yield self._link(body)
            elif kind == _LINK_INFO:
                body.skip(1)
                body.skip(8 if body.number(1) & 1 else 0)
                if body.number(8) != UNDEFINED:
                    self.refuse("small groups, or those of the older format", "a dense one")

    def _heap(self, place: int) -> Cursor:
        head = self.at(place)
        if head.peek(4) != b"HEAP":
            self.refuse("a heap of names", "none")
        head.skip(8)
        size = head.number(8)
        head.skip(8)
        return self.at(head.number(8)).part(size)

    def _table(self, place: int, names: Cursor, depth: int) -> Iterator[tuple[str, int]]:
        node = self.at(place)
        mark = node.take(4)
        if mark == b"SNOD":
            node.skip(2)
            for _ in range(node.number(2)):
                yield self._entry(node.part(40), names)
            return
        if mark != b"TREE" or node.number(1) != 0 or depth > _DEEPEST:
            self.refuse("a tree of names", "none")
        node.skip(1)
        count = node.number(2)
        node.skip(16)
        for _ in range(count):
            node.skip(8)
            yield from self._table(node.number(8), names, depth + 1)

    def _entry(self, entry: Cursor, names: Cursor) -> tuple[str, int]:
        at, place, kind = entry.number(8), entry.number(8), entry.number(4)
        if kind == 2:
            self.refuse("no links to elsewhere", "a symbolic link")
        return names.text_at(at), place

    def _link(self, body: Cursor) -> tuple[str, int]:
        body.skip(1)
        flags = body.number(1)
        if flags & 8 and body.number(1) != 0:
            self.refuse("no links to elsewhere", "a soft or external link")
        body.skip((8 if flags & 4 else 0) + (1 if flags & 16 else 0))
        name = body.take(body.number(1 << (flags & 3))).decode("utf-8", "replace")
        return name, body.number(8)

    def _array(self, messages: Messages, kinds: set[int]) -> NDArray[Any]:
        if _EXTERNAL in kinds:
            self.refuse("its numbers inside", "numbers in another file")
        if _FILTERS in kinds:
            self.refuse("plain numbers", "compressed ones")
        parts = {kind: body for kind, body in messages if kind in (_SPACE, _TYPE, _LAYOUT)}
        if len(parts) < 3:
            self.refuse("arrays with a shape and a type", "one without")
        element, space = read_kind(parts[_TYPE]), read_space(parts[_SPACE])
        layout = parts[_LAYOUT]
        version, how = layout.number(1), layout.number(1)
        if version not in (3, 4) or how > 1:
            self.refuse("arrays in one part", "an array in several, or of other files")
        size = prod(space.sizes) * element.size
        if how == 0:
            body = layout.part(layout.number(2))
        else:
            place = layout.number(8)
            if place == UNDEFINED and size:
                self.refuse("arrays with numbers", "one that was never written")
            body = self.at(place if size else 0).part(size)
        return np.asarray(self._values(element, space, body))

    def _values(self, element: ElementType, space: Space, body: Cursor) -> Any:
        """Return numbers or text: an array, or one value where there is no shape."""
        count = prod(space.sizes)
        self._bytes += count * element.size
        check_size(self._name, self._bytes, max_size=self._max_size)
        raw = body.take(count * element.size)
        if element.dtype is not None:
            return np.frombuffer(raw, element.dtype).reshape(space.sizes)
        cells = [raw[i * element.size :][: element.size] for i in range(count)]
        texts = [self._far_text(cell) if element.far else _text(cell) for cell in cells]
        return texts[0] if not space.sizes and texts else texts

    def _far_text(self, cell: bytes) -> str:
        """Return a text of any length, which lies in a heap of the file."""
        length = int.from_bytes(cell[:4], "little")
        place, wanted = int.from_bytes(cell[4:12], "little"), int.from_bytes(cell[12:16], "little")
        if not length:
            return ""
        heap = self.at(place)
        if heap.take(4) != b"GCOL":
            self.refuse("texts in a heap", "none there")
        heap.skip(4)
        block = self.at(place).part(heap.number(8))
        block.skip(16)
        while block.left >= 16:
            index = block.number(2)
            block.skip(6)
            size = block.number(8)
            item = block.part(size, 8)
            if index == wanted:
                self._bytes += length
                check_size(self._name, self._bytes, max_size=self._max_size)
                return _text(item.take(length))
            if not index:
                break
        return self.refuse("texts in their heap", "one that is missing")


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode("utf-8", "replace")
