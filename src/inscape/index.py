"""What instruments and experiments there are, read from the sources without importing them.

Reading hundreds of files takes a while, so the build keeps what they define in ``index.json``
beside this file (``hatch_build.py``; in a checkout, ``make index``). A source whose checksum is
no longer the one in the index is read anew: an old index costs time, never truth.

Needs nothing but the standard library: it is run while the package is built.
"""

import ast
import json
import re
import zlib
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent
PAPERS = PACKAGE / "papers"
FILE = PACKAGE / "index.json"


@dataclass(frozen=True)
class Entry:
    """An instrument: one line of ``inscape list``."""

    name: str
    family: str
    title: str
    doc: str
    reads: str
    cost: str
    cites: str
    meaning: str
    signature: str


@dataclass(frozen=True, kw_only=True)
class Listing:
    """An experiment: one line of ``inscape list``.

    Attributes:
        id: What ``inscape reproduce`` takes.
        paper: The paper's folder.
        item: The table or figure.
        title: First line of the file's docstring.
        same_as: Item whose records it shows, if it has none of its own.
    """

    id: str
    paper: str
    item: str
    title: str
    same_as: str = ""


@dataclass(frozen=True)
class Source:
    """What a file says of itself: its docstring, its instruments, its experiment."""

    doc: str = ""
    instruments: tuple[Entry, ...] = ()
    experiment: Listing | None = None


@cache
def entries() -> tuple[Entry, ...]:
    """Return every function decorated with ``@instrument``, by family and name."""
    files = PACKAGE.glob("[a-z]*/[a-z]*.py")
    instruments = [entry for path in files for entry in source(path).instruments]
    return tuple(sorted(instruments, key=lambda entry: (entry.family, entry.name)))


def families() -> list[str]:
    """Return the packages that hold instruments."""
    return sorted({entry.family for entry in entries()})


def question(family: str) -> str:
    """Return the question that a family answers: the first sentence of its docstring."""
    doc = source(PACKAGE / family / "__init__.py").doc
    question, mark, _ = doc.partition("?")
    return question + mark if mark else doc.partition("\n")[0]


def source(path: Path) -> Source:
    """Return what a file defines; a file is read again only once it has changed."""
    return _source(path, path.stat().st_mtime_ns)


def write() -> None:
    """Write the index: every file that defines something, its checksum, and what it defines."""
    folders = (PACKAGE.glob("[a-z]*/*.py"), PAPERS.glob("[a-z]*/[a-z]*.py"))
    indexed = {}
    for path in sorted(path for folder in folders for path in folder):
        text = path.read_bytes()
        parsed = _parsed(path, text)
        if parsed != Source():
            indexed[_key(path)] = {"checksum": zlib.crc32(text), **asdict(parsed)}
    FILE.write_text(json.dumps(indexed, indent=1), encoding="utf-8")


def item_of(stem: str) -> str:
    """Return the name of a table or figure: ``table_4_1`` is ``table-4.1``, ``_a_1`` ``-A.1``."""
    stem = re.sub(r"_([a-z])_(?=\d)", lambda letter: f"_{letter[1].upper()}.", stem)
    return re.sub(r"(?<=\d)_(?=\d)", ".", stem).replace("_", "-")


@cache
def _source(path: Path, stamp: int) -> Source:
    text = path.read_bytes()
    stored = _stored().get(_key(path)) if path.is_relative_to(PACKAGE) else None
    if stored is None or stored["checksum"] != zlib.crc32(text):
        return _parsed(path, text)
    experiment = stored["experiment"] and Listing(**stored["experiment"])
    return Source(
        stored["doc"], tuple(Entry(**entry) for entry in stored["instruments"]), experiment
    )


@cache
def _stored() -> dict[str, Any]:
    try:
        stored: dict[str, Any] = json.loads(FILE.read_bytes())
    except (OSError, ValueError):  # none was built: the sources are read
        return {}
    return stored


def _key(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def _parsed(path: Path, text: bytes) -> Source:
    """Return what the text of a file defines; does not run it."""
    wanted = path.name == "__init__.py" or b"@instrument(" in text or b"EXPERIMENT" in text
    if not wanted:
        return Source()
    tree = ast.parse(text)
    doc = ast.get_docstring(tree) or ""
    experiment = _experiment(path, tree, doc.partition("\n")[0])
    instruments = tuple(
        _entry(path.parent.name, node, call)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and (call := _decoration(node))
    )
    if experiment or instruments or path.name == "__init__.py":
        return Source(doc, instruments, experiment)
    return Source()


def _experiment(path: Path, tree: ast.Module, title: str) -> Listing | None:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="EXPERIMENT")], value=ast.Call() as call):
                paper, item = path.parent.name, item_of(path.stem)
                shares = next((k.value for k in call.keywords if k.arg == "same_as"), None)
                same_as = shares.value if isinstance(shares, ast.Constant) else ""
                return Listing(
                    id=f"{paper}/{item}", paper=paper, item=item, title=title, same_as=str(same_as)
                )
    return None


def _decoration(node: ast.FunctionDef) -> ast.Call | None:
    for call in node.decorator_list:
        match call:
            case ast.Call(func=ast.Name(id="instrument")):
                return call
    return None


def _entry(family: str, node: ast.FunctionDef, call: ast.Call) -> Entry:
    declared = {word.arg: _literal(word.value) for word in call.keywords}
    doc = ast.get_docstring(node) or ""
    words = {key: declared.get(key) or "" for key in ("reads", "cost", "cites", "meaning")}
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


if __name__ == "__main__":
    write()
