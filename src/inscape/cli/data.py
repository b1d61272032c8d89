"""``inscape data``: what data sets there are, where their files lie, and how to get them."""

from pathlib import Path
from typing import Annotated

import typer

from inscape.cli.console import echo
from inscape.cli.tables import print_json, print_table
from inscape.data import catalogue, places

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List, find, check and fetch data sets."
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder to look in before the cache [default: $INSCAPE_DATA_DIR]."),
]
Names = Annotated[list[str] | None, typer.Argument(help="Data sets; all that have files if none.")]


@app.command("list")
def list_(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List the data sets, one line each; files are looked for, not read."""
    folders = places.roots(data_dir)
    rows = [
        {
            "name": entry.name,
            "source": places.presence(entry.files, folders) if entry.files else entry.source,
            "summary": entry.summary,
        }
        for entry in catalogue.ENTRIES
    ]
    _show(rows, as_json)


@app.command()
def where(names: Names = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Say where each file is and if it is ok, missing or bad; change nothing."""
    from inscape.data.store import find

    _show([row.row() for name in _with_files(names) for row in find(name, data_dir)], as_json)


@app.command()
def verify(names: Names = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Check every file against its published hash and set bad ones of the cache aside."""
    from inscape.data.store import check_files, find, set_aside

    rows = [set_aside(row) for name in _with_files(names) for row in find(name, data_dir)]
    _show([row.row() for row in rows], as_json)
    check_files(rows, complete=bool(names))


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="Data sets to fetch.")],
    to: Annotated[
        Path | None, typer.Option(help="Folder for the files; the cache if none.")
    ] = None,
    mirror: Annotated[list[str] | None, typer.Option(help="Address to try first.")] = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Download what is missing, check it and keep it in the cache."""
    from inscape.data.fetching import fetch as fetch_files

    entries = [catalogue.parse(name)[0] for name in names]
    rows = [
        row.row()
        for entry in entries
        for row in fetch_files(entry.name, data_dir=data_dir, to=to, mirrors=tuple(mirror or ()))
    ]
    for entry in entries:
        if not entry.files:
            echo(f"{entry.name} needs no files.", err=True)
    _show(rows, as_json)


def _with_files(names: list[str] | None) -> list[str]:
    """Return the named sets, or one set for each group of files."""
    if names:
        return [catalogue.parse(name)[0].name for name in names]
    return list(dict.fromkeys(entry.files for entry in catalogue.ENTRIES if entry.files))


def _show(rows: list[dict[str, str]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
    else:
        print_table(rows)
