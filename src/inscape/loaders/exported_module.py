"""An exported graph as a plain module with its own parameters and buffers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn

from inscape.errors import BudgetError
from inscape.files.size_limits import in_bytes, memory
from inscape.loaders.exported_nodes import AtenCall

#: Inputs, by shape and precision, that are remembered to fit into memory.
_REMEMBERED = 1000


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """Where the graph reads each tensor (place -> name), its input, and where its output is."""

    tensors: Mapping[str, str]
    input: str
    output: str


@dataclass(frozen=True, kw_only=True)
class ExportedLayer:
    """A module without modules of its own, as it was before the export: what it returned last."""

    kind: str
    result: str


class AtenModule(nn.Module):
    """A graph of aten steps with its parameters and buffers under their own names."""

    def __init__(
        self, steps: Sequence[AtenCall], tensors: Mapping[str, Tensor], wiring: Wiring
    ) -> None:
        """Hold the steps, and the tensors by name."""
        super().__init__()
        for name, tensor in tensors.items():
            place(self, name, tensor)
        self._wiring = wiring
        self._steps = tuple(_with_forgetting(steps, keep=wiring.output))
        self._fitting: set[tuple[torch.Size, torch.dtype]] = set()
        self._taps: Mapping[str, Callable[[Any], None]] = {}

    @property
    def layers(self) -> dict[str, ExportedLayer]:
        """Return the layers by the names of the modules that they were."""
        last = {
            step.module: ExportedLayer(kind=step.kind, result=step.results[0])
            for step in self._steps
            if step.module and step.results and step.results[0] is not None
        }
        inner = {name.rpartition(".")[0] for name in last}
        return {name: layer for name, layer in last.items() if name not in inner}

    @contextmanager
    def tapped(self, taps: Mapping[str, Callable[[Any], None]]) -> Iterator[None]:
        """Pass what layers return to functions, by the names of their results, in this context."""
        before, self._taps = self._taps, taps
        try:
            yield
        finally:
            self._taps = before

    def forward(self, x: Tensor) -> Tensor:
        """Replay the steps."""
        if not torch.compiler.is_compiling() and (x.shape, x.dtype) not in self._fitting:
            self._check_memory(x)
        values = self._tensors()
        values[self._wiring.input] = x
        for step in self._steps:
            step.run(values, x)
            for name in step.makes & self._taps.keys():
                self._taps[name](values[name])
        result: Tensor = values[self._wiring.output]
        return result

    def _tensors(self) -> dict[str, Any]:
        """Return parameters and buffers by the places where the graph reads them."""
        return {place: attrgetter(name)(self) for place, name in self._wiring.tensors.items()}

    @torch.no_grad()
    def _check_memory(self, x: Tensor) -> None:
        """Refuse an input for which the steps would take more memory than there is.

        A few steps of a small file can describe tensors of any size, so the shapes are computed
        first, on the device ``meta``, which stores no numbers.
        """
        limit = memory() * 3 // 4
        values: dict[str, Any] = {
            place: _shape_only(tensor) for place, tensor in self._tensors().items()
        }
        own = {_storage(tensor) for tensor in values.values()}
        values[self._wiring.input] = shape = _shape_only(x)
        for step in self._steps:
            step.run(values, shape)
            tensors = [value for value in values.values() if isinstance(value, Tensor)]
            storages = {_storage(tensor): tensor.untyped_storage().nbytes() for tensor in tensors}
            total = sum(size for storage, size in storages.items() if storage not in own)
            largest = max(tensor.numel() * tensor.element_size() for tensor in tensors)
            if max(total, largest) > limit:
                raise BudgetError(
                    f"an exported program must fit into {in_bytes(limit)}, three quarters of the "
                    f"memory here, found {in_bytes(max(total, largest))} at {step.target!r} for "
                    f"inputs of shape {tuple(x.shape)}: use smaller batches."
                )
        if len(self._fitting) >= _REMEMBERED:
            self._fitting.clear()
        self._fitting.add((x.shape, x.dtype))

    def extra_repr(self) -> str:
        """Say how long the program is."""
        return f"exported program, {len(self._steps)} steps"


def _shape_only(tensor: Tensor) -> Tensor:
    """Return a tensor of the same shape, strides and precision without its numbers."""
    return torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=torch.device("meta")
    )


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _with_forgetting(steps: Sequence[AtenCall], *, keep: str) -> list[AtenCall]:
    """Let each step drop what no later step reads, so that a batch takes no more than it must."""
    read_later, backwards = {keep}, []
    for step in reversed(steps):
        forget = tuple(sorted((step.reads | step.makes) - read_later))
        read_later |= step.reads
        backwards.append(replace(step, forget=forget))
    return backwards[::-1]


def place(module: nn.Module, name: str, tensor: Tensor) -> None:
    """Register a parameter or buffer under its whole name, making the modules between."""
    *folders, leaf = name.split(".")
    for folder in folders:
        if folder not in dict(module.named_children()):
            module.add_module(folder, nn.Module())
        module = module.get_submodule(folder)
    if isinstance(tensor, nn.Parameter):
        module.register_parameter(leaf, tensor)
    else:
        module.register_buffer(leaf, tensor)
