"""Labels as classes or real numbers; clear cases are guessed, with a note."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from inscape._core import checks
from inscape.errors import DataError
from inscape.loaders.arrays import Array

Task = Literal["regression", "classes", "unlabelled"]
#: What a class is called in data and in models: a word, or a number.
Name = str | int | float | bool
WISHES = ("auto", "classes", "regression", "none")

#: What is said of labels that are as often targets of a regression as names of two classes.
PLUS_MINUS = (
    "y holds -1 and 1: taken as regression, but two classes are written like this too: if the "
    "output of the model is a logit that tells them apart, use --labels classes"
)
#: More different numbers than this are no classes unless somebody says so.
MANY = 1000


@dataclass(frozen=True, eq=False, kw_only=True)
class Labels:
    """Labels of both splits as tensors, what they are, and what was guessed.

    ``guess`` is the sentence on what they are taken for, empty where somebody said it. ``names``
    are what class numbers stand for, empty where these are the labels themselves.
    """

    task: Task
    y: Tensor | None = None
    y_test: Tensor | None = None
    notes: tuple[str, ...] = ()
    guess: str = ""
    names: tuple[Name, ...] = ()


def read_labels(y: Array | None, y_test: Array | None, *, wish: str, dtype: torch.dtype) -> Labels:
    """Return labels as classes (int64, from 0) or as vectors of real numbers."""
    checks.one_of(WISHES, labels=wish)
    if y is None and wish in ("classes", "regression"):
        raise DataError(f"labels must be {wish}, found data without any: give y, or --labels none.")
    if y is None or wish == "none":
        return Labels(task="unlabelled")
    y, y_test = _column(y), None if y_test is None else _column(y_test)
    task, guess = (wish, "") if wish != "auto" else _guess(y)
    notes: tuple[str, ...] = (guess,) if guess else ()
    if task == "regression":
        return Labels(
            task="regression",
            y=_reals(y, dtype),
            y_test=None if y_test is None else _reals(y_test, dtype),
            notes=notes,
            guess=guess,
        )
    codes, codes_test, names = _codes(y, y_test)
    if names:
        notes += (f"the classes {listed(names, 5)} are numbered from 0 in this order",)
    return Labels(task="classes", y=codes, y_test=codes_test, notes=notes, guess=guess, names=names)


def listed(names: Sequence[Name], most: int) -> str:
    """Return the first names of classes, as one would write them in Python."""
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def _column(y: Array) -> Array:
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _guess(y: Array) -> tuple[Task, str]:
    if y.dtype.kind in "USOb":
        return "classes", ""
    otherwise = "(use --labels {} otherwise)"
    if y.ndim > 1:
        if _is_one_hot(y):
            note = f"y is one-hot: taken as {y.shape[1]} classes "
            return "classes", note + otherwise.format("regression")
        if y.dtype.kind not in "iu":
            return "regression", ""
        note = "y holds several integers for each example: taken as regression "
        return "regression", note + otherwise.format("none")
    values = np.unique(y)
    if values.tolist() == [-1, 1]:
        return "regression", PLUS_MINUS
    if _look_like_classes(values, len(y)):
        note = f"y holds {len(values)} different integers: taken as classes "
        return "classes", note + otherwise.format("regression")
    note = "y holds real numbers or many different integers: taken as regression "
    return "regression", note + otherwise.format("classes")


def _look_like_classes(values: Array, rows: int) -> bool:
    integers = bool(np.all(values == np.round(values))) and bool(values[0] >= 0)
    counted = len(values) > 1 and values.tolist() == list(range(len(values)))
    return integers and len(values) <= MANY and (counted or 2 * len(values) <= rows)


def _is_one_hot(y: Array) -> bool:
    return (
        y.ndim == 2
        and y.dtype.kind != "U"
        and bool(np.isin(y, (0, 1)).all())
        and bool((y.sum(1) == 1).all())
    )


def _reals(y: Array, dtype: torch.dtype) -> Tensor:
    if y.dtype.kind not in "biuf":
        raise DataError(
            f"labels of a regression must be numbers, found {y.flat[0]!r}: use --labels classes."
        )
    return torch.from_numpy(y.reshape(len(y), -1).astype(np.float64)).to(dtype)


def _codes(y: Array, y_test: Array | None) -> tuple[Tensor, Tensor | None, tuple[Name, ...]]:
    """Return class numbers, as they are if they can count, else by sorted order, with names."""
    if y.ndim == 2 and _is_one_hot(y):
        y, y_test = y.argmax(1), None if y_test is None else y_test.argmax(1)
    both = np.concatenate([y, *([] if y_test is None else [y_test])])
    if both.ndim > 1:
        raise DataError(
            f"class labels must be one per example or one-hot, found examples of shape "
            f"{both.shape[1:]}: use --labels regression, or --labels none for classes of pixels "
            "or tokens."
        )
    if both.dtype.kind in "iub" or (both.dtype.kind == "f" and np.all(both == np.round(both))):
        numbers = both.astype(np.int64)
        if numbers.min() >= 0:
            return *_split(numbers, len(y)), ()
    elif both.dtype.kind == "f":
        first = both[both != np.round(both)][0]
        raise DataError(f"class labels must be integers, found {first}: use --labels regression.")
    names, numbers = np.unique(both, return_inverse=True)
    return *_split(numbers.reshape(-1).astype(np.int64), len(y)), tuple(names.tolist())


def _split(numbers: Array, rows: int) -> tuple[Tensor, Tensor | None]:
    test = torch.from_numpy(numbers[rows:]) if len(numbers) > rows else None
    return torch.from_numpy(numbers[:rows]), test
