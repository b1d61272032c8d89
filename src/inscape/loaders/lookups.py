"""Lookups of token ids in a table while a model runs: to see them, and to put a tensor in place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from inscape.loaders.parts import Key

Kind = Literal["rows", "bags", "one-hot"]

#: Calls that read the shape of a tensor, or make another of its shape, and none of its values.
SHAPE_ALONE = {
    "size", "dim", "ndimension", "numel", "stride", "__len__", "is_contiguous", "is_floating_point",
    "type", "element_size", "get_device", "is_complex", "storage_offset", "register_hook",
    "ones_like", "zeros_like", "empty_like", "full_like", "rand_like", "randn_like",
    "new_ones", "new_zeros", "new_empty", "new_full", "new_tensor",
}  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Lookup:
    """One lookup of a call: its kind, the ids, the table, and which input the ids came from.

    ``size`` is how many numbers a token becomes; ``padded`` tells a bag that leaves out one token.
    """

    kind: Kind
    indices: Tensor
    table: Tensor | None
    source: Key | None
    size: int
    padded: bool

    @property
    def vocabulary(self) -> int:
        """Return how many tokens there are."""
        return self.size if self.table is None else len(self.table)


class LookupReached(Exception):  # noqa: N818 - no error: the lookup was reached
    """A call that was ended on purpose at a lookup."""


def lookup_of(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the kind, the ids and the table of a lookup; None for all other calls."""
    if func is functional.embedding:
        return "rows", *_both(args, kwargs, "input", "weight")
    if func is torch.embedding:
        return "rows", *reversed(_both(args, kwargs, "weight", "indices"))
    if func is functional.embedding_bag:
        return "bags", *_both(args, kwargs, "input", "weight")
    if func is functional.one_hot:
        return "one-hot", args[0] if args else kwargs["input"], None
    if func is Tensor.__getitem__ and _picks_rows(*args):
        return "rows", args[1], args[0]
    return None


def _both(args: tuple[Any, ...], kwargs: Mapping[str, Any], first: str, second: str) -> list[Any]:
    return [
        args[place] if place < len(args) else kwargs[name]
        for place, name in enumerate((first, second))
    ]


def _picks_rows(table: Any, index: Any) -> bool:
    """Tell ``table[ids]`` from other ways to index."""
    if not (isinstance(table, Tensor) and isinstance(index, Tensor)):
        return False
    return table.is_floating_point() and table.ndim == 2 and index.dtype in (torch.int64, torch.int)


@dataclass(eq=False)
class Watching(TorchFunctionMode):
    """Sees every lookup of a call, and whether the values of its inputs are read elsewhere.

    Attributes:
        inputs: The tensors that the model is called with.
        lookups: The lookups, in order.
        read: For each input, the places of the lookups that read it; -1 for any other use.
    """

    inputs: Mapping[Key, Tensor]
    lookups: list[Lookup] = field(default_factory=list)
    read: dict[Key, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._sources = {id(tensor): key for key, tensor in self.inputs.items()}
        self._alive: list[Tensor] = []  # so that no id is given twice

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look at a call on its way."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        lookup = lookup_of(func, args, kwargs)
        sources = self._sources_of(args, kwargs)
        if lookup is not None:
            kind, indices, table = lookup
            source = self._sources.get(id(indices))
            self._note(sources, len(self.lookups))
            self.lookups.append(
                Lookup(
                    kind=kind,
                    indices=indices.detach().clone(),
                    table=table,
                    source=source,
                    size=result.shape[-1],
                    padded=kind == "bags" and _bag(args, kwargs).get("padding_idx") is not None,
                )
            )
        elif sources and getattr(func, "__name__", "") not in SHAPE_ALONE:
            self._follow(func, sources, result)
        return result

    def _follow(self, func: Any, sources: list[Key], result: Any) -> None:
        """Let integers made of an input count as that input; anything else is a use of it."""
        if isinstance(result, Tensor) and not (
            result.is_floating_point() or result.dtype is torch.bool
        ):
            self._sources[id(result)] = sources[0]
            self._alive.append(result)
        elif getattr(func, "__name__", "") not in ("__get__", "__set__"):  # shape, device, dtype
            self._note(sources, -1)

    def _note(self, sources: list[Key], place: int) -> None:
        for key in sources:
            self.read.setdefault(key, set()).add(place)

    def _sources_of(self, args: Any, kwargs: Mapping[str, Any]) -> list[Key]:
        flat = [*args, *kwargs.values()]
        nested = [item for value in flat if isinstance(value, tuple | list) for item in value]
        numbers = (id(value) for value in (*flat, *nested) if isinstance(value, Tensor))
        return [self._sources[number] for number in numbers if number in self._sources]


class Putting(TorchFunctionMode):
    """Puts a tensor in the place of what the lookup of a number returns, or stops there.

    Args:
        place: How many lookups come before.
        embedded: What stands for the rows of the table; None ends the call, with the rows that it
            would have picked in ``rows``.
    """

    def __init__(self, place: int, embedded: Tensor | None) -> None:
        super().__init__()
        self._left = place
        self._embedded = embedded
        self.rows: Tensor | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Pass a call on, unless it is that lookup."""
        kwargs = kwargs or {}
        if self._left < 0 or (lookup := lookup_of(func, args, kwargs)) is None:
            return func(*args, **kwargs)
        self._left -= 1
        if self._left >= 0:
            return func(*args, **kwargs)
        kind, indices, table = lookup
        if self._embedded is None:
            self.rows = func(*args, **kwargs) if table is None else table[indices]
            raise LookupReached
        return _bagged(self._embedded, _bag(args, kwargs)) if kind == "bags" else self._embedded


def _bag(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``embedding_bag`` by name."""
    names = (
        "input", "weight", "offsets", "max_norm", "norm_type", "scale_grad_by_freq", "mode",
        "sparse", "per_sample_weights", "include_last_offset", "padding_idx",
    )  # fmt: skip
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _bagged(embedded: Tensor, arguments: Mapping[str, Any]) -> Tensor:
    """Return the sum, mean or maximum over the tokens of each row, as ``embedding_bag`` does."""
    mode, weights, padding = (
        arguments.get(name) for name in ("mode", "per_sample_weights", "padding_idx")
    )
    mask = torch.ones_like(embedded[..., :1])
    if padding is not None:
        mask = (arguments["input"] != padding % len(arguments["weight"]))[..., None].to(
            embedded.dtype
        )
    if mode == "max":
        highest = torch.where(mask > 0, embedded, torch.full_like(embedded, -torch.inf)).amax(1)
        return torch.where(mask.any(1), highest, torch.zeros_like(highest))
    weighted = mask if weights is None else mask * weights[..., None]
    total = (embedded * weighted).sum(1)
    return total if mode == "sum" else total / mask.sum(1).clamp(min=1)
