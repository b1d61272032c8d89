"""Which networks can share a stack: those of one architecture on data of one shape."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn.utils import parametrize

#: Attributes that every module has, and that say nothing of what it computes.
SILENT = frozenset(vars(nn.Module())) | {"training"}


def groups(
    models: Sequence[nn.Module], xs: Sequence[Tensor], ys: Sequence[Tensor]
) -> list[list[int]]:
    """Return the members that are alike, in the order of their first."""
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for index, (model, x, y) in enumerate(zip(models, xs, ys, strict=True)):
        alike[mark(model, x, y)].append(index)
    return list(alike.values())


def mark(model: nn.Module, x: Tensor, y: Tensor) -> Hashable:
    """Return something that is equal for two members whose updates are the same operations."""
    parts = tuple(
        (name, *_types(part), part.extra_repr(), tuple(_attributes(part)))
        for name, part in model.named_modules()
    )
    weights = tuple((n, p.requires_grad, *_kind(p)) for n, p in model.named_parameters())
    buffers = tuple((name, *_kind(buffer)) for name, buffer in model.named_buffers())
    return parts, weights, buffers, _kind(x), _kind(y)


def _types(part: nn.Module) -> tuple[Any, ...]:
    """Return the class of a module; torch gives every parametrized one a class of its own."""
    own = type(part)
    return (own.__bases__, own.__name__) if parametrize.is_parametrized(part) else (own,)


def _attributes(part: nn.Module) -> list[tuple[str, Hashable]]:
    """Return what a module keeps beside its tensors and parts."""
    kept = ((name, value) for name, value in vars(part).items() if name not in SILENT)
    return [(name, _word(value)) for name, value in kept]


def _word(value: Any) -> Hashable:
    """Return a value to compare by; what cannot be compared is like itself alone."""
    if isinstance(value, list | tuple):
        return (type(value), *map(_word, value))
    if isinstance(value, Tensor) or type(value).__hash__ is None:
        return id(value)
    return (type(value), value)


def _kind(tensor: Tensor) -> tuple[Hashable, ...]:
    return tuple(tensor.shape), tensor.dtype, tensor.device
