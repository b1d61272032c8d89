"""Copies of modules, those among them whose weights are computed anew by hooks."""

from copy import deepcopy
from typing import Any, TypeVar

from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)


def module_copy(module: Module) -> Module:
    """Return a deep copy of a module.

    ``copy.deepcopy`` refuses tensors that were computed from others. Hooks of
    ``torch.nn.utils.prune`` and ``torch.nn.utils.weight_norm`` keep such tensors: before each call
    they compute the weights and set them as attributes. Their values are copied; the next call
    of the copy computes them anew.

    >>> from torch.nn.utils import prune
    >>> layer = prune.l1_unstructured(nn.Linear(4, 2), "weight", amount=0.5)
    >>> bool((module_copy(layer).weight == layer.weight).all())
    True
    """
    known: dict[int, Any] = {}
    for part in module.modules():
        for value in vars(part).values():
            if isinstance(value, Tensor) and not value.is_leaf:
                known[id(value)] = value.detach().clone()
    return deepcopy(module, known)
