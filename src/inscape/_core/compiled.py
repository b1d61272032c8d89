"""Compiled kernels: numba, imported when first used, its cache kept in our own folder."""

import hashlib
import inspect
from collections.abc import Callable, Sequence
from functools import cache, wraps
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, TypeVar, cast, overload

F = TypeVar("F", bound=Callable[..., Any])

#: Held while a setting of numba, which all threads share, is ours.
CHANGING = Lock()


@overload
def compiled(function: F) -> F: ...


@overload
def compiled(
    function: None = None, *, reorder: bool = True, uses: Sequence[ModuleType] = ()
) -> Callable[[F], F]: ...


def compiled(
    function: F | None = None, *, reorder: bool = True, uses: Sequence[ModuleType] = ()
) -> F | Callable[[F], F]:
    """Compile a function of NumPy arrays at its first call, and keep the result on disk.

    Without a writable cache it is compiled anew in every process.

    Args:
        function: The function; without it, a decorator is returned.
        reorder: Whether sums may be added in any order, and so be vectorised; the compiler then
            also takes it that there is neither NaN nor infinity. False keeps to what is written.
        uses: Modules whose code goes into the kernel, so that a change of theirs compiles it anew;
            numba itself looks at the file of the function only.
    """
    if function is None:
        return lambda function: _compiled(function, reorder=reorder, uses=uses)
    return _compiled(function, reorder=reorder, uses=uses)


@overload
def part(function: Callable[..., Any]) -> Any: ...


@overload
def part(function: None = None, *, arrays: bool = False) -> Callable[[Callable[..., Any]], Any]: ...


def part(function: Callable[..., Any] | None = None, *, arrays: bool = False) -> Any:
    """Make a function a part of the kernels that call it; numba is imported here and now.

    Nobody else calls it, so it needs no wrapper.

    Args:
        function: The function; without it, a decorator is returned.
        arrays: Whether it makes arrays. If not, it need not count who holds them, which would cost
            more time than the work itself.
    """
    if function is None:
        return lambda function: _part(function, arrays)
    return _part(function, arrays)


def _part(function: Callable[..., Any], arrays: bool) -> Any:
    from numba import njit

    jit: Callable[..., Any] = njit
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": arrays}
    return jit(inspect.unwrap(function), forceinline=True, nogil=True, **options)


def _compiled(function: F, *, reorder: bool, uses: Sequence[ModuleType]) -> F:
    plain = inspect.unwrap(function)  # tests wrap every function in a check of its annotations
    kernel = cache(lambda: _kernel(plain, reorder, _folder(uses)))

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return kernel()(*arguments)

    return cast(F, call)


def _folder(uses: Sequence[ModuleType]) -> Path:
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("inscape")) / "numba"
    if not uses:
        return folder
    digest = hashlib.sha256("".join(inspect.getsource(module) for module in uses).encode())
    return folder / digest.hexdigest()[:16]


def _kernel(function: Callable[..., Any], reorder: bool, folder: Path) -> Callable[..., Any]:
    from numba import config, njit

    jit: Callable[..., Any] = njit
    with CHANGING:
        theirs = vars(config)["CACHE_DIR"]
        vars(config)["CACHE_DIR"] = str(folder)
        try:
            made: Callable[..., Any] = jit(function, cache=True, fastmath=reorder, nogil=True)
        except RuntimeError:  # no place where a cache could be written
            made = jit(function, fastmath=reorder, nogil=True)
        finally:
            vars(config)["CACHE_DIR"] = theirs
    return made
