"""The on-disk cache of compiled kernels, keyed by the sources that a kernel is made of.

Numba names its cache by the path of the file, and reads an index that holds classes by name before
it compares the sources: a class that was renamed then ends the process. Here the folder is named by
a hash of the package's version and of all sources that the kernel's module imports from its own
package, and the index holds hashes of signatures only. So an entry is read by the code that wrote
it and by no other, wherever that code lies: clones and worktrees share their kernels.
"""

# mypy: disable-error-code="no-untyped-call, import-untyped, misc"
# numba carries no types.

import ast
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import resolve_name
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import platformdirs
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

#: Folders of a module that stay; those that were not used for longest are removed.
FOLDERS_PER_MODULE = 8


class KernelCache(FunctionCache):
    """The cache of one kernel, in the folder of its sources."""

    def __init__(self, function: Callable[..., Any], options: str) -> None:
        self._options = options
        super().__init__(function)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled kernel; where the disk refuses, it is compiled anew next time."""
        with suppress(OSError):
            super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> str:
        """Return a hash of the signature, the processor, the options and the bytecode.

        Numba's own key holds the types themselves, which are unpickled by name.
        """
        signature, *others = super()._index_key(sig, codegen)
        arguments = [str(signature), *map(_layout, signature)]
        return _digest([*arguments, *map(repr, others), self._options])


class _Locator(_CacheLocator):
    """The folder of a kernel: the name of its module, and the hash of its sources."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file
        self._line = function.__code__.co_firstlineno
        self._stamp = source_hash(function.__module__, file)
        self._folder = root() / function.__module__ / self._stamp[:16]

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_Locator | None":
        """Return the locator of a function, or None without a source or a writable folder."""
        if not Path(py_file).exists():
            return None
        locator = cls(py_func, py_file)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        os.utime(locator._folder)
        tidy(locator._folder.parent)
        return locator

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Implementation(CompileResultCacheImpl):
    _locator_classes: ClassVar[list[type[object]]] = [_Locator]


KernelCache._impl_class = _Implementation


def root() -> Path:
    """Return the folder of all compiled kernels."""
    return Path(platformdirs.user_cache_dir("inscape")) / "kernels"


def tidy(folder: Path) -> None:
    """Remove all but the folders of a module that were used last."""
    with suppress(OSError):  # another process may be tidying as well
        by_use = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in by_use[FOLDERS_PER_MODULE:]:
            shutil.rmtree(path, ignore_errors=True)


def source_hash(module: str, file: str) -> str:
    """Return a hash of the package's version and of all sources that a kernel may be made of.

    These are the file itself and, over and over, the modules of its own package, and of ours, that
    a file imports at its top: what a kernel calls, reads or returns comes from one of them.
    """
    packages = ("inscape", module.partition(".")[0])
    sources, waiting = {module: Path(file).read_bytes()}, [module]
    while waiting:
        for name in _imports(waiting[-1], sources[waiting.pop()]):
            path = getattr(sys.modules.get(name), "__file__", None)
            if name not in sources and name.partition(".")[0] in packages and path:
                sources[name] = Path(path).read_bytes()
                waiting.append(name)
    parts = chain.from_iterable((name, str(sources[name], "utf-8")) for name in sorted(sources))
    return _digest([_version(), *parts])


def _imports(module: str, source: bytes) -> Iterator[str]:
    """Yield the modules that a source imports at its top, and those that define what it names."""
    package = str(getattr(sys.modules.get(module), "__package__", None) or "")
    for node in _statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = resolve_name("." * node.level + (node.module or ""), package)
            yield from {_home(name, alias.name) for alias in node.names}


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a module that are run when it is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and not isinstance(child, ast.FunctionDef):
            yield child
            yield from _statements(child)


def _home(module: str, name: str) -> str:
    """Return the module that defines a name; for a constant the one it is imported from."""
    value = getattr(sys.modules.get(module), name, None)
    if isinstance(value, ModuleType):
        return value.__name__
    home = getattr(value, "__module__", None)
    same = isinstance(home, str) and home.partition(".")[0] == module.partition(".")[0]
    return str(home) if same else module


def _layout(kind: Any) -> str:
    """Return where the named tuples of an argument are defined, and in which order their fields.

    The name of such a type holds neither.
    """
    inner = "".join(map(_layout, getattr(kind, "types", ())))
    owner = getattr(kind, "instance_class", None)
    if owner is None:
        return inner
    return f"{owner.__module__}.{owner.__qualname__}{owner._fields}({inner})"


def _digest(texts: list[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


@cache
def _version() -> str:
    try:
        return version("inscape")
    except PackageNotFoundError:
        return ""
