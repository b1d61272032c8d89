"""Compiled kernels: numba, imported when first used, its cache kept in our own folder."""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function of NumPy arrays at its first call, and keep the result on disk.

    Without a writable cache it is compiled anew in every process. The function must be one that
    may add in any order: sums are vectorised.
    """
    plain = inspect.unwrap(function)  # tests wrap every function in a check of its annotations
    kernel = cache(lambda: _kernel(plain))

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return kernel()(*arguments)

    return cast(F, call)


def _kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    import platformdirs
    from numba import config, njit

    jit: Callable[..., Any] = njit
    theirs = vars(config)["CACHE_DIR"]
    vars(config)["CACHE_DIR"] = str(Path(platformdirs.user_cache_dir("inscape")) / "numba")
    try:
        made: Callable[..., Any] = jit(function, cache=True, fastmath=True, nogil=True)
    except RuntimeError:  # no place where a cache could be written
        made = jit(function, fastmath=True, nogil=True)
    finally:
        vars(config)["CACHE_DIR"] = theirs
    return made
