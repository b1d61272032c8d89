"""What instruments there are, read from the sources without importing them (no torch needed)."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """One line of ``inscape list``."""

    name: str
    family: str
    title: str
    doc: str
    reads: str
    cost: str
    cites: str
    meaning: str
    signature: str


@cache
def entries() -> tuple[Entry, ...]:
    """Return every function decorated with ``@instrument``, by family and name."""
    found = [entry for path in PACKAGE.glob("[a-z]*/[a-z]*.py") for entry in _in_file(path)]
    return tuple(sorted(found, key=lambda entry: (entry.family, entry.name)))


def families() -> list[str]:
    """Return the packages that hold instruments."""
    return sorted({entry.family for entry in entries()})


def _in_file(path: Path) -> Iterator[Entry]:
    text = path.read_text(encoding="utf-8")
    if "@instrument(" not in text:
        return
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and (call := _decoration(node)):
            yield _entry(path.parent.name, node, call)


def _decoration(node: ast.FunctionDef) -> ast.Call | None:
    for call in node.decorator_list:
        match call:
            case ast.Call(func=ast.Name(id="instrument")):
                return call
    return None


def _entry(family: str, node: ast.FunctionDef, call: ast.Call) -> Entry:
    said = {word.arg: _literal(word.value) for word in call.keywords}
    doc = ast.get_docstring(node) or ""
    words = {key: said.get(key) or "" for key in ("reads", "cost", "cites", "meaning")}
    signature = f"{node.name}({ast.unparse(node.args)})"
    return Entry(
        name=node.name,
        family=family,
        title=doc.partition("\n")[0],
        doc=doc,
        signature=signature,
        **words,
    )


def _literal(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
