"""The embedding that a model of tokens begins with: found in a call, and put in its place."""

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from inscape.errors import DataError, UnsupportedModelError, did_you_mean
from inscape.loaders.lookups import Kind, Lookup, LookupReached, Putting, Watching
from inscape.loaders.parts import Key, Parts, nested

#: Names of the inputs of models, and of their outputs, as tensors.
Inputs = Mapping[Key, Tensor]

#: Numbers of a table of distances between tokens and embeddings, per row of the data.
BLOCK = 2**18


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """The lookup that token ids go through first.

    Attributes:
        source: Name or place of the input that holds the ids.
        name: The module, or the parameter, that is looked up; what it is where it has no name.
        place: How many lookups a call makes before it.
        kind: A table of rows, bags of them, or one-hot rows.
        vocabulary: How many tokens it knows.
        shape: Shape of the ids of one row in the lookup.
        input_shape: Shape of a row of the input that holds them.
        size: Numbers of one token.
        parameter: Name of the table among the parameters and buffers; None where it is computed.
        reads_ids: Whether the model uses the ids for something else too, such as a mask.
        sequence_first: Whether the model turns (rows, length) into (length, rows) before it.
    """

    source: Key
    name: str
    place: int
    kind: Kind
    vocabulary: int
    shape: tuple[int, ...]
    input_shape: tuple[int, ...]
    size: int
    parameter: str | None
    reads_ids: bool
    sequence_first: bool = False

    def __str__(self) -> str:
        return f"{self.name!r} ({self.vocabulary:,} tokens, {self.size} numbers each)"

    @torch.no_grad()
    def rows(self, model: nn.Module, inputs: Inputs, fixed: Mapping[str, Any]) -> Tensor:
        """Return the embedded tokens of each row."""
        self.refuse_unknown(inputs[self.source])
        watch = Putting(self.place, None)
        try:
            with watch:
                called(model, inputs, fixed)
        except LookupReached:
            pass
        if watch.rows is None:
            raise _changed(self.name)
        rows = self._turned(watch.rows.detach())
        return rows if rows.is_floating_point() else rows.to(torch.get_default_dtype())

    def call(
        self, model: nn.Module, embedded: Tensor, inputs: Inputs, fixed: Mapping[str, Any]
    ) -> Any:
        """Call the model with embedded tokens in the place of its own lookup."""
        ids = self._ids(model, embedded)
        with Putting(self.place, self._turned(embedded)):
            return called(model, {self.source: ids, **inputs}, fixed)

    def _turned(self, embedded: Tensor) -> Tensor:
        """Return embedded tokens with the axes that the model has, of those of rows, and back."""
        return embedded.transpose(0, 1) if self.sequence_first else embedded

    def embedded_parts(self, parts: Parts) -> Parts:
        """Return what inputs look like once the tokens among them are embedded."""
        return tuple(
            part.as_floats(*self.shape, self.size) if part.key == self.source else part
            for part in parts
        )

    def refuse_unknown(self, ids: Tensor) -> None:
        """Refuse ids that the table has no row for, where it looks up all of them."""
        if math.prod(self.shape) < math.prod(self.input_shape):
            return
        bad = (ids < 0) | (ids >= self.vocabulary)
        if bool(bad.any()):
            row = int(bad.flatten(1).any(1).nonzero()[0])
            raise DataError(
                f"token ids must lie between 0 and {self.vocabulary - 1}, the last of "
                f"{self.name!r}, found {int(ids[bad][0])} in example {row} (counted from 0): use "
                "the tokenizer that the model was trained with, and 0 or its pad token for padding."
            )

    def _ids(self, model: nn.Module, embedded: Tensor) -> Tensor:
        """Return ids to call the model with: where it reads them, those that are nearest."""
        if not self.reads_ids or self.shape != self.input_shape:
            lengths = (embedded.shape[0], *self._lengths(embedded))
            return torch.zeros(lengths, dtype=torch.long, device=embedded.device)
        if self.parameter is None:
            return embedded.detach().argmax(-1)  # one-hot rows, or a table that is computed
        return nearest_rows(embedded.detach(), _tensor(model, self.parameter).detach())

    def _lengths(self, embedded: Tensor) -> tuple[int, ...]:
        """Return the shape of the ids of a row: sequences of another length stay what they are."""
        return self.input_shape if self.shape != self.input_shape else tuple(embedded.shape[1:-1])


def nearest_rows(embedded: Tensor, table: Tensor) -> Tensor:
    """Return for each vector the number of the row of a table that is nearest to it.

    >>> nearest_rows(torch.tensor([[[0.9, 0.2], [0.1, 1.0]]]), torch.eye(2))
    tensor([[0, 1]])
    """
    table = table.to(embedded.dtype)
    halves = table.square().sum(1) / 2
    flat = embedded.flatten(1, -2)
    blocks = torch.split(flat, max(1, BLOCK // len(table)), dim=1)
    ids = torch.cat([(block @ table.T - halves).argmax(-1) for block in blocks], dim=1)
    return ids.reshape(embedded.shape[:-1])


def called(model: nn.Module, inputs: Inputs, fixed: Mapping[str, Any]) -> Any:
    """Call a model with inputs by place and by name, dictionaries among them."""
    inputs = nested(inputs)
    places = [inputs[key] for key in sorted(key for key in inputs if isinstance(key, int))]
    names = {key: tensor for key, tensor in inputs.items() if isinstance(key, str)}
    return model(*places, **names, **fixed)


def find_embedding(
    model: nn.Module, inputs: Inputs, fixed: Mapping[str, Any], *, named: str | None
) -> Embedding | None:
    """Return the first lookup whose ids follow the rows; None where there is none.

    The model is called twice, the second time with the rows in reverse order.

    Args:
        model: A module in eval mode.
        inputs: A few rows of every input.
        fixed: Inputs that are the same for all rows.
        named: The lookup to take: a module or a parameter. None takes the first.
    """
    inputs = {key: tensor.clone() for key, tensor in inputs.items()}  # each an object of its own
    watching = _watched(model, inputs, fixed)
    turned = _watched(model, {k: t.flip(0).clone() for k, t in inputs.items()}, fixed)
    if len(watching.lookups) != len(turned.lookups):
        return None
    names = _names(model)
    choices = [
        (place, lookup)
        for place, (lookup, other) in enumerate(zip(watching.lookups, turned.lookups, strict=True))
        if _follows(lookup, other, inputs)
    ]
    if named is not None:
        choices = [_named(choices, names, named)]
    if not choices:
        return None
    place, lookup = choices[0]
    axis = _axis_of_rows(lookup, turned.lookups[place], inputs)
    return _embedding(place, lookup, watching, inputs, names, sequence_first=axis == 1)


def _watched(model: nn.Module, inputs: Inputs, fixed: Mapping[str, Any]) -> Watching:
    watch = Watching(inputs)
    with torch.no_grad(), watch:
        called(model, inputs, fixed)
    return watch


def _follows(lookup: Lookup, turned: Lookup, inputs: Inputs) -> bool:
    """Tell ids that change with the rows from those that are the same for all, as positions are."""
    return lookup.source is not None and _axis_of_rows(lookup, turned, inputs) is not None


def _axis_of_rows(lookup: Lookup, turned: Lookup, inputs: Inputs) -> int | None:
    """Return the axis of the ids along which the rows lie; None if they do not follow the rows."""
    ids, rows = lookup.indices, len(next(iter(inputs.values())))
    if ids.shape != turned.indices.shape:
        return None
    axes = range(min(ids.ndim, 1 if lookup.kind == "bags" else 2))
    follow = (
        axis
        for axis in axes
        if ids.shape[axis] == rows and torch.equal(ids.flip(axis), turned.indices)
    )
    return next(follow, None)


def _embedding(
    place: int,
    lookup: Lookup,
    watching: Watching,
    inputs: Inputs,
    names: dict[int, list[str]],
    *,
    sequence_first: bool,
) -> Embedding:
    source = lookup.source
    assert source is not None  # _follows asks for it
    own = names.get(id(lookup.table), [])
    name = own[0].removesuffix(".weight") if own else f"{lookup.kind} of {source}"
    return Embedding(
        source=source,
        name=name,
        place=place,
        kind=lookup.kind,
        vocabulary=lookup.vocabulary,
        shape=tuple(lookup.indices.movedim(int(sequence_first), 0).shape[1:]),
        input_shape=tuple(inputs[source].shape[1:]),
        size=lookup.size,
        parameter=own[0] if own else None,
        reads_ids=bool(watching.read.get(source, set()) - {place}) or lookup.padded,
        sequence_first=sequence_first,
    )


def _names(model: nn.Module) -> dict[int, list[str]]:
    """Return the names of parameters and buffers by the identity of the tensor."""
    names: dict[int, list[str]] = {}
    for name, tensor in (
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ):
        names.setdefault(id(tensor), []).append(name)
    return names


def _named(
    choices: Sequence[tuple[int, Lookup]], names: dict[int, list[str]], named: str
) -> tuple[int, Lookup]:
    known = {
        name.removesuffix(".weight"): choice
        for choice in reversed(choices)
        for name in names.get(id(choice[1].table), [])
    }
    wanted = named.removesuffix(".weight")
    if wanted in known:
        return known[wanted]
    listed_names = ", ".join(map(repr, reversed(known))) or "none"
    offer = did_you_mean(wanted, list(known), otherwise="name one of them.", quoted=True)
    raise UnsupportedModelError(
        f"the embedding must be one that the model looks tokens up in, found {named!r} where it "
        f"uses {listed_names}: {offer}"
    )


def _tensor(model: nn.Module, name: str) -> Tensor:
    """Return a parameter or buffer by its name, as it is now."""
    owner, _, attribute = name.rpartition(".")
    tensor: Tensor = getattr(model.get_submodule(owner), attribute)
    return tensor


def _changed(name: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"the model must look tokens up in {name!r} in every call, found a call that does not: "
        "take out of its forward what differs from call to call."
    )


def sample_tokens(model: nn.Module) -> Tensor:
    """Return two short sequences that a model of tokens may take, where nobody gave any."""
    sizes = [
        module.num_embeddings
        for module in model.modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
    ]
    if not sizes:
        raise ValueError(
            "the embedding of a model without nn.Embedding must be found from tokens, found none: "
            "pass them, inscape.adapt(model, embedding=True, inputs=tokens)."
        )
    return torch.arange(16).reshape(2, 8) % min(sizes[0], 16)


def refuse_other_lengths(inputs: Inputs) -> None:
    """Refuse a mask whose rows are longer or shorter than those of the tokens."""
    tokens = [key for key, t in inputs.items() if _is_tokens(key, t)]
    masks = [key for key, t in inputs.items() if "mask" in str(key).lower() and t.ndim == 2]
    for mask in masks:
        for key in tokens[:1]:
            shape, expected = tuple(inputs[mask].shape), tuple(inputs[key].shape)
            if shape != expected:
                raise DataError(
                    f"the input {mask!r} must have one number for each of {key!r}, whose shape is "
                    f"{expected}, found {shape}: pad or cut both to one length."
                )


def _is_tokens(key: Key, tensor: Tensor) -> bool:
    is_mask = "mask" in str(key).lower() or tensor.dtype is torch.bool
    return not tensor.is_floating_point() and tensor.ndim == 2 and not is_mask


def arguments_of(model: nn.Module) -> tuple[str, ...]:
    """Return the names of what a model takes: those of a file, else those of its forward."""
    if declared := getattr(model, "input_names", ()):
        return tuple(declared)
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
