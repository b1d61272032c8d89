"""Settings and values as strict JSON: what is written is what is read, bit for bit.

Floats are written by ``repr``, so every finite one comes back as it was; NaN and the infinities,
which JSON does not have, become ``{"~float": "nan"}``, ``"inf"`` or ``"-inf"``. Arrays go into an
npz and leave ``{"~npz": name}`` behind. Tuples and ranges come back as lists, NumPy scalars as
Python numbers. Names are strings and do not start with ``~``.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]


def encoded(value: object, arrays: Arrays | None = None, place: str = "") -> Any:
    """Return a value as JSON can hold it; its arrays are put into ``arrays``.

    Args:
        value: Numbers, strings, None, lists and mappings of them, and NumPy arrays.
        arrays: Takes the arrays; without it they are refused.
        place: Name of the value, for errors and for the names of arrays.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return float(value) if math.isfinite(value) else {"~float": str(float(value))}
        case np.generic() if isinstance(value.item(), bool | int | float | str):
            return encoded(value.item(), arrays, place)
        case np.ndarray() if arrays is not None and not value.dtype.hasobject:
            while place in arrays:  # {"a": [x], "a.0": y}
                place += "~"
            arrays[place] = value
            return {"~npz": place}
        case list() | tuple() | range():
            return [encoded(item, arrays, f"{place}.{i}") for i, item in enumerate(value)]
        case Mapping():
            return {
                _name(key, place): encoded(item, arrays, f"{place}.{key}" if place else str(key))
                for key, item in value.items()
            }
    allowed = "numbers, strings, None, lists, dicts" + (", arrays" if arrays is not None else "")
    raise TypeError(
        f"{place or 'a value'} must be made of {allowed}, found {type(value).__name__}: convert "
        "it, e.g. with .tolist() or .numpy()."
    )


def decoded(value: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
    """Return what ``encoded`` was given; a missing array raises KeyError."""
    match value:
        case {"~float": str(text)}:
            return float(text)
        case {"~npz": str(name)}:
            return arrays[name]
        case list():
            return [decoded(item, arrays) for item in value]
        case dict():
            return {key: decoded(item, arrays) for key, item in value.items()}
    return value


def canonical(settings: Mapping[str, Any]) -> str:
    """Return settings as one text, equal for settings that mean the same.

    The order of names does not count, nor whether a sequence is a list or a tuple. A whole float
    counts as the integer (``1.0`` is ``1``, ``-0.0`` is ``0``), so that ``--set rate=1`` finds
    the cell of ``rate=1.0``; ``True`` is not ``1``, and ``"1"`` is neither.

    >>> canonical({"b": (1.0, 0.5), "a": True}) == canonical({"a": True, "b": [1, 0.5]})
    True
    """
    return json.dumps(_merged(encoded(settings)), sort_keys=True, allow_nan=False)


def cell_key(experiment: str, settings: Mapping[str, Any], schema: int, data: str) -> str:
    """Return the key of a cell: 16 hexadecimal digits.

    Args:
        experiment: Name of the experiment in the store.
        settings: Settings of the cell, its seed among them.
        schema: Schema of the experiment: what its numbers mean.
        data: Hash of the data that the cell reads.
    """
    text = json.dumps([experiment, canonical(settings), schema, data])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def shown(settings: Mapping[str, Any]) -> str:
    """Return settings as a line for people: ``size=4, seed=0``."""
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "no settings"


def like(values: Sequence[Any], axis: Sequence[Any]) -> list[Any]:
    """Return values as floats where they are to stand in for an axis of floats.

    >>> like([1, 2], [0.5])
    [1.0, 2.0]
    """
    floats = bool(len(axis)) and all(isinstance(item, float) for item in axis)
    return [float(v) if floats and type(v) is int else v for v in values]


def _name(key: object, place: str) -> str:
    if isinstance(key, str) and not key.startswith("~"):
        return key
    raise TypeError(
        f"names in {place or 'settings and values'} must be strings that do not start with '~', "
        f"found {key!r}: rename it."
    )


def _merged(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_merged(item) for item in value]
        case dict():
            return {key: _merged(item) for key, item in value.items()}
    return value
