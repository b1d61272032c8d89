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
from collections.abc import Iterator
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
        title: First line of the docstring of the file, or of that below the experiment.
        same_as: Item whose records it shows, if it has none of its own.
        module: The file that defines it, without its ending.
        name: What it is called there.
    """

    id: str
    paper: str
    item: str
    title: str
    same_as: str = ""
    module: str = ""
    name: str = "EXPERIMENT"


@dataclass(frozen=True)
class Source:
    """What a file says of itself: its docstring, its instruments, its experiments."""

    doc: str = ""
    instruments: tuple[Entry, ...] = ()
    experiments: tuple[Listing, ...] = ()


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
    if stored is None or stored["checksum"] != zlib.crc32(text) or "experiments" not in stored:
        return _parsed(path, text)
    return Source(
        stored["doc"],
        tuple(Entry(**entry) for entry in stored["instruments"]),
        tuple(Listing(**listing) for listing in stored["experiments"]),
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
    marks = (b"@instrument(", b"EXPERIMENT", b"Experiment(")
    wanted = path.name == "__init__.py" or any(mark in text for mark in marks)
    if not wanted:
        return Source()
    tree = ast.parse(text)
    doc = ast.get_docstring(tree) or ""
    experiments = tuple(_experiments(path, tree, doc.partition("\n")[0]))
    instruments = tuple(
        _entry(path.parent.name, node, call)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and (call := _decoration(node))
    )
    if experiments or instruments or path.name == "__init__.py":
        return Source(doc, instruments, experiments)
    return Source()


def _experiments(path: Path, tree: ast.Module, title: str) -> Iterator[Listing]:
    """Yield ``EXPERIMENT``, which is called as its file, and others, called as they are named.

    The others, such as ``FIGURE_4_2``, say what they show: by that they are told from settings.
    """
    paper = path.parent.name
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(keywords=words)):
                keywords = {word.arg: word.value for word in words}
                if name != "EXPERIMENT" and not (name.isupper() and "shows" in keywords):
                    continue
                item = item_of(path.stem if name == "EXPERIMENT" else name.lower())
                yield Listing(
                    id=f"{paper}/{item}",
                    paper=paper,
                    item=item,
                    title=_text_of(below).partition("\n")[0] or title,
                    same_as=_text_of(keywords.get("same_as")),
                    module=path.stem,
                    name=name,
                )


def _text_of(node: ast.AST | None) -> str:
    """Return the text that a node is, if it is one."""
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))) | ast.Constant(value=str(text)):
            return text
    return ""


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
