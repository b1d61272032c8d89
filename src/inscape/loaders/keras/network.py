"""A Keras model as a plain module: its layers by name, called in the order of its graph."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from inscape.errors import BudgetError, UnsupportedModelError
from inscape.files.size_limits import in_bytes, memory
from inscape.loaders.files import short
from inscape.loaders.keras.config import KerasLayer, LayerCall, Model, Reference
from inscape.loaders.keras.layers_dense import PLAIN, Array, Builder, Weights
from inscape.loaders.keras.layers_normalising import NORMALISING
from inscape.loaders.keras.layers_recurrent import RECURRENT, EachStep
from inscape.loaders.keras.layers_shaping import SHAPING
from inscape.loaders.keras.layers_windows import WINDOWS

BUILDERS: dict[str, Builder] = {**PLAIN, **NORMALISING, **SHAPING, **WINDOWS, **RECURRENT}
KNOWN = frozenset({*BUILDERS, "TimeDistributed"})

#: Weights by the names of layers; those of a model inside a model are a table of their own.
Table = Mapping[str, "Weights | Table"]

#: Arguments of calls that change nothing when a model predicts.
_IDLE = ("mask", "training", "initial_state", "attention_mask", "return_attention_scores")
_REMEMBERED = 1000


class KerasNetwork(nn.Module):
    """The layers of a Keras model; several outputs are returned as a dictionary by name.

    Inputs have their channels last, as in Keras.

    Attributes:
        inputs: The names of its inputs, in order.
        shapes: The shape of an example of each input; None where any size will do.
    """

    def __init__(self, model: Model, weights: Table, *, inside: bool = False) -> None:
        super().__init__()
        self.inputs = tuple(name for name, _, _ in model.inputs)
        by_name = {layer.name: layer for layer in model.layers}
        if len(by_name) != len(model.layers):
            raise UnsupportedModelError("a model must have a name for each layer, found one twice")
        self.shapes = tuple(_row(by_name[name]) for name in self.inputs)
        self._order = tuple(_ordered(model))
        self._outputs = model.outputs
        self.layers = nn.ModuleDict()
        self._keys = _keys(by_name)
        for layer in model.layers:
            if layer.name not in self.inputs:
                self.layers[self._keys[layer.name]] = built(layer, weights.get(layer.name, ()))
        self._fitting: set[tuple[Any, ...]] = set()
        self._twin: tuple[nn.Module, ...] = ()
        self.eval()
        if not inside:
            self._twin = (deepcopy(self).to("meta"),)

    def forward(
        self, first: Tensor | None = None, /, *more: Tensor, **named: Tensor
    ) -> Tensor | dict[str, Tensor]:
        """Return what the network makes of its inputs, in order or by name."""
        inputs = self._checked(() if first is None else (first, *more), named)
        shapes = tuple((x.shape, x.dtype) for x in inputs)
        if self._twin and not torch.compiler.is_compiling() and shapes not in self._fitting:
            self._check_memory(inputs, shapes)
        values = self.run(inputs)
        names = [name for name, _, _ in self._outputs]
        return values[0] if len(values) == 1 else dict(zip(names, values, strict=True))

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the outputs, in order."""
        values: dict[Reference, Tensor] = {
            (name, 0, 0): x for name, x in zip(self.inputs, inputs, strict=True)
        }
        for name, node, call in self._order:
            module = self.layers[self._keys[name]]
            arguments = [_read(item, values) for item in call.arguments]
            named = {key: _read(item, values) for key, item in call.named.items()}
            output = module(*arguments, **named)
            several = list(output.values()) if isinstance(output, dict) else [output]
            values.update({(name, node, place): x for place, x in enumerate(several)})
        return [values[reference] for reference in self._outputs]

    def _checked(self, tensors: Sequence[Tensor], named: Mapping[str, Tensor]) -> list[Tensor]:
        inputs = {**dict(zip(self.inputs, tensors, strict=False)), **named}
        if len(tensors) > len(self.inputs) or set(inputs) != set(self.inputs):
            raise UnsupportedModelError(
                f"this network must have the inputs {', '.join(self.inputs)}, found "
                f"{len(tensors) + len(named)}: "
                "combine several with inscape.adapt(model, inputs=...)."
            )
        for name, shape in zip(self.inputs, self.shapes, strict=True):
            row = tuple(inputs[name].shape[1:])
            fits = shape is None or len(row) == len(shape)
            if shape and not (
                fits and all(b in (None, a) for a, b in zip(row, shape, strict=True))
            ):
                sizes = "x".join("any" if size is None else str(size) for size in shape)
                raise UnsupportedModelError(
                    f"the input {name!r} must have examples of {sizes} (channels last), found "
                    f"{'x'.join(map(str, row))}: give --input-shape {sizes}."
                )
        return [inputs[name] for name in self.inputs]

    @torch.no_grad()
    def _check_memory(self, inputs: Sequence[Tensor], shapes: tuple[Any, ...]) -> None:
        """Refuse inputs for which a layer would take more memory than there is.

        A small file can describe tensors of any size, so shapes are computed first, on the device
        ``meta``, which stores no numbers.
        """
        (twin,) = self._twin
        empty = [torch.empty(x.shape, dtype=x.dtype, device="meta") for x in inputs]
        with torch._C.DisableTorchFunction(), _SizeLimit(memory() * 3 // 4):  # seen by nobody else
            _run_safely(twin.to(inputs[0].dtype) if inputs[0].is_floating_point() else twin, empty)
        if len(self._fitting) >= _REMEMBERED:
            self._fitting.clear()
        self._fitting.add(shapes)


class _SizeLimit(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses results of operators that are larger than a limit."""

    def __init__(self, limit: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._limit = limit

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(output):
            size = tensor.numel() * tensor.element_size() if isinstance(tensor, Tensor) else 0
            if size > self._limit:
                raise BudgetError(
                    f"a network must fit into {in_bytes(self._limit)}, three quarters of the "
                    f"memory here, found a layer that makes {in_bytes(size)}: use smaller batches."
                )
        return output


def _run_safely(network: Any, inputs: Sequence[Tensor]) -> None:
    try:
        network.run(inputs)
    except (UnsupportedModelError, BudgetError):
        raise
    except (RuntimeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise UnsupportedModelError(
            f"the layers of a Keras model must fit together, but they raised {short(error)}: give "
            "rows of the shape that it was trained on, or save the model again."
        ) from error


def _keys(names: Iterable[str]) -> dict[str, str]:
    """Return names that layers may have as submodules."""
    keys: dict[str, str] = {}
    for name in names:
        key = name.replace(".", "_") or "_"
        while hasattr(nn.ModuleDict, key) or key == "training" or key in keys.values():
            key += "_"
        keys[name] = key
    return keys


def built(layer: KerasLayer, weights: "Weights | Table") -> nn.Module:
    """Return a layer with its weights."""
    if isinstance(layer.inner, Model):
        table = weights if isinstance(weights, Mapping) else {}
        return KerasNetwork(layer.inner, table, inside=True)
    if isinstance(weights, Mapping):
        layer.refuse("weights of its own", "those of a model")
    if layer.kind == "TimeDistributed":
        if not isinstance(layer.inner, KerasLayer):
            layer.refuse("a layer inside", "none")
        return EachStep(built(layer.inner, weights))
    if layer.kind not in BUILDERS:
        layer.refuse("a known class", layer.kind)
    return BUILDERS[layer.kind](layer, weights)


def _row(layer: KerasLayer) -> tuple[int | None, ...] | None:
    """Return the shape of an example of an input, if the file says it."""
    shape = layer.settings.get("batch_shape") or layer.settings.get("batch_input_shape")
    shape = shape.get("config") if isinstance(shape, Mapping) else shape
    if not isinstance(shape, list):
        return None
    if not all(n is None or (type(n) is int and 0 < n < 2**31) for n in shape[1:]):
        layer.refuse("sizes from 1 on", shape)
    return tuple(shape[1:])


def _ordered(model: Model) -> Iterator[tuple[str, int, LayerCall]]:
    """Yield the calls of layers, each after those whose results it reads."""
    ready = {(name, node) for name, node, _ in model.inputs}
    waiting = [
        (layer.name, node, _supported_call(layer, call))
        for layer in model.layers
        for node, call in enumerate(layer.calls)
    ]
    while waiting:
        later = []
        for name, node, call in waiting:
            reads = {item[:2] for item in _references_in([*call.arguments, *call.named.values()])}
            if reads <= ready:
                ready.add((name, node))
                yield name, node, call
            else:
                later.append((name, node, call))
        if len(later) == len(waiting):
            raise UnsupportedModelError(
                f"each layer must read the outputs of others, found {later[0][0]!r}, which reads "
                "one that does not exist: save the model again."
            )
        waiting = later
    missing = [reference[0] for reference in model.outputs if reference[:2] not in ready]
    if missing:
        raise UnsupportedModelError(f"outputs must be made by a layer, found none for {missing[0]}")


def _supported_call(layer: KerasLayer, call: LayerCall) -> LayerCall:
    """Return a call without the arguments that change nothing, and refuse others."""
    named: dict[str, Any] = {}
    for key, value in call.named.items():
        if key == "use_causal_mask" and layer.kind == "MultiHeadAttention":
            named["causal"] = bool(value)
        elif key in ("query", "value", "key") and layer.kind == "MultiHeadAttention":
            named |= {} if value is None else {key: value}
        elif key not in _IDLE or value not in (None, False):
            layer.refuse("calls with tensors alone", f"{key}={value}")
    return replace(call, named=named)


def _references_in(arguments: Any) -> Iterator[Reference]:
    if isinstance(arguments, tuple):
        yield arguments
    elif isinstance(arguments, list):
        for item in arguments:
            yield from _references_in(item)


def _read(item: Any, values: Mapping[Reference, Tensor]) -> Any:
    if isinstance(item, tuple):
        return values[item]
    return [_read(inner, values) for inner in item] if isinstance(item, list) else item


__all__ = ["KNOWN", "Array", "KerasNetwork", "Table", "built"]
