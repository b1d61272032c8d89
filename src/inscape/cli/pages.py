"""``inscape pages``: the pages of all papers, made anew from records alone."""

from pathlib import Path
from typing import Annotated

import typer

from inscape.cli.console import echo
from inscape.cli.tables import print_json


def pages(
    results: Annotated[
        Path, typer.Option("--results", metavar="FOLDER", help="Folder of the records.")
    ] = Path("results"),
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Folder of the pages.")
    ] = Path("reports"),
    verdicts: Annotated[
        Path | None,
        typer.Option("--verdicts", metavar="FILE", help="Also list the verdicts that changed."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write the page of every paper and an index of them; computes nothing."""
    from inscape.lab.catalogue import OWN
    from inscape.lab.store import Store
    from inscape.report.paper.page import write_pages

    store = Store(results)
    names = sorted({name for name, _, _ in store.places()})
    if not names:
        content = "an empty one" if results.is_dir() else "none"
        raise ValueError(
            f"--results must be a folder of records, found {content} at {results}: run inscape "
            "reproduce first, or name another folder."
        )
    paths = write_pages(store, out, verdicts=verdicts)
    notices = [*store.take_notices()]
    if own := [name for name in names if name.startswith(OWN)]:
        notices.append(
            f"{', '.join(own)}: no page, for nothing says where your files are; inscape reproduce "
            "FILE writes it."
        )
    if as_json:
        print_json({"pages": [str(path) for path in paths], "notices": notices})
        return
    for path in paths:
        echo(path)
    for notice in notices:
        echo(notice, err=True)
