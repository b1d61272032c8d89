"""Fitted steps of scikit-learn that are affine maps: scalers, PCA, chosen and joined columns."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class NotAffineError(Exception):
    """A step that is no affine map, or not one that is known here."""


@dataclass(frozen=True, eq=False)
class FittedAffineMap:
    """The map x -> matrix @ x + shift."""

    matrix: Array
    shift: Array

    @classmethod
    def identity(cls, size: int) -> "FittedAffineMap":
        """Return the map that changes nothing."""
        return cls(np.eye(size), np.zeros(size))

    def then(self, other: "FittedAffineMap") -> "FittedAffineMap":
        """Return this map followed by another one."""
        return FittedAffineMap(other.matrix @ self.matrix, other.matrix @ self.shift + other.shift)


def affine_of(step: Any, inputs: int, *, name: str) -> FittedAffineMap:
    """Return what a fitted transformer does to rows of so many inputs.

    Raises :class:`NotAffineError`, with the name of the step, where that is no affine map.
    """
    if step is None or step in ("passthrough", "drop"):
        return FittedAffineMap.identity(inputs) if step != "drop" else _chosen([], inputs)
    for base in type(step).__mro__:
        read = _KNOWN.get(base.__name__)
        if read is not None and base.__module__.startswith("sklearn."):
            return read(step, inputs, name)
    raise NotAffineError(
        f"the step {name!r}, a {type(step).__name__}, is no affine map that is known"
    )


def _standard(step: Any, inputs: int, name: str) -> FittedAffineMap:
    return _shifted_and_scaled(step.mean_ if step.with_mean else None, step.scale_, inputs)


def _robust(step: Any, inputs: int, name: str) -> FittedAffineMap:
    return _shifted_and_scaled(step.center_, step.scale_, inputs)


def _largest(step: Any, inputs: int, name: str) -> FittedAffineMap:
    _refuse_clipping(step, name)
    return _shifted_and_scaled(None, step.scale_, inputs)


def _range(step: Any, inputs: int, name: str) -> FittedAffineMap:
    _refuse_clipping(step, name)
    return FittedAffineMap(np.diag(np.asarray(step.scale_, float)), np.asarray(step.min_, float))


def _components(step: Any, inputs: int, name: str) -> FittedAffineMap:
    matrix = np.asarray(step.components_, float)
    if getattr(step, "whiten", False):
        matrix = matrix / np.sqrt(np.asarray(step.explained_variance_, float))[:, None]
    mean = getattr(step, "mean_", None)
    centre = np.zeros(matrix.shape[1]) if mean is None else np.asarray(mean, float)
    return FittedAffineMap(matrix, -matrix @ centre)


def _selected(step: Any, inputs: int, name: str) -> FittedAffineMap:
    return _chosen(np.flatnonzero(step.get_support()).tolist(), inputs)


def _imputed(step: Any, inputs: int, name: str) -> FittedAffineMap:
    known = np.asarray(step.statistics_, float)
    if not np.isfinite(known).all() or step.add_indicator:
        raise NotAffineError(f"the step {name!r} adds or drops columns for missing values")
    return FittedAffineMap.identity(inputs)  # rows that are measured have no missing values


def _unchanged(step: Any, inputs: int, name: str) -> FittedAffineMap:
    if step.func is not None:
        raise NotAffineError(f"the step {name!r} calls a function of its own")
    return FittedAffineMap.identity(inputs)


def _pipeline(step: Any, inputs: int, name: str) -> FittedAffineMap:
    return affine_of_steps(step.steps, inputs)


def _joined(step: Any, inputs: int, name: str) -> FittedAffineMap:
    if step.transformer_weights:
        raise NotAffineError(f"the step {name!r} weights its parts")
    return _stacked([affine_of(part, inputs, name=key) for key, part in step.transformer_list])


def _by_column(step: Any, inputs: int, name: str) -> FittedAffineMap:
    if step.transformer_weights:
        raise NotAffineError(f"the step {name!r} weights its parts")
    names = list(getattr(step, "feature_names_in_", range(inputs)))
    parts = []
    for key, part, columns in step.transformers_:
        if part == "drop":
            continue
        chosen = _chosen(_places(columns, names), inputs)
        parts.append(chosen.then(affine_of(part, len(chosen.matrix), name=key)))
    return _stacked(parts) if parts else _chosen([], inputs)


def affine_of_steps(steps: Iterable[tuple[str, Any]], inputs: int) -> FittedAffineMap:
    """Return what several steps do, one after the other."""
    composed = FittedAffineMap.identity(inputs)
    for name, step in steps:
        composed = composed.then(affine_of(step, len(composed.matrix), name=name))
    return composed


_KNOWN: dict[str, Callable[[Any, int, str], FittedAffineMap]] = {
    "StandardScaler": _standard,
    "RobustScaler": _robust,
    "MaxAbsScaler": _largest,
    "MinMaxScaler": _range,
    "PCA": _components,
    "IncrementalPCA": _components,
    "TruncatedSVD": _components,
    "SelectorMixin": _selected,
    "SimpleImputer": _imputed,
    "FunctionTransformer": _unchanged,
    "Pipeline": _pipeline,
    "FeatureUnion": _joined,
    "ColumnTransformer": _by_column,
}


def _shifted_and_scaled(centre: Any, scale: Any, inputs: int) -> FittedAffineMap:
    factor = np.ones(inputs) if scale is None else 1.0 / np.asarray(scale, float)
    shift = np.zeros(inputs) if centre is None else -factor * np.asarray(centre, float)
    return FittedAffineMap(np.diag(factor), shift)


def _refuse_clipping(step: Any, name: str) -> None:
    if getattr(step, "clip", False):
        raise NotAffineError(f"the step {name!r} clips what lies outside the range of its training")


def _chosen(columns: Iterable[int], inputs: int) -> FittedAffineMap:
    matrix = np.eye(inputs)[np.asarray(list(columns), int)]
    return FittedAffineMap(matrix, np.zeros(len(matrix)))


def _stacked(parts: list[FittedAffineMap]) -> FittedAffineMap:
    return FittedAffineMap(
        np.concatenate([part.matrix for part in parts]),
        np.concatenate([part.shift for part in parts]),
    )


def _places(columns: Any, names: list[Any]) -> list[int]:
    """Return the numbers of columns that were given by name, number, mask or slice."""
    if isinstance(columns, slice):
        ends = [names.index(end) if isinstance(end, str) else end for end in _ends(columns)]
        last = None if ends[1] is None else ends[1] + isinstance(columns.stop, str)
        return list(range(len(names)))[ends[0] : last : columns.step]
    if isinstance(columns, str | int):
        columns = [columns]
    listed = list(columns)
    if listed and all(isinstance(column, bool | np.bool_) for column in listed):
        return [int(place) for place in np.flatnonzero(listed)]
    places = [names.index(column) if isinstance(column, str) else int(column) for column in listed]
    return [place % len(names) for place in places]


def _ends(columns: slice) -> tuple[Any, Any]:
    return columns.start, columns.stop
