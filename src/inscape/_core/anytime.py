"""Anytime instruments: results that improve step by step; the plain call returns the last."""

import math
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, Protocol, TypeVar, cast, get_args, runtime_checkable

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

#: Rows that a batch may have at most, where somebody who watches the clock has said so.
_ROWS: ContextVar[int | None] = ContextVar("rows of a batch", default=None)
#: Whether the caller may stop before the end, so that samples must come in random order.
_STOPPABLE: ContextVar[bool] = ContextVar("stoppable", default=False)
#: Seconds that the consumer gives the next step.
_PATIENCE: ContextVar[float] = ContextVar("seconds of the next step", default=math.inf)


@runtime_checkable
class Anytime(Protocol[P, R_co]):
    """A function whose answer improves while it runs."""

    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Return the last and best answer."""

    def refine(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[R_co]:
        """Yield ever better answers, one for each batch of work; stop whenever you like."""


def anytime(steps: Callable[P, Iterator[R]]) -> Anytime[P, R]:
    """Turn a generator of ever better results into a function that returns the last of them.

    ``function(...)`` runs to the end; ``function.refine(...)`` is the generator itself. A step is
    one batch of the model (see :func:`batches`), so that whoever consumes the generator can stop
    soon. The samples of a run that is stopped are the first ones of a run that is not.

    >>> @anytime
    ... def count(n: int):
    ...     yield from range(1, n + 1)
    >>> count(3), list(count.refine(3))
    (3, [1, 2, 3])
    """

    @wraps(steps)
    def refine(*args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        generator = steps(*args, **kwargs)
        while True:
            token = _STOPPABLE.set(True)
            try:
                result = next(generator)
            except StopIteration:
                return
            finally:
                _STOPPABLE.reset(token)
            yield result

    @wraps(steps)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return deque(steps(*args, **kwargs), maxlen=1).pop()

    call.refine = refine  # type: ignore[attr-defined]
    _returns_one(call)
    return cast("Anytime[P, R]", call)


def _returns_one(call: Callable[..., Any]) -> None:
    """Let the signature of a call say that it returns one result, not an iterator of them."""
    shape = signature(call)
    kinds = get_args(shape.return_annotation)
    if kinds:
        call.__signature__ = shape.replace(return_annotation=kinds[0])  # type: ignore[attr-defined]
        call.__annotations__ = {**call.__annotations__, "return": kinds[0]}


def finished(steps: Generator[Any, None, R]) -> R:
    """Run a generator to its end and return what it returns.

    >>> def search():
    ...     yield
    ...     return "found"
    >>> finished(search())
    'found'
    """
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("R", end.value)


def meanwhile(steps: Generator[Any, None, R], result: Any) -> Generator[Any, None, R]:
    """Yield a result at each step of another generator, and return what that returns.

    >>> def search():
    ...     yield
    ...     return "found"
    >>> list(meanwhile(search(), "nothing yet"))
    ['nothing yet']
    """
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("R", end.value)
        yield result


def refinements(function: Callable[..., R], *args: Any, **kwargs: Any) -> Iterator[R]:
    """Yield the ever better results of any function; of one without steps, its only result."""
    refine = getattr(function, "refine", None)
    if refine is not None:
        yield from refine(*args, **kwargs)
    else:
        yield function(*args, **kwargs)


@contextmanager
def batches(rows: int) -> Iterator[None]:
    """Let no batch that an instrument hands to a model have more than ``rows`` rows."""
    token = _ROWS.set(max(1, rows))
    try:
        yield
    finally:
        _ROWS.reset(token)


def most_rows(rows: int) -> int:
    """Return ``rows``, or the fewer that :func:`batches` allows."""
    limit = _ROWS.get()
    return rows if limit is None else min(rows, limit)


@contextmanager
def step_within(seconds: float) -> Iterator[None]:
    """Give the steps that are taken inside at most so many seconds each."""
    token = _PATIENCE.set(seconds)
    try:
        yield
    finally:
        _PATIENCE.reset(token)


def patience() -> float:
    """Return the seconds that the next step may take, infinite if nobody is waiting.

    A step that is more than one batch of the model (a window of a plane, a long segment) asks for
    it when it begins, and gives up in time with the best answer so far.
    """
    return _PATIENCE.get()


def stoppable() -> bool:
    """Tell whether the caller consumes steps and may stop before the last."""
    return _STOPPABLE.get()
