"""Kinds of Python objects: which are plain values, which are library code, what code may read."""

import sys
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter, itemgetter, methodcaller
from pathlib import PurePath
from re import Pattern
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)

import numpy as np
import torch

#: Packages whose functions and classes do what their own code says, whatever it calls.
LIBRARIES = frozenset({*sys.stdlib_module_names, "torch", "numpy", "inscape"})

#: Values that their text tells apart.
PLAIN = (
    *(type(None), bool, int, float, complex, str, bytes, range, slice, type(...), np.generic),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, np.dtype),
    *(PurePath, Decimal, Fraction, date, timedelta, Pattern, np.ufunc, MethodDescriptorType),
    *(WrapperDescriptorType, torch._ops.OpOverload, torch._ops.OpOverloadPacket),
    *(MemberDescriptorType, GetSetDescriptorType, itemgetter, attrgetter, methodcaller),
)

#: Attributes of classes and modules that no call reads, or that hold the graph itself.
UNREAD = frozenset(
    {
        *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "_abc_impl"),
        *("__abstractmethods__", "__parameters__", "__orig_bases__", "__firstlineno__"),
        *("__static_attributes__", "__dataclass_fields__", "__dataclass_params__"),
    }
)


def is_library(made: FunctionType | type) -> bool:
    """Tell whether a function or class belongs to one of these packages."""
    return (made.__module__ or "").partition(".")[0] in LIBRARIES


def slots(kind: type) -> tuple[str, ...]:
    """Return the names of the attributes that a class keeps outside of ``__dict__``."""
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def global_values(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Yield what the code of a function may read by global names, and by names in packages."""
    names = sorted(_names(function.__code__))
    spaces: list[tuple[str, Mapping[str, object]]] = [("", function.__globals__)]
    for path, space in spaces:
        for name in names:
            if name in space:
                value = space[name]
                yield path + name, value
                inner = vars(value) if isinstance(value, ModuleType) else None
                if inner is not None and all(inner is not known for _, known in spaces):
                    spaces.append((f"{path}{name}.", inner))


def _names(code: CodeType) -> set[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)
