"""Checks of the parameters of controls."""

from collections.abc import Iterable
from math import inf
from numbers import Real
from typing import Any

from torch import Tensor


def positive(value: object, name: str) -> float:
    """Return a finite number above 0, or say what was found."""
    number = _number(value, name)
    if not 0 < number < inf:
        raise ValueError(
            f"{name} must be a finite number above 0, found {value}: pass a positive number, such "
            "as 1.0."
        )
    return number


def not_negative(value: object, name: str) -> float:
    """Return a finite number from 0 up, or say what was found."""
    number = _number(value, name)
    if not 0 <= number < inf:
        raise ValueError(
            f"{name} must be a finite number of at least 0, found {value}: pass such a number, 0 "
            "for none."
        )
    return number


def fraction(value: object, name: str) -> float:
    """Return a number between 0 and 1, or say what was found."""
    number = _number(value, name)
    if not 0 <= number <= 1:
        raise ValueError(
            f"{name} must be a fraction between 0 and 1, found {value}: pass such a number."
        )
    return number


def per_layer(value: Any, count: int, name: str) -> list[float]:
    """Return a positive number for each layer, from one for all or one for each."""
    value = value.tolist() if isinstance(value, Tensor) else value
    values = list(value) if isinstance(value, Iterable) else [value] * count
    if not all(_is_number(value) for value in values):
        raise TypeError(
            f"{name} must be one number or a sequence of numbers, found {value!r}: pass a float."
        )
    if len(values) != count:
        raise ValueError(
            f"{name} must be one number or one for each of the {count} layers, found "
            f"{len(values)}: pass as many as there are layers."
        )
    return [positive(value, name) for value in values]


def _number(value: object, name: str) -> float:
    value = value.item() if isinstance(value, Tensor) and value.numel() == 1 else value
    if not _is_number(value):
        raise TypeError(f"{name} must be one number, found {value!r}: pass a float.")
    assert isinstance(value, Real)
    return float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
