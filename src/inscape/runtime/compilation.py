"""Compiled kernels: numba, imported when first used, its cache kept in our own folder."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from typing import Any, TypeVar, cast, overload

F = TypeVar("F", bound=Callable[..., Any])


@overload
def compiled(function: F) -> F: ...


@overload
def compiled(function: None = None, *, reorder: bool = True) -> Callable[[F], F]: ...


def compiled(function: F | None = None, *, reorder: bool = True) -> F | Callable[[F], F]:
    """Compile a function of NumPy arrays at its first call, and keep the result on disk.

    Without a writable cache it is compiled anew in every process; see ``kernel_cache``.

    Args:
        function: The function; without it, a decorator is returned.
        reorder: Whether sums may be added in any order, and so be vectorised; the compiler then
            also assumes that there is neither NaN nor infinity. False keeps the order as written.
    """
    if function is None:
        return lambda function: _compiled(function, reorder)
    return _compiled(function, reorder)


@overload
def part(function: Callable[..., Any]) -> Any: ...


@overload
def part(function: None = None, *, arrays: bool = False) -> Callable[[Callable[..., Any]], Any]: ...


def part(function: Callable[..., Any] | None = None, *, arrays: bool = False) -> Any:
    """Compile a function into the kernels that call it; numba is imported at once.

    Python never calls it, so it needs no wrapper.

    Args:
        function: The function; without it, a decorator is returned.
        arrays: Whether it creates arrays. If not, references to them need not be counted, which
            would take longer than the work itself.
    """
    if function is None:
        return lambda function: _part(function, arrays)
    return _part(function, arrays)


def _part(function: Callable[..., Any], arrays: bool) -> Any:
    from numba import njit

    jit: Callable[..., Any] = njit
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": arrays}
    return jit(inspect.unwrap(function), forceinline=True, nogil=True, **options)


def _compiled(function: F, reorder: bool) -> F:
    python_function = inspect.unwrap(function)  # tests wrap functions in checks of annotations
    kernel = cache(lambda: _kernel(python_function, reorder))

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return kernel()(*arguments)

    return cast(F, call)


def _kernel(function: Callable[..., Any], reorder: bool) -> Callable[..., Any]:
    from numba import njit

    from inscape.runtime.kernel_cache import KernelCache

    jit: Callable[..., Any] = njit
    kernel = jit(function, fastmath=reorder, nogil=True)
    with suppress(RuntimeError):  # no source, or no folder that could be written
        kernel._cache = KernelCache(function, f"reorder={reorder}")
    return cast(Callable[..., Any], kernel)
