"""Whatever holds numbers as NumPy arrays, and which of several arrays are x and y."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inscape._core.errors import DataError

Array = NDArray[Any]

#: Names under which files keep inputs and labels, in the order of search; capitals do not matter.
INPUTS = ("x", "data", "images", "image", "features", "inputs", "input")
LABELS = ("y", "target", "targets", "labels", "label", "classes", "outputs", "output")
PAIRS = (("x_train", "y_train"), *product(INPUTS, LABELS))


@dataclass(frozen=True, eq=False, kw_only=True)
class Arrays:
    """Inputs and labels as they were found, before anything is scaled or shaped."""

    x: Array
    y: Array | None = None
    x_test: Array | None = None
    y_test: Array | None = None
    notes: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Return the sha256 of all arrays: their bytes, shapes and dtypes."""
        digest = hashlib.sha256()
        for array in (self.x, self.y, self.x_test, self.y_test):
            if array is None:
                digest.update(b"none;")
                continue
            digest.update(f"{array.dtype}{array.shape};".encode())
            plain = array.astype(str) if array.dtype == object else array
            digest.update(np.ascontiguousarray(plain).tobytes())
        return digest.hexdigest()


def as_array(found: Any, name: str) -> Array:
    """Return a tensor, an array, a data frame or nested lists as an array."""
    if isinstance(found, Tensor):
        dense = found.detach().to_dense() if found.layout != torch.strided else found.detach()
        dense = dense.resolve_conj().resolve_neg()
        array: Array = (dense.float() if dense.dtype == torch.bfloat16 else dense).cpu().numpy()
        return array
    try:
        return np.asarray(found)
    except ValueError as error:
        raise DataError(
            f"{name} must be an array with rows of one length, found a "
            f"{type(found).__name__} that is none ({error}): make them even."
        ) from error


def from_pair(found: Any) -> Arrays:
    """Return ``x``, ``(x,)`` or ``(x, y)`` as arrays."""
    parts = found if isinstance(found, tuple | list) else (found,)
    if not 1 <= len(parts) <= 2:
        raise DataError(
            f"data must be x or a pair (x, y), found {len(parts)} parts: keep inputs and labels."
        )
    return Arrays(x=as_array(parts[0], "x"), y=as_array(parts[1], "y") if parts[1:] else None)


def from_names(found: Mapping[str, Any], where: str) -> Arrays:
    """Choose x and y among named arrays by their names, or else by their order, and say which."""
    names = {name.lower(): name for name in reversed(list(found))}
    if not names:
        raise DataError(f"{where} must hold an array, found none: save x and y in it.")
    x, y = _chosen(names)
    notes = [_said(x, y)]
    if x is None:
        x, y = _by_order(found)
        notes = [f"{_said(x, y)}: taken by their order, for no name is one of x, data, images"]
    test = {part: names.get(f"{part}_test") for part in ("x", "y")}
    if test["x"]:
        notes.append("with a test set")
    picked = {"x": x, "y": y, "x_test": test["x"], "y_test": test["x"] and test["y"]}
    arrays = {key: as_array(found[name], name) for key, name in picked.items() if name}
    return Arrays(**arrays, notes=tuple(notes))


def _chosen(names: Mapping[str, str]) -> tuple[str | None, str | None]:
    whole = [(x, y) for x, y in PAIRS if x in names and y in names]
    alone = [(x, y) for x, y in PAIRS if x in names]
    for x, y in [*whole, *alone]:
        return names[x], names.get(y)
    return None, None


def _by_order(found: Mapping[str, Any]) -> tuple[str, str | None]:
    first, *rest = found
    same = [name for name in rest[:1] if np.shape(found[name])[:1] == np.shape(found[first])[:1]]
    return first, same[0] if same else None


def _said(x: str | None, y: str | None) -> str:
    return f"x is {x!r}, y is {y!r}" if y else f"x is {x!r}, and there is no y"
