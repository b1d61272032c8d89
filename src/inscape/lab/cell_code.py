"""The hash of a cell's code: its syntax trees, without docstrings and without names of its own.

Renaming a local, a helper or an argument, or another docstring, leaves the hash as it is; another
number, call or order does not. Helpers of the same paper belong to the code, other parts of the
package do not: their versions are in the record.
"""

import ast
import hashlib
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any

from inscape.lab.experiment import Experiment


def cell_code_hash(experiment: Experiment) -> str:
    """Return the fingerprint of the code that computes the records of an experiment.

    Args:
        experiment: One with a ``cell`` or ``together``; of any other the hash is empty.
    """
    function = experiment.cell or experiment.together
    return _hash(function) if function is not None else ""


@lru_cache(maxsize=512)
def _hash(function: Callable[..., Any]) -> str:
    trees = [normalised(tree) for tree in _trees(function)]
    return hashlib.sha256("\n".join(trees).encode()).hexdigest()[:12]


def normalised(tree: ast.AST) -> str:
    """Return a syntax tree as text: docstrings left out, names of its own numbered.

    >>> normalised(ast.parse("def f(x): return x")) == normalised(ast.parse("def g(y): return y"))
    True
    """
    own = _own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and _documented(node):
            node.body = node.body[1:] or [ast.Pass()]
        for field in ("name", "id", "arg"):
            name = getattr(node, field, None)
            if isinstance(name, str) and name in own:
                setattr(node, field, f"_{own[name]}")
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    return ast.dump(tree)


def _documented(node: ast.FunctionDef | ast.ClassDef | ast.Module) -> bool:
    first = node.body[0] if node.body else None
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )


def _own_names(tree: ast.AST) -> dict[str, int]:
    """Return the names that a tree binds itself, numbered as they occur; keywords of calls stay."""
    names: dict[str, int] = {}
    for node in ast.walk(tree):
        bound = None
        if isinstance(node, ast.FunctionDef):
            bound = node.name
        elif isinstance(node, ast.arg):
            bound = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound = node.id
        if bound is not None:
            names.setdefault(bound, len(names))
    return names


def _trees(function: Callable[..., Any]) -> Iterator[ast.AST]:
    """Yield the tree of a function and those of the helpers of its paper that it can reach."""
    waiting: list[Any] = [inspect.unwrap(function)]
    done: set[int] = set()
    while waiting:
        part = waiting.pop(0)
        if id(part) in done:
            continue
        done.add(id(part))
        tree = ast.parse(textwrap.dedent(inspect.getsource(part)))
        if not isinstance(part, ModuleType):
            waiting += _helpers(part, tree)
        yield tree


def _helpers(function: Any, tree: ast.AST) -> list[Any]:
    """Return the functions and modules of the same paper that a function names."""
    paper = function.__module__.rpartition(".")[0]
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    scope = getattr(function, "__globals__", {})
    known = [scope[name] for name in sorted(named) if name in scope]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("inscape.papers."):
            module = importlib.import_module(str(node.module))
            known += [getattr(module, alias.name, None) for alias in node.names]
    return [
        part
        for part in known
        if (isinstance(part, ModuleType) and part.__name__.startswith("inscape.papers."))
        or (inspect.isfunction(part) and paper and part.__module__.startswith(paper))
    ]
