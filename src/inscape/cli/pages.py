"""``inscape pages``: the pages of all papers, made anew from records alone."""

from pathlib import Path
from typing import Annotated

import typer


def pages(
    results: Annotated[
        Path, typer.Option("--results", metavar="FOLDER", help="Folder of the records.")
    ] = Path("results"),
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Folder of the pages.")
    ] = Path("reports"),
) -> None:
    """Write the page of every paper and an index of them; computes nothing."""
    from inscape.lab.store import Store
    from inscape.report.paper import write_pages

    if not results.is_dir():
        raise ValueError(
            f"--results must be a folder of records, found none at {results}: run inscape "
            "reproduce first, or name another folder."
        )
    store = Store(results)
    for path in write_pages(store, out):
        typer.echo(path)
    for notice in store.notices:
        typer.echo(notice, err=True)
