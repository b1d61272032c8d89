"""Activation patterns of the faces, layer by layer, shared by all faces of a parent."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(eq=False, kw_only=True)
class PatternHistory:
    """Activation patterns of each operation on the faces it left, and their descendants.

    ``rows[k]`` has a row of 64-bit words for each face after operation k (or, for maxima, a row of
    indices); ``ancestor[k]`` tells for each present face which row is its, and ``origin[k]`` for
    each row which of the faces before operation k it is a part of.
    """

    units: list[int] = field(default_factory=list)
    rows: list[Array] = field(default_factory=list)
    origin: list[Array] = field(default_factory=list)
    ancestor: list[Array] = field(default_factory=list)
    faces: int = 1

    def divide(self, parent: Array) -> None:
        """Update the descendants when faces are cut or left out."""
        self.ancestor = [rows[parent] for rows in self.ancestor]
        self.faces = len(parent)

    def add(self, rows: Array, units: int, origin: Array) -> None:
        """Add the pattern of the next operation on the present faces, and their parents."""
        self.units.append(units)
        self.rows.append(rows)
        self.origin.append(origin)
        self.ancestor.append(np.arange(len(rows)))

    def pattern(self, k: int, faces: Array) -> Array:
        """Return the pattern of operation ``k`` on some faces, one byte for each unit."""
        rows = self.rows[k][self.ancestor[k][faces]]
        if rows.dtype != np.uint64:
            return rows
        bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")
        return bits[:, : self.units[k]]
