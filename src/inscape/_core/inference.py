"""Inputs of any mode, and gradients on or off: for a function, and for each step of a generator.

Decorators that look at the function itself see no generator where the shape checks of the tests
are wrapped around it; these look at what it returns.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from inspect import isgenerator
from itertools import chain
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from inscape._core.copies import module_copy

F = TypeVar("F", bound=Callable[..., Any])
Context = Callable[[], AbstractContextManager[Any]]


def no_grad(function: F) -> F:
    """Let a function, or each step of a generator, run under ``torch.no_grad``."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _within(torch.no_grad, function, args, kwargs)

    return cast(F, call)


def outside_inference(function: F) -> F:
    """Let a function run as under ``torch.no_grad`` where its caller is in inference mode.

    Tensors that were made in that mode are copied, and models that hold such: autograd takes
    neither. Tensors that require gradients are detached, so that a measurement neither extends the
    caller's graph nor leaves gradients there. A generator, and the steps of an anytime function,
    run so step by step, and leave the caller's mode alone between steps.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _gradients_possible():
            tracked = {name: _tracked(value) for name, value in kwargs.items()}
            detached = tuple(map(_tracked, args))
        return _within(_gradients_possible, function, detached, tracked)

    if hasattr(function, "refine"):
        call.refine = outside_inference(function.refine)  # type: ignore[attr-defined]
    return cast(F, call)


def _within(
    context: Context, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a function in a context; of a generator each step is made in it."""
    with context():
        answer = function(*args, **kwargs)
    return _stepped(context, answer) if isgenerator(answer) else answer


def _stepped(context: Context, generator: Generator[Any, Any, Any]) -> Generator[Any, None, Any]:
    while True:
        with context():
            try:
                answer = next(generator)
            except StopIteration as end:
                return end.value
        yield answer


@contextmanager
def _gradients_possible() -> Iterator[None]:
    """Leave inference mode, if the caller is in it, while the block runs."""
    if not torch.is_inference_mode_enabled():
        yield
        return
    with torch.inference_mode(False), torch.no_grad():
        yield


def _tracked(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.detach() if value.requires_grad else value
        return value.clone() if value.is_inference() else value
    if type(value) is tuple:
        return tuple(map(_tracked, value))
    if isinstance(value, nn.Module):
        tensors = chain(value.parameters(), value.buffers())
        return module_copy(value) if any(t.is_inference() for t in tensors) else value
    return value
