"""Which networks can share a stack: those of one architecture on data of one shape."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn.utils import parametrize

#: Attributes of every module, which do not change what it computes.
COMMON = frozenset(vars(nn.Module())) | {"training"}


def groups(
    models: Sequence[nn.Module], xs: Sequence[Tensor], ys: Sequence[Tensor]
) -> list[list[int]]:
    """Return the indices of the members of each architecture, in the order of their first."""
    kinds: dict[Hashable, list[int]] = defaultdict(list)
    for index, (model, x, y) in enumerate(zip(models, xs, ys, strict=True)):
        kinds[kind_of(model, x, y)].append(index)
    return list(kinds.values())


def kind_of(model: nn.Module, x: Tensor, y: Tensor) -> Hashable:
    """Return a key that is equal for two members whose updates are the same operations."""
    parts = tuple(
        (name, *_types(part), part.extra_repr(), tuple(_attributes(part)))
        for name, part in model.named_modules()
    )
    weights = tuple((n, p.requires_grad, *_layout(p)) for n, p in model.named_parameters())
    buffers = tuple((name, *_layout(buffer)) for name, buffer in model.named_buffers())
    return parts, weights, buffers, _layout(x), _layout(y)


def _types(part: nn.Module) -> tuple[Any, ...]:
    """Return the class of a module; torch gives every parametrized one a class of its own."""
    own = type(part)
    return (own.__bases__, own.__name__) if parametrize.is_parametrized(part) else (own,)


def _attributes(part: nn.Module) -> list[tuple[str, Hashable]]:
    """Return the attributes of a module beside its tensors and submodules."""
    attributes = ((name, value) for name, value in vars(part).items() if name not in COMMON)
    return [(name, _key(value)) for name, value in attributes]


def _key(value: Any) -> Hashable:
    """Return a key of a value; one that cannot be hashed equals itself alone."""
    if isinstance(value, list | tuple):
        return (type(value), *map(_key, value))
    if isinstance(value, Tensor) or type(value).__hash__ is None:
        return id(value)
    return (type(value), value)


def _layout(tensor: Tensor) -> tuple[Hashable, ...]:
    return tuple(tensor.shape), tensor.dtype, tensor.device
