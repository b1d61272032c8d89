"""One row of the table of foreign models, and the list that modules put theirs on."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from inscape.loaders import open_model


class Subject(NamedTuple):
    """An opened model with rows to measure it on, and how it was opened."""

    model: nn.Module
    x: Tensor
    how: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """A foreign model: its name, its kind, what it needs, and a function that opens it.

    ``fast`` rows run within ``make test``. ``forbidden`` names measures that must not apply (the
    gradient of a forest), each with the reason. ``light`` rows are measured on one output,
    those of ``integers`` by their values alone.
    """

    name: str
    kind: str
    make: Callable[[Path], Subject]
    needs: tuple[str, ...] = ()
    fast: bool = False
    forbidden: str = ""
    light: bool = False
    integers: bool = False

    @property
    def missing(self) -> list[str]:
        """Return the packages that are not there."""
        return [name for name in self.needs if find_spec(name) is None]


ROWS: list[Row] = []


def row(name: str, kind: str, **settings: Any) -> Callable[[Any], Any]:
    """Put a function that opens a model, given a folder, on the list."""

    def listed(make: Any) -> Any:
        others = [other for other in ROWS if other.name != name]
        ROWS[:] = [*others, Row(name=name, kind=kind, make=make, **settings)]
        return make

    return listed


def opened(spec: Any, how: str, **settings: Any) -> tuple[nn.Module, str]:
    """Return an opened model in double precision, and how it was opened with what was compared."""
    found = open_model(spec, dtype="float64", **settings)
    compared = [note for note in found.notes if note.startswith("differs from")]
    return found.model, "; ".join([how, *compared])


def draw(*shape: int, seed: int = 0) -> Tensor:
    """Return random inputs in double precision."""
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def tokens(rows: int, length: int, vocabulary: int) -> Tensor:
    """Return random token ids."""
    return torch.randint(1, vocabulary, (rows, length), generator=torch.Generator().manual_seed(0))
