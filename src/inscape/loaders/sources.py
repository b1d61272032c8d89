"""Where data come from: objects, files, names; and the checks that hold for all of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from inscape.errors import DataError
from inscape.loaders.arrays import Array, Arrays, as_array, from_names, from_pair
from inscape.loaders.data_loader import is_loader, read_loader
from inscape.loaders.readers import read_file

if TYPE_CHECKING:
    from inscape.data import Dataset


#: What data in memory are called that have no name: x alone, and a pair.
IN_MEMORY = ("x", "(x, y)")


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSource:
    """Arrays, their name and hash, and the kind of their labels where it is known."""

    arrays: Arrays
    name: str
    hash: str
    task: str | None = None
    settings: Mapping[str, Any]


def find_source(
    spec: object,
    *,
    limit: int | None,
    target: str | None,
    with_labels: bool,
    dtype: torch.dtype,
    max_size: int | None = None,
    arguments: Sequence[str] = (),
    **files: Any,
) -> DataSource:
    """Return the arrays that ``spec`` names or holds, checked.

    Args:
        spec: What the user gave.
        limit: Examples at which the reading of a loader stops.
        target: Column of the label in a table.
        with_labels: Whether a table's last column is the label.
        dtype: Precision in which a named data set is made.
        max_size: Bytes that a file may unpack to.
        arguments: Names that the model's forward has; arrays of these names are its inputs.
        files: ``data_dir`` and ``download``, for a named data set.
    """
    if target is not None and not str(spec).endswith((".csv", ".tsv")):
        raise DataError("target must name a column of a .csv, found other data: leave it out.")
    if isinstance(spec, str) and not _is_path(spec):
        spec = _named(spec, dtype=dtype, **files)
    if _is_dataset(spec):
        return _from_dataset(spec)
    if isinstance(spec, str | Path):
        arrays = read_file(
            spec, target=target, with_labels=with_labels, max_size=max_size, arguments=arguments
        )
        name = Path(spec).name
    elif is_loader(spec):
        arrays = read_loader(spec, limit=limit, arguments=arguments)
        name = f"{type(spec).__name__} object"
    elif (columns := columns_of(spec)) is not None:
        name = f"{type(spec).__name__} object"
        where = "the dict" if isinstance(spec, Mapping) else "the data"
        arrays = from_names(columns, where, arguments)
    else:
        arrays, name = from_pair(spec), IN_MEMORY[isinstance(spec, tuple | list)]
    check(arrays)
    return DataSource(arrays=arrays, name=name, hash=arrays.hash, settings={})


def columns_of(spec: Any) -> Mapping[str, Any] | None:
    """Return the columns of a mapping, or of a Hugging Face data set and its test split."""
    if isinstance(spec, Mapping):
        splits = [name for name, split in spec.items() if hasattr(split, "column_names")]
        if not splits:
            return spec
        first = "train" if "train" in splits else splits[0]
        columns = dict(columns_of(spec[first]) or {})
        other = next((name for name in ("test", "validation") if name in splits), None)
        if other is not None and other != first:
            more = columns_of(spec[other]) or {}
            columns |= {f"{name}_test": column for name, column in more.items()}
        return columns
    if not hasattr(spec, "column_names") or not hasattr(spec, "__getitem__"):
        return None
    table = spec.with_format("numpy")[:] if hasattr(spec, "with_format") else spec
    return {name: table[name] for name in spec.column_names}


def check(arrays: Arrays) -> None:
    """Refuse arrays that are empty, no numbers, not finite or of different lengths."""
    for name in ("x", "x_test"):
        x, y = getattr(arrays, name), getattr(arrays, name.replace("x", "y"))
        if x is None:
            continue
        _check_numbers(x, name)
        if y is not None:
            _check_labels(y, name.replace("x", "y"), x)
    if arrays.x_test is None:
        return
    if arrays.x_test.shape[1:] != arrays.x.shape[1:]:
        raise DataError(
            f"x_test must have examples of shape {arrays.x.shape[1:]} as x has, found "
            f"{arrays.x_test.shape[1:]}: reshape it."
        )
    if (arrays.y is None) != (arrays.y_test is None):
        raise DataError(
            "labels must be given for both splits or for none, found one of y and y_test: "
            "give the other too, or use --labels none."
        )


def _check_numbers(x: Array, name: str) -> None:
    if x.dtype.kind not in "biuf":
        raise DataError(
            f"{name} must hold real numbers, found dtype {x.dtype}: convert it with "
            f"{name}.astype(float)."
        )
    if x.ndim == 0 or x.size == 0:
        raise DataError(
            f"{name} must hold at least one example, found shape {x.shape}: pass some data."
        )
    _check_finite(x, name)


def _check_labels(y: Array, name: str, x: Array) -> None:
    if y.ndim == 0 or len(y) != len(x):
        raise DataError(
            f"{name} must hold one label for each of the {len(x)} examples, found shape {y.shape}: "
            "pass inputs and labels of one length."
        )
    if y.dtype.kind not in "biufUS":
        raise DataError(
            f"{name} must hold numbers or names of classes, found dtype {y.dtype}: convert it."
        )
    if y.dtype.kind == "f":
        _check_finite(y, name)


def _check_finite(array: Array, name: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if array.dtype.kind != "f" or np.isfinite(array.sum()):
            return
    bad = ~np.isfinite(array).reshape(len(array), -1).all(1)
    if bad.any():
        raise DataError(
            f"{name} must be finite, found NaN or Inf in {bad.sum()} of {len(array)} examples, "
            f"first in example {int(bad.argmax())} (counted from 0): drop or repair them."
        )


def _is_path(spec: str) -> bool:
    """Tell a path from a name such as ``gp:length_scale=0.5``."""
    suffix = re.search(r"\.[A-Za-z][A-Za-z0-9]*$", spec)
    return bool(suffix) or "/" in spec or "\\" in spec or Path(spec).exists()


def _named(spec: str, *, dtype: torch.dtype, **files: Any) -> "Dataset":
    from inscape.data import load

    precision: dict[str, Any] = {} if "dtype=" in spec else {"dtype": dtype}
    return load(spec, **files, **precision)


def _is_dataset(spec: object) -> bool:
    from inscape.data import Dataset

    return isinstance(spec, Dataset)


def _from_dataset(data: Any) -> DataSource:
    parts = ("x", "y", "x_test", "y_test")
    contents = {part: getattr(data, part) for part in parts}
    arrays = {key: as_array(part, key) for key, part in contents.items() if part is not None}
    return DataSource(
        arrays=Arrays(
            x=arrays["x"],
            y=arrays.get("y"),
            x_test=arrays.get("x_test"),
            y_test=arrays.get("y_test"),
            notes=tuple(data.notes),
        ),
        name=data.name,
        hash=data.hash,
        task=data.task,
        settings=dict(data.settings),
    )
