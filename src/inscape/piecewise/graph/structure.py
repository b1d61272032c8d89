"""A digest of everything that the graph of a function depends on, to look up known graphs.

Code, defaults, closures and the global names that code reads; settings and hooks of modules; shapes
of parameters and buffers, and the values of all other tensors. Parameters and buffers of the
function itself are inputs of its graph: their values do not count.
"""

import functools
import marshal
import weakref
from _thread import LockType
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from io import IOBase
from logging import Logger
from threading import RLock
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, fx, nn
from torch.nn.modules import module as hooks

from inscape._core.checks import Function
from inscape.piecewise.graph.object_kinds import PLAIN, UNREAD, global_values, is_library, slots

#: Objects, and bytes of constant tensors, beyond which a function is rather exported anew.
OBJECTS = 50_000
BYTES = 2**28


class _OpaqueError(Exception):
    """An object whose state cannot be read."""


class _Identity:
    """An object as itself: equal to nothing else, and to nothing once it is gone."""

    def __init__(self, value: object) -> None:
        try:
            self._reference = weakref.ref(value)
        except TypeError:
            raise _OpaqueError(type(value)) from None
        self._hash = id(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Identity):
            return NotImplemented
        value = self._reference()
        return value is not None and value is other._reference()


@dataclass(frozen=True, eq=False, kw_only=True)
class FunctionStructure:
    """The structure of a function: all that defines it apart from its weights.

    Attributes:
        key: Equal for functions with one graph; it keeps nothing of the function alive.
        tensors: All tensors that the function holds, in one order for all functions of one key.
        free: How many of these, the first ones, are parameters and buffers: their values are not
            in the key.
    """

    key: tuple[bytes, tuple[_Identity, ...]]
    tensors: tuple[Tensor, ...]
    free: int


def structure(f: Function) -> FunctionStructure | None:
    """Return the structure of a function; None where it refers to objects that cannot be read."""
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        return None
    walk = _StructureWalk(f)
    try:
        walk.visit(f)
        walk.visit(hooks._global_forward_hooks)
        walk.visit(hooks._global_forward_pre_hooks)
    except (_OpaqueError, RuntimeError):  # too deep, or a tensor without memory
        return None
    walk.visit((torch.get_default_dtype(), torch.is_autocast_enabled("cpu")))
    return walk.structure()


class _StructureWalk:
    """A walk through everything that a function refers to, each object once."""

    def __init__(self, f: Function) -> None:
        self._words: list[str | int | bytes] = []
        self._numbers: dict[int, int] = {}
        self._visited: list[object] = []  # alive until the end, so that no id is given twice
        self._identities: list[_Identity] = []
        self._handlers: dict[type, Any] = {}
        self._bytes = 0
        free = (*f.parameters(), *f.buffers()) if isinstance(f, nn.Module) else ()
        self._free = {id(tensor): tensor for tensor in free}
        self._tensors: list[Tensor] = list(self._free.values())

    def structure(self) -> FunctionStructure:
        digest = blake2b(marshal.dumps(self._words, 2)).digest()
        key = digest, tuple(self._identities)
        return FunctionStructure(key=key, tensors=tuple(self._tensors), free=len(self._free))

    def visit(self, value: Any) -> None:
        """Add an object and all that it refers to."""
        kind = type(value)
        add = self._handlers.get(kind)
        if add is None:
            add = self._handlers[kind] = _handler(kind)
        if add is _StructureWalk._plain:
            add(self, value)
            return
        number = self._numbers.setdefault(id(value), len(self._numbers))
        if number < len(self._visited):
            self._write("again", number)
            return
        self._visited.append(value)
        if number > OBJECTS:
            raise _OpaqueError
        add(self, value)

    def _write(self, *words: str | int | bytes) -> None:
        self._words += words

    def _plain(self, value: object) -> None:
        self._write(type(value).__name__, repr(value))

    def _identity(self, value: object) -> None:
        self._write("itself")
        self._identities.append(_Identity(value))

    def _tensor(self, tensor: Tensor) -> None:
        self._write("tensor", str((tensor.shape, tensor.dtype, tensor.device, tensor.layout)))
        self.visit(type(tensor))
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
            raise _OpaqueError
        self._write(str((tensor.stride(), tensor.requires_grad)))
        if id(tensor) in self._free:
            return
        self._tensors.append(tensor)
        self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes > BYTES or type(tensor) not in (Tensor, nn.Parameter):
            raise _OpaqueError
        values = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
        self._write(blake2b(values.flatten().view(torch.uint8).numpy().data).digest())

    def _array(self, array: npt.NDArray[Any]) -> None:
        self._write("array", str(array.shape), str(array.dtype))
        if array.dtype.hasobject or self._bytes + array.nbytes > BYTES:
            raise _OpaqueError
        self._bytes += array.nbytes
        self._write(blake2b(array.tobytes()).digest())

    def _sequence(self, values: Any) -> None:
        self.visit(type(values))
        self._write(len(values))
        for value in values:
            self.visit(value)
        self._named(getattr(values, "__dict__", {}))

    def _set(self, values: set[Any] | frozenset[Any]) -> None:
        if not all(isinstance(value, PLAIN) for value in values):
            raise _OpaqueError
        self._write("set", str(sorted(map(repr, values))))

    def _mapping(self, values: Mapping[Any, Any]) -> None:
        self.visit(type(values))
        self._write(len(values))
        for key, value in values.items():
            self.visit(key)
            self.visit(value)
        self._named(getattr(values, "__dict__", {}))

    def _module(self, module: nn.Module) -> None:
        if isinstance(module, torch.jit.ScriptModule):
            raise _OpaqueError
        self.visit(type(module))
        unread = ("_graph", "meta") if isinstance(module, fx.GraphModule) else ()
        attributes = {k: v for k, v in vars(module).items() if k not in unread}
        self._named({k: v for k, v in attributes.items() if not isinstance(v, dict) or v})

    def _named(self, values: Mapping[str, Any]) -> None:
        """Add values by name, in whatever order they came."""
        names = sorted(values.keys() - UNREAD)
        self._write(len(names))
        for name in names:
            self._write(name)
            self.visit(values[name])

    def _class(self, kind: type) -> None:
        self._write("class", kind.__module__, kind.__qualname__)
        if not is_library(kind):
            self._identity(kind)
            self._named(vars(kind))
            for base in kind.__bases__:
                self.visit(base)
        elif issubclass(kind, nn.Module) and kind is not nn.Module:
            methods = {k: v for k, v in vars(kind).items() if isinstance(v, FunctionType)}
            self._named({k: v if k == "forward" else v.__code__ for k, v in methods.items()})
            for base in kind.__bases__:
                self.visit(base)

    def _function(self, function: FunctionType) -> None:
        self._write("function", function.__module__ or "", function.__qualname__)
        self.visit(function.__code__)
        self.visit((function.__defaults__, function.__kwdefaults__))
        self._named(vars(function))
        for cell in function.__closure__ or ():
            try:
                self.visit(cell.cell_contents)
            except ValueError:  # not filled yet
                self._write("empty")
        for name, value in global_values(function):
            self._write(name)
            if not is_library(function):
                self.visit(value)
            elif isinstance(value, FunctionType):
                self.visit(value.__code__)
            elif isinstance(value, BuiltinFunctionType):
                self.visit(value)

    def _builtin(self, function: BuiltinFunctionType) -> None:
        self._write("builtin", function.__qualname__)
        if isinstance(function.__self__, ModuleType | type | None):
            self._identity(function)
        else:
            self.visit(function.__self__)

    def _partial(self, call: "functools.partial[Any]") -> None:
        self._write("partial")
        self.visit((call.func, call.args, call.keywords, vars(call)))

    def _object(self, value: object) -> None:
        """Add any other object by its class and its attributes."""
        kind = type(value)
        if isinstance(value, PLAIN) and not isinstance(value, Enum):  # a subclass hides its value
            raise _OpaqueError(kind)
        outside = [name for base in kind.__mro__ for name in slots(base)]
        if not outside and not hasattr(value, "__dict__"):
            raise _OpaqueError(kind)
        self.visit(kind)
        self._named({name: getattr(value, name) for name in outside if hasattr(value, name)})
        self._named(getattr(value, "__dict__", {}))


_HANDLERS: tuple[tuple[Any, Any], ...] = (
    (Tensor, _StructureWalk._tensor),
    (nn.Module, _StructureWalk._module),
    (np.ndarray, _StructureWalk._array),
    ((list, tuple, deque), _StructureWalk._sequence),
    ((set, frozenset), _StructureWalk._set),
    ((dict, MappingProxyType), _StructureWalk._mapping),
    (type, _StructureWalk._class),
    (FunctionType, _StructureWalk._function),
    (MethodType, lambda walk, method: walk.visit((method.__func__, method.__self__))),
    (BuiltinFunctionType, _StructureWalk._builtin),
    (CodeType, lambda walk, code: walk._write(marshal.dumps(code, 2))),
    (ModuleType, lambda walk, module: walk._write("package", module.__name__)),
    (functools.partial, _StructureWalk._partial),
    (functools._lru_cache_wrapper, lambda walk, call: walk.visit(call.__wrapped__)),
    (property, lambda walk, made: walk.visit((made.fget, made.fset))),
    ((staticmethod, classmethod), lambda walk, method: walk.visit(method.__func__)),
    (weakref.ref, lambda walk, reference: walk.visit(reference())),
    ((Logger, IOBase, LockType, type(RLock())), _StructureWalk._identity),
)


def _handler(kind: type) -> Any:
    if issubclass(kind, PLAIN) and is_library(kind):
        return _StructureWalk._plain
    return next((add for base, add in _HANDLERS if issubclass(kind, base)), _StructureWalk._object)
