"""The list of hostile files: each kind has a name, the way it is opened and a function."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

#: Writes a file with the given stem into a folder; a payload that ran would make ``mark``.
Maker = Callable[[Path, Path], Any]


class Kind(NamedTuple):
    """One kind of hostile file."""

    name: str
    opened_as: str  # data, weights, model or trajectory
    file: str
    make: Maker


KINDS: list[Kind] = []


def kind(opened_as: str, suffix: str) -> Callable[[Maker], Maker]:
    """Put a function that writes ``path``, given ``(path, mark)``, on the list."""

    def listed(make: Maker) -> Maker:
        name = f"{opened_as}: {make.__name__}{suffix}"
        made = Kind(name, opened_as, f"{opened_as}-{make.__name__}{suffix}", make)
        # pytest imports these modules once more, under other names, to look for doctests
        KINDS[:] = [other for other in KINDS if other.name != name] + [made]
        return make

    return listed


class Payload:
    """Unpickled with its code, it makes a file; every pickle here holds one."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.mark,))
