"""Settings of instruments, compared with their annotations before anything is computed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
from torch import Tensor, nn

from inscape._core import checks

#: Integers from here on do not fit into those of PyTorch and NumPy.
TOO_LARGE = 2**63

PHRASES = {
    nn.Module: "a module",
    int: "a whole number", float: "a number", bool: "True or False", str: "a word", NoneType: "None"
}  # fmt: skip
CURES = {
    "a whole number": "use int, or round it",
    "a number": "pass an int or a float",
    "True or False": "pass one of them",
    "a list of whole numbers": "pass e.g. [1]",
    "a list of numbers": "pass e.g. [0.1]",
    "a torch.Tensor": "convert it",
}
#: Their own checks say more.
OWN_CHECK = ("seed", "bounds")
SEQUENCES = (Sequence, Iterable, list, tuple)


def setting_kinds(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotation of each keyword-only argument of a function."""
    return {
        name: parameter.annotation
        for name, parameter in signature(function).parameters.items()
        if parameter.kind is Parameter.KEYWORD_ONLY
    }


def check_settings(kinds: Mapping[str, Any], settings: Mapping[str, Any], name: str) -> None:
    """Refuse settings of other types than their annotations, naming the first.

    Args:
        kinds: Annotation of each setting.
        settings: Values of some of them.
        name: The instrument, which explains its settings.
    """
    for key, value in settings.items():
        if key == "seed":
            checks.seed(value)
        if key not in OWN_CHECK and key in kinds and not fits(kinds[key], value):
            raise _refusal(key, value, kinds[key], name)


def fits(kind: Any, value: object) -> bool:
    """Tell whether a value is of the type that an annotation names.

    Numbers of NumPy and tensors of one number pass for numbers, and so do sequences of them.

    >>> fits(int, np.int64(3)), fits(int, 2.5), fits(float | None, None), fits(bool, "no")
    (True, False, True, False)
    >>> fits(Sequence[int], [1, 2]), fits(Sequence[int], "12"), fits(tuple[float, float], [1])
    (True, False, False)
    """
    if kind in (int, float, bool):
        return _is_number(kind, value)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(fits(part, value) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin is Callable:
        return callable(value)
    if origin in SEQUENCES:
        return _is_sequence(origin, parts, value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(fits(parts[1], v) for v in value.values())
    kind = getattr(kind, "array_type", origin or kind)  # of jaxtyping, and of generic types
    return isinstance(value, kind) if isinstance(kind, type) and kind is not Any else True


def _is_number(kind: type, value: object) -> bool:
    if isinstance(value, Tensor) and value.ndim == 0:
        return True
    if kind is bool:
        return isinstance(value, bool | np.bool_) or (isinstance(value, int) and value in (0, 1))
    if isinstance(value, bool) or _is_too_large(value):
        return False
    return isinstance(value, Integral if kind is int else Real)


def _is_too_large(value: object) -> bool:
    return isinstance(value, Integral) and not -TOO_LARGE <= int(value) < TOO_LARGE


def _is_sequence(origin: Any, parts: tuple[Any, ...], value: object) -> bool:
    if not isinstance(value, Iterable) or isinstance(value, Mapping | str | bytes):
        return False
    if isinstance(value, Iterator) or (isinstance(value, Tensor) and value.ndim == 0):
        return isinstance(value, Iterator)  # whose values are seen only once
    values = list(value)
    if origin is tuple and parts[-1] is not ...:
        return len(values) == len(parts) and all(map(fits, parts, values))
    return all(fits(parts[0], item) for item in values)


def _refusal(key: str, value: object, kind: Any, name: str) -> Exception:
    parts = [part for part in _alternatives(kind) if part is not NoneType]
    phrases = [_phrase(part) for part in parts]
    wanted = " or ".join(filter(None, (", ".join(phrases[:-1]), phrases[-1])))
    if _is_too_large(value):
        return ValueError(f"{key} must be below 2**63, found {value}: lower it.")
    shown = repr(value).partition("\n")[0]
    if phrases == ["a torch.Tensor"]:
        shown = type(value).__name__
    cure = CURES.get(_phrase(parts[0]), f"inscape show {name} says what it means")
    text = f"{key} must be {wanted}, found {shown:.100}: {cure}."
    return (
        ValueError(text) if parts[0] is int or get_origin(parts[0]) is Literal else TypeError(text)
    )


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _phrase(kind: Any) -> str:
    """Return what a value of some type is called.

    >>> _phrase(Sequence[int]), _phrase(Literal["a", "b"]), _phrase(tuple[float, float])
    ('a list of whole numbers', "one of 'a', 'b'", 'a tuple of 2')
    """
    origin, parts = get_origin(kind), get_args(kind)
    if kind in PHRASES:
        return PHRASES[kind]
    if origin is Literal:
        return "one of " + ", ".join(map(repr, parts))
    if origin is Callable:
        return "a function"
    if origin is tuple and parts[-1] is not ...:
        return f"a tuple of {len(parts)}"
    if origin in SEQUENCES:
        return "a list of " + {int: "whole numbers", float: "numbers", str: "names"}.get(
            parts[0], "values"
        )
    if origin is Mapping:
        return "a state dict" if parts[1] is Tensor else "a mapping"
    kind = getattr(kind, "array_type", origin or kind)
    return "a torch.Tensor" if kind is Tensor else f"a {kind.__name__}"
