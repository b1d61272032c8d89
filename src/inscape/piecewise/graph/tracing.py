"""The operations that a call of a function makes on what depends on its input, as a graph.

The call is a real one, so that its code may do anything but make Python values of what depends on
the input: control flow on them would be lost, and is refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import getitem
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from inscape._core.checks import Function

#: Calls that give the values of a tensor to Python past all that sees operations.
_READS = {"numpy", "__array__", "tolist", "data_ptr", "untyped_storage", "storage", "__dlpack__"}

_ATEN = torch.ops.aten


class UnrecordableError(RuntimeError):
    """A call whose graph depends on the values of its input; the text says where."""


class OperationRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records each operation on tensors that depend on the input.

    Attributes:
        graph: The operations so far; its first placeholder is the input.
        constants: The tensors that its other placeholders stand for.
    """

    def __init__(self, x: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = fx.Graph()
        self.constants: dict[fx.Node, Tensor] = {}
        self._nodes: dict[int, fx.Node] = {}
        self._fixed: dict[int, fx.Node] = {}
        self._made: dict[int, Any] = {}
        self._alive: list[Tensor] = []  # so that no id is given twice
        self._first = self.graph.placeholder("x")
        self._track(x, self._first)

    def depends(self, value: Any) -> bool:
        """Tell whether a tensor depends on the input."""
        return isinstance(value, Tensor) and id(value) in self._nodes

    def returned(self, value: Any) -> None:
        """Make the returned tensor the output of the graph."""
        if not isinstance(value, Tensor):
            raise UnrecordableError(f"the call returns a {type(value).__name__}, no tensor")
        self.graph.output(self._node(value))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, and record it if an argument depends on the input."""
        kwargs = kwargs or {}
        tensors = list(_tensors((args, kwargs)))
        if not any(map(self.depends, tensors)):
            result = func(*args, **kwargs)
            if isinstance(result, Tensor) and all(map(self._is_made, tensors)):
                self._alive.append(result)
                self._made[id(result)] = result._version, func, (args, kwargs)
            return result
        if torch.Tag.data_dependent_output in func.tags:
            raise UnrecordableError(f"{func} makes a Python value of what depends on the input")
        func, args, kwargs = _in_eval_mode(func, args, kwargs)
        self._refuse_writing(func, args, kwargs)
        given = _mapped((args, kwargs), self._node)
        result = func(*args, **kwargs)
        self._write(func, given, result)
        return result

    def _refuse_writing(self, func: Any, args: Any, kwargs: Any) -> None:
        """Refuse to write what depends on the input into a tensor that does not."""
        for place, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = args[place] if place < len(args) else kwargs.get(argument.name)
                if not all(map(self.depends, _tensors(given))):
                    raise UnrecordableError(f"{func} writes into a tensor made beforehand")

    def _write(self, func: Any, given: Any, result: Any) -> None:
        node = self.graph.call_function(func, *given)
        if isinstance(result, Tensor):
            self._track(result, node)
        elif isinstance(result, tuple | list):
            for place, part in enumerate(result):
                if isinstance(part, Tensor):
                    self._track(part, self.graph.call_function(getitem, (node, place)))

    def _track(self, tensor: Tensor, node: fx.Node) -> None:
        self._alive.append(tensor)
        self._nodes[id(tensor)] = node

    def _is_made(self, tensor: Tensor) -> bool:
        """Tell a tensor that was made of numbers alone, and not written to since."""
        made = self._made.get(id(tensor))
        return made is not None and made[0] == tensor._version

    def _node(self, tensor: Tensor) -> fx.Node:
        """Return the node of a tensor; of one that does not depend on the input, a constant.

        One that was made of numbers alone is made again, for its shape may follow the batch.
        """
        known = self._nodes.get(id(tensor)) or self._fixed.get(id(tensor))
        if known is not None:
            return known
        if self._is_made(tensor):
            _, func, given = self._made[id(tensor)]
            node = self.graph.call_function(func, *_mapped(given, self._node))
        else:
            with self.graph.inserting_after(self._first):
                node = self.graph.placeholder(f"constant_{len(self.constants)}")
            self.constants[node] = tensor
        self._alive.append(tensor)
        self._fixed[id(tensor)] = node
        return node


class _Reading(TorchFunctionMode):
    """Refuses to give values that depend on the input to Python, and sees through ``.data``."""

    def __init__(self, recorder: OperationRecorder) -> None:
        super().__init__()
        self._recording = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Pass a call on, unless it reads values."""
        name = getattr(func, "__name__", "")
        reads = name in _READS or func == Tensor.data.__get__  # type: ignore[attr-defined]
        if reads and any(map(self._recording.depends, args)):
            raise UnrecordableError(f"Tensor.{name} reads values of what depends on the input")
        return func(*args, **(kwargs or {}))


@torch.no_grad()
def recorded(f: Function, rows: Tensor) -> tuple[fx.Graph, dict[fx.Node, Tensor]]:
    """Return the operations of one call, and the tensors that are constant in it."""
    rows = rows.detach().clone()
    recorder = OperationRecorder(rows)
    with recorder, _Reading(recorder):
        output = f(rows)
    recorder.returned(output)
    return recorder.graph, recorder.constants


@contextmanager
def without_hooks(f: Function) -> Iterator[None]:
    """Take the forward hooks off all modules of a function while the block runs."""
    modules = list(f.modules()) if isinstance(f, nn.Module) else []
    kinds = ("_forward_hooks", "_forward_pre_hooks")
    kept = [(module, kind, getattr(module, kind)) for module in modules for kind in kinds]
    try:
        for module, kind, hooks in kept:
            setattr(module, kind, type(hooks)())
        yield
    finally:
        for module, kind, hooks in kept:
            setattr(module, kind, hooks)


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested arguments."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _tensors(part)


def _mapped(value: Any, node_of: Any) -> Any:
    """Return nested arguments with nodes in the place of tensors."""
    if isinstance(value, Tensor):
        return node_of(value)
    if isinstance(value, dict):
        return {key: _mapped(part, node_of) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([_mapped(part, node_of) for part in value])
    return value


def _in_eval_mode(func: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """Return batch norm with running statistics as the operation that exporters write for it."""
    if func is _ATEN.native_batch_norm.default and args[5] is False:
        return _ATEN._native_batch_norm_legit_no_training.default, (*args[:5], *args[6:]), kwargs
    return func, args, kwargs
