"""A network of one tensor in, one tensor out, made of one that takes or returns something else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from inscape._core.errors import DataError, UnsupportedModelError
from inscape.intake.files import nearest

#: What a classifier of Hugging Face calls the output that everybody means.
LOGITS = "logits"
#: Whole numbers above this are rounded by single precision.
EXACT = 2**24


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of several inputs: its name or place, and what a row of it looks like."""

    key: str | int
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def size(self) -> int:
        """Return how many numbers of a row it takes."""
        return prod(self.shape)

    def checked(self, tensor: Tensor) -> Tensor:
        """Return an input, unless its rows are others than expected or cannot be kept exactly."""
        if tuple(tensor.shape[1:]) != self.shape:
            raise DataError(
                f"the input {self.key!r} must have rows of shape {self.shape}, found "
                f"{tuple(tensor.shape[1:])}: pad or cut them."
            )
        whole = not tensor.is_floating_point() and tensor.numel() > 0
        if whole and (largest := int(tensor.long().abs().max())) > EXACT:
            raise DataError(
                f"the input {self.key!r} must hold whole numbers up to {EXACT:,}, which rows keep "
                f"exactly, found {largest:,}: number them anew from 0."
            )
        return tensor

    def of(self, numbers: Tensor) -> Tensor:
        """Return the input that some columns of rows stand for."""
        shaped = numbers.reshape(len(numbers), *self.shape)
        if self.dtype.is_floating_point:
            return shaped
        return shaped.round().to(self.dtype)


class Adapted(nn.Module):
    """A network that takes rows and returns one tensor; made by :func:`adapt`.

    Attributes:
        model: The network inside.
        take: The name or place of the output that is returned; None for the only one.
        parts: The inputs that a row is made of; None if the row itself is the input.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        take: str | int | None,
        name: str | None,
        parts: tuple[Part, ...] | None,
        fixed: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self.model = model
        self.take = take
        self.parts = parts
        self._name = name
        self._fixed = dict(fixed)
        for key, value in fixed.items():
            if isinstance(value, Tensor):  # moves with the module
                self.register_buffer(f"fixed_{key}", value, persistent=False)
        self.training = model.training

    def forward(self, x: Tensor) -> Tensor:
        """Return the chosen output for some rows."""
        places, names = self._inputs(x)
        return taken(self.model(*places, **names, **self.fixed), self.take)

    @property
    def fixed(self) -> dict[str, Any]:
        """Return the inputs that are the same for all rows."""
        return {
            key: getattr(self, f"fixed_{key}") if isinstance(value, Tensor) else value
            for key, value in self._fixed.items()
        }

    def rows(self, inputs: Mapping[str, Tensor] | Sequence[Tensor]) -> Tensor:
        """Return several inputs as rows, the ones that the network is measured on."""
        if self.parts is None:
            raise ValueError(
                "rows are made of several inputs, found a network of one: pass inputs={'name': "
                "tensor, ...} to adapt, or measure it on that input itself."
            )
        given = dict(_keyed(inputs))
        keys = [part.key for part in self.parts]
        if set(given) != set(keys):
            raise DataError(
                f"inputs must be {_listed(keys)}, found {_listed(given)}: pass those, and nothing "
                "else."
            )
        found = [part.checked(given[part.key]) for part in self.parts]
        if len({len(tensor) for tensor in found}) > 1:
            raise DataError(
                f"inputs must have one length, found {_listed(map(len, found))} rows: drop the "
                "rows too many."
            )
        floats = [tensor.dtype for tensor in found if tensor.is_floating_point()]
        wide = torch.float64 if torch.float64 in floats else torch.float32
        return torch.cat([tensor.reshape(len(tensor), -1).to(wide) for tensor in found], 1)

    def _inputs(self, x: Tensor) -> tuple[list[Tensor], dict[str, Tensor]]:
        if self.parts is None:
            return ([x], {}) if self._name is None else ([], {self._name: x})
        width = sum(part.size for part in self.parts)
        if x.ndim != 2 or x.shape[1] != width:
            raise ValueError(
                f"rows of {width} numbers make the inputs of this network, found shape "
                f"{tuple(x.shape)}: make them with its rows(inputs)."
            )
        columns = x.split_with_sizes([part.size for part in self.parts], dim=1)
        found = [part.of(numbers) for part, numbers in zip(self.parts, columns, strict=True)]
        both = list(zip(self.parts, found, strict=True))
        return (
            [tensor for part, tensor in both if isinstance(part.key, int)],
            {part.key: tensor for part, tensor in both if isinstance(part.key, str)},
        )


def adapt(
    model: nn.Module,
    *,
    take: str | int | None = None,
    inputs: str | Mapping[str, Tensor] | Sequence[Tensor] | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Adapted:
    """Return a module of one tensor in, one tensor out, that every instrument can measure.

    It has the parameters of the model, which is not copied, and its mode. Several inputs become
    one: a row holds the numbers of all of them, one input after the other, and ``rows(inputs)``
    makes such rows. Whole numbers in them are rounded on the way in and have no gradient.

    Args:
        model: A module that takes something else, or returns something else.
        take: Which output: a name (``"logits"``) or a place (``0``). None takes the only one there
            is, or the one that is called logits.
        inputs: How the rows are passed on: as the input of a name (``"pixel_values"``); or several
            inputs, by name or in order, as examples of what they look like. None passes the rows
            on as they are.
        fixed: Inputs that are the same for every row, by name: ``{"adjacency": a}``.

    >>> class Pair(nn.Module):
    ...     def forward(self, a, b, scale):
    ...         return {"sum": scale * (a + b), "difference": a - b}
    >>> a, b = torch.ones(3, 2), torch.full((3, 2), 4.0)
    >>> net = adapt(Pair(), take="sum", inputs={"a": a, "b": b}, fixed={"scale": 10.0})
    >>> net.rows({"a": a, "b": b}).shape, net(net.rows({"a": a, "b": b}))[0]
    (torch.Size([3, 4]), tensor([50., 50.]))
    """
    name, parts = None, None
    if isinstance(inputs, str):
        name = inputs
    elif inputs is not None:
        parts = tuple(_part(key, tensor) for key, tensor in _keyed(inputs))
    return Adapted(model, take=take, name=name, parts=parts, fixed=fixed or {})


def taken(output: Any, take: str | int | None) -> Tensor:
    """Return one tensor of what a network returned.

    >>> taken({"logits": torch.zeros(2), "loss": torch.ones(1)}, None)
    tensor([0., 0.])
    """
    if isinstance(output, Tensor) and take is None:
        return output
    names = tensors_in(output)
    if take is None:
        return names[only_name(names, output)]
    key = int(take) if isinstance(take, str) and take.isdigit() and take not in names else take
    if isinstance(key, int) and 0 <= key < len(names):
        return list(names.values())[key]
    if key in names and isinstance(key, str):
        return names[key]
    there = ", ".join(f"{name} ({place})" for place, name in enumerate(names)) or "none"
    near = nearest(str(take), list(names))
    raise UnsupportedModelError(
        f"the output to take must be one of those the model returns, found {take!r} where it "
        f"returns {there}: {near or 'name one of them.'}"
    )


def only_name(names: Mapping[str, Tensor], output: Any) -> str:
    """Return the name of the output that is meant where nobody has said which."""
    if LOGITS in names:
        return LOGITS
    if len(names) == 1:
        return next(iter(names))
    there = ", ".join(names) or "no tensor"
    raise UnsupportedModelError(
        f"the model must return one tensor, found {type(output).__name__} of {there}: say which "
        "to measure, --take NAME or inscape.adapt(model, take=NAME)."
    )


def tensors_in(output: Any) -> dict[str, Tensor]:
    """Return the tensors that a network returned, by name or else by place."""
    if isinstance(output, Tensor):
        return {"0": output}
    if isinstance(output, Mapping):
        found = {str(key): value for key, value in output.items()}
    elif isinstance(output, tuple) and hasattr(output, "_fields"):
        found = dict(zip(output._fields, output, strict=True))
    elif isinstance(output, tuple | list):
        found = {str(place): value for place, value in enumerate(output)}
    else:
        found = dict(vars(output)) if hasattr(output, "__dict__") else {}
    return {key: value for key, value in found.items() if isinstance(value, Tensor)}


def _keyed(inputs: Mapping[str, Tensor] | Sequence[Tensor]) -> list[tuple[str | int, Tensor]]:
    """Return inputs with their names, or with their places."""
    pairs: list[tuple[Any, Any]] = list(
        inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    )
    if not pairs:
        raise ValueError("inputs must hold at least one tensor, found none: name the input.")
    return [(key, torch.as_tensor(value)) for key, value in pairs]


def _part(key: str | int, tensor: Tensor) -> Part:
    if tensor.ndim == 0:
        raise DataError(
            f"the input {key!r} must have a row for each example, found a single number: pass it "
            "as fixed."
        )
    return Part(key=key, shape=tuple(tensor.shape[1:]), dtype=tensor.dtype)


def _listed(words: Iterable[object]) -> str:
    return ", ".join(map(str, words))
