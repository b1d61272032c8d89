"""Inputs of any mode: ``torch.inference_mode``, inference tensors, tensors in a graph."""

from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from itertools import chain
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

F = TypeVar("F", bound=Callable[..., Any])


def outside_inference(function: F) -> F:
    """Let a function run as under ``torch.no_grad`` where its caller is in inference mode.

    Tensors that were made in that mode are copied, and models that hold such: autograd takes
    neither. Tensors that require gradients are detached, so that a measurement neither extends the
    caller's graph nor leaves gradients there.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_inference_mode_enabled():
            return function(*map(_tracked, args), **{k: _tracked(v) for k, v in kwargs.items()})
        with torch.inference_mode(False), torch.no_grad():
            return function(*map(_tracked, args), **{k: _tracked(v) for k, v in kwargs.items()})

    return cast(F, call)


def _tracked(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.detach() if value.requires_grad else value
        return value.clone() if value.is_inference() else value
    if type(value) is tuple:
        return tuple(map(_tracked, value))
    if isinstance(value, nn.Module):
        tensors = chain(value.parameters(), value.buffers())
        return deepcopy(value) if any(t.is_inference() for t in tensors) else value
    return value
