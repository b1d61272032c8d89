"""Any container of numbers as NumPy arrays, and which of several arrays are x and y."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inscape.errors import DataError
from inscape.loaders.parts import InputPart, Key, Parts, joined, part_of

Array = NDArray[Any]

#: Names under which files keep inputs and labels, in the order of search; capitals do not matter.
INPUTS = ("x", "data", "images", "image", "features", "inputs", "input")
LABELS = ("y", "target", "targets", "labels", "label", "classes", "outputs", "output")
PAIRS = (("x_train", "y_train"), *product(INPUTS, LABELS))


@dataclass(frozen=True, eq=False, kw_only=True)
class Arrays:
    """Inputs and labels as they were found, before anything is scaled or shaped.

    ``parts`` are the inputs of a model with several, or with integers: a row of ``x`` holds all.
    """

    x: Array
    y: Array | None = None
    x_test: Array | None = None
    y_test: Array | None = None
    parts: Parts = ()
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
            values = array.astype(str) if array.dtype == object else array
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()


def as_array(values: Any, name: str) -> Array:
    """Return a tensor, an array, a data frame or nested lists as an array."""
    if isinstance(values, Tensor):
        dense = values.detach().to_dense() if values.layout != torch.strided else values.detach()
        dense = dense.resolve_conj().resolve_neg()
        array: Array = (dense.float() if dense.dtype == torch.bfloat16 else dense).cpu().numpy()
        return array
    try:
        return np.asarray(values)
    except ValueError as error:
        raise DataError(
            f"{name} must be an array with examples of one length, found a "
            f"{type(values).__name__} that is none ({error}): pad or cut them to one length."
        ) from error


def from_pair(pair: Any) -> Arrays:
    """Return ``x``, ``(x,)`` or ``(x, y)`` as arrays; x may be several inputs."""
    halves = pair if isinstance(pair, tuple | list) else (pair,)
    if not 1 <= len(halves) <= 2:
        raise DataError(
            f"data must be x or a pair (x, y), found {len(halves)} parts: keep inputs and labels, "
            "and put several inputs into a dictionary, ({'name': array, ...}, y)."
        )
    y = as_array(halves[1], "y") if halves[1:] else None
    x = halves[0]
    several = isinstance(x, tuple) and all(isinstance(part, Tensor | np.ndarray) for part in x)
    if isinstance(x, Mapping) or several:
        named = dict(x.items() if isinstance(x, Mapping) else enumerate(x))
        rows, parts = _together(named)
        return Arrays(x=rows, y=y, parts=parts, notes=(_said_inputs(parts),))
    array = as_array(x, "x")
    return Arrays(x=array, y=y, parts=_tokens(array))


def from_names(named: Mapping[str, Any], where: str, arguments: Sequence[str] = ()) -> Arrays:
    """Choose inputs and y among named arrays by their names, or else by order, and say which.

    Args:
        named: Arrays by their names.
        where: What holds them, for errors.
        arguments: Names that the model's forward has; arrays of these names are its inputs.
    """
    names = {name.lower(): name for name in reversed(list(named))}
    if not names:
        raise DataError(f"{where} must hold an array, found none: save x and y in it.")
    x, y = _chosen(names)
    inputs = [name for name in named if name in arguments and name.lower() not in LABELS]
    if len(inputs) > 1 or (inputs and _by_name(inputs[0], x, named, arguments)):
        return _from_arguments(named, names, inputs)
    notes = [_description(x, y)]
    if x is None:
        x, y = _by_order(named, names)
        notes = [
            f"{_description(x, y)}: taken by their order, for no name is one of x, data, images"
        ]
    test = {part: names.get(f"{part}_test") for part in ("x", "y")}
    if test["x"]:
        notes.append("with a test set")
    picked = {"x": x, "y": y, "x_test": test["x"], "y_test": test["x"] and test["y"]}
    arrays = {key: as_array(named[name], name) for key, name in picked.items() if name}
    return Arrays(**arrays, parts=_tokens(arrays["x"]), notes=tuple(notes))


def _by_name(name: str, x: str | None, named: Mapping[str, Any], arguments: Sequence[str]) -> bool:
    """Tell whether the only input with the name of an argument is passed on by that name."""
    if name != x and _is_integer(named[name]):
        return True
    return name != arguments[0] and x in (None, name)


def _from_arguments(
    named: Mapping[str, Any], names: Mapping[str, str], inputs: Sequence[str]
) -> Arrays:
    """Return arrays that are called as the arguments of the model are."""
    x, parts = _together({name: named[name] for name in inputs})
    label = next((names[name] for name in LABELS if name in names), None)
    arrays = {"x": x} | ({} if label is None else {"y": as_array(named[label], label)})
    notes = [_said_inputs(parts) + (f", y is {label!r}" if label else ", and there is no y")]
    tests = [f"{name}_test" for name in inputs]
    if all(name in named for name in tests):
        arrays["x_test"], others = _together({name: named[f"{name}_test"] for name in inputs})
        if label is not None and f"{label}_test" in named:
            arrays["y_test"] = as_array(named[f"{label}_test"], label)
        if [part.shape for part in others] != [part.shape for part in parts]:
            raise DataError(
                "inputs of the test examples must have the shapes of the others, found "
                f"{_said_inputs(others)} and {_said_inputs(parts)}: pad or cut them."
            )
        notes.append("with a test set")
    return Arrays(**arrays, parts=parts, notes=tuple(notes))


def _together(named: Mapping[Any, Any]) -> tuple[Array, Parts]:
    """Return several inputs as examples that hold them all, and what they look like."""
    tensors: dict[Key, Tensor] = {}
    for key, value in named.items():
        array = as_array(value, str(key))
        if array.dtype.kind not in "biuf":
            raise DataError(
                f"the input {key!r} must hold numbers in examples of one length, found dtype "
                f"{array.dtype}: pad and encode them, e.g. tokenizer(texts, padding='max_length', "
                "truncation=True)."
            )
        tensors[key] = torch.from_numpy(np.require(array, requirements=["C", "W"]))
    parts = tuple(part_of(key, tensor) for key, tensor in tensors.items())
    return joined(parts, tensors).numpy(), parts


def _tokens(array: Array) -> Parts:
    """Return what integers look like that may be tokens; nothing for other numbers."""
    if array.dtype.kind not in "iu" or array.ndim < 2:
        return ()
    return (InputPart(key=0, shape=array.shape[1:], dtype=torch.int64),)


def _is_integer(value: Any) -> bool:
    return as_array(value, "x").dtype.kind in "iu"


def _said_inputs(parts: Parts) -> str:
    return "inputs are " + ", ".join(
        f"{part.key} {'x'.join(map(str, part.shape)) or 'of one number'}" for part in parts
    )


def _chosen(names: Mapping[str, str]) -> tuple[str | None, str | None]:
    pairs = [(x, y) for x, y in PAIRS if x in names and y in names]
    alone = [(x, y) for x, y in PAIRS if x in names]
    for x, y in [*pairs, *alone]:
        return names[x], names.get(y)
    return None, None


def _by_order(named: Mapping[str, Any], names: Mapping[str, str]) -> tuple[str, str | None]:
    label = next((names[name] for name in LABELS if name in names), None)
    first, *rest = (name for name in named if name != label)
    if label is not None:
        return first, label
    same = [name for name in rest[:1] if np.shape(named[name])[:1] == np.shape(named[first])[:1]]
    return first, same[0] if same else None


def _description(x: str | None, y: str | None) -> str:
    return f"x is {x!r}, y is {y!r}" if y else f"x is {x!r}, and there is no y"
