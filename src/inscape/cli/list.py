"""``inscape list``: what instruments there are."""

import ast
from dataclasses import asdict
from typing import Annotated

import typer

from inscape import index
from inscape.cli.names import nearest
from inscape.cli.tables import print_json, print_table


def list_instruments(
    family: Annotated[str | None, typer.Argument(help="Only this family.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the instruments: what each measures, costs and reads."""
    families = index.families()
    if family is not None and family not in families:
        raise ValueError(f"no family is called {family!r}: {nearest(family, families)}")
    found = [entry for entry in index.entries() if family in (None, entry.family)]
    if as_json:
        print_json([{**asdict(entry), "question": question(entry.family)} for entry in found])
        return
    for name in families:
        rows = [
            {"name": e.name, "cost": e.cost, "reads": e.reads, "what": e.title.replace("``", "")}
            for e in found
            if e.family == name
        ]
        print_table(rows, title=f"{name}: {question(name)}")


def question(family: str) -> str:
    """Return the question that a family answers: the first sentence of its docstring."""
    source = index.PACKAGE / family / "__init__.py"
    said = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    asked, mark, _ = said.partition("?")
    return asked + mark if mark else said.partition("\n")[0]
