"""Several inputs as one row, which holds the numbers of all of them one after the other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch import Tensor

from inscape.errors import DataError

#: Integers above this are rounded by single precision.
EXACT = 2**24

#: An input by its name or by its place.
Key = str | int


@dataclass(frozen=True, kw_only=True)
class InputPart:
    """One of several inputs: its name or place, and what a row of it looks like."""

    key: Key
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def size(self) -> int:
        """Return how many numbers of a row it takes."""
        return prod(self.shape)

    @property
    def is_integer(self) -> bool:
        """Tell token ids, masks and kinds from numbers that have a gradient."""
        return not self.dtype.is_floating_point

    def checked(self, tensor: Tensor) -> Tensor:
        """Return an input, unless its rows are others than expected or cannot be kept exactly."""
        if tuple(tensor.shape[1:]) != self.shape:
            raise DataError(
                f"the input {self.key!r} must have examples of shape {self.shape}, found "
                f"{tuple(tensor.shape[1:])}: pad or cut them."
            )
        integers = not tensor.is_floating_point() and tensor.numel() > 0
        if integers and (largest := int(tensor.long().abs().max())) > EXACT:
            raise DataError(
                f"the input {self.key!r} must hold integers up to {EXACT:,}, which rows keep "
                f"exactly, found {largest:,}: number them anew from 0."
            )
        return tensor

    def of(self, numbers: Tensor) -> Tensor:
        """Return the input that some columns of rows stand for."""
        shaped = numbers.reshape(numbers.shape[0], *self.shape)
        return shaped.round().to(self.dtype) if self.is_integer else shaped

    def as_floats(self, *shape: int) -> "InputPart":
        """Return this part with rows of another shape that hold floating-point numbers."""
        return replace(self, shape=shape, dtype=torch.float32)


Parts = tuple[InputPart, ...]


def part_of(key: Key, tensor: Tensor) -> InputPart:
    """Return what the rows of an input look like."""
    if tensor.ndim == 0:
        raise DataError(
            f"the input {key!r} must have a row for each example, found a single number: pass it "
            "as fixed."
        )
    return InputPart(key=key, shape=tuple(tensor.shape[1:]), dtype=tensor.dtype)


def keyed(inputs: Mapping[Any, Any] | Sequence[Any]) -> dict[Key, Tensor]:
    """Return inputs by their names, or by their places."""
    pairs: list[tuple[Any, Any]] = list(
        inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    )
    if not pairs:
        raise ValueError("inputs must hold at least one tensor, found none: name the input.")
    return dict(part for key, value in pairs for part in _leaves(key, value))


def _leaves(key: Key, value: Any) -> Iterator[tuple[Key, Tensor]]:
    """Yield the tensors of an input; those of a dictionary are called ``batch.image``."""
    if not isinstance(value, Mapping):
        yield key, torch.as_tensor(value)
        return
    for inner, part in value.items():
        if not isinstance(inner, str) or "." in inner:
            raise DataError(
                f"the dictionary {key!r} must have names without dots as keys, found {inner!r}: "
                "rename it in a module around the model."
            )
        yield from _leaves(f"{key}.{inner}", part)


def nested(inputs: Mapping[Key, Any]) -> dict[Key, Any]:
    """Return the arguments that inputs stand for: ``batch.image`` is an entry of ``batch``.

    >>> nested({"batch.image": 1, "batch.table": 2, "gain": 3, "0.left": 4})
    {'batch': {'image': 1, 'table': 2}, 'gain': 3, 0: {'left': 4}}
    """
    arguments: dict[Any, Any] = {}
    for key, value in inputs.items():
        head, *path = key.split(".") if isinstance(key, str) else [key]
        steps = [int(head) if path and str(head).isdecimal() else head, *path]
        place = arguments
        for step in steps[:-1]:
            place = place.setdefault(step, {})
        place[steps[-1]] = value
    return arguments


def joined(parts: Parts, inputs: Mapping[Key, Tensor]) -> Tensor:
    """Return rows that hold the numbers of all inputs."""
    keys = [part.key for part in parts]
    if set(inputs) != set(keys):
        raise DataError(
            f"inputs must be {listed(keys)}, found {listed(inputs)}: pass those, and nothing else."
        )
    tensors = [part.checked(inputs[part.key]) for part in parts]
    if len({len(tensor) for tensor in tensors}) > 1:
        raise DataError(
            f"inputs must have one length, found {listed(map(len, tensors))} examples: drop the "
            f"extra ones, or give what is the same for every example (a graph, say) from Python: "
            f"inscape.adapt(model, fixed={{{str(_shortest(inputs))!r}: ...}})."
        )
    floats = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
    wide = torch.float64 if torch.float64 in floats else torch.float32
    return torch.cat([tensor.reshape(len(tensor), -1).to(wide) for tensor in tensors], 1)


def _shortest(inputs: Mapping[Key, Tensor]) -> Key:
    return min(inputs, key=lambda key: len(inputs[key]))


def separated(parts: Parts, rows: Tensor) -> dict[Key, Tensor]:
    """Return the inputs that rows hold."""
    width = sum(part.size for part in parts)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(
            f"rows of {width} numbers make the inputs of this network, found shape "
            f"{tuple(rows.shape)}: make them with its rows(inputs)."
        )
    columns = rows.split_with_sizes([part.size for part in parts], dim=1)
    return {part.key: part.of(numbers) for part, numbers in zip(parts, columns, strict=True)}


def listed(words: Iterable[object]) -> str:
    """Return words separated by commas."""
    return ", ".join(map(str, words))
