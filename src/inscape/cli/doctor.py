"""``inscape doctor``: what is installed, what works and what is missing."""

from pathlib import Path
from typing import Annotated

import typer

from inscape.cli.console import echo
from inscape.cli.errors import FAILED
from inscape.cli.tables import print_json, print_table


def doctor(
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder of data sets to look into.")
    ] = None,
    results: Annotated[
        Path, typer.Option("--results", help="Folder of records to look into.")
    ] = Path("results"),
    rebuild_index: Annotated[
        bool, typer.Option("--rebuild-index", help="Make the index of the records anew.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what is installed, what works and what is missing, and name records to distrust.

    Exits with 1 if something that is needed is broken.
    """
    from inscape.environment import examine

    if rebuild_index:
        _rebuild(results)
    facts, broken = examine(data_dir, results)
    if as_json:
        print_json({**facts, "broken": broken})
    else:
        for title, fact in facts.items():
            print_table(_rows(fact), title=title)
            echo()
        for line in broken:
            echo(f"broken: {line}")
        echo(_closing(facts, broken))
    if broken:
        raise typer.Exit(FAILED)


def _closing(facts: dict[str, object], broken: list[str]) -> str:
    """Return the conclusion in one line."""
    if broken:
        return "something needed is broken"
    if "stale" in str(facts.get("records")):
        return "all programs work, but some records are stale: their verdicts are to be distrusted"
    return "all that is needed works"


def _rebuild(results: Path) -> None:
    from inscape.lab.store import Store

    if not results.is_dir():
        raise ValueError(
            f"--rebuild-index needs a folder of records, found none at {results}: name it with "
            "--results."
        )
    store = Store(results)
    echo(f"index: {store.rebuild_index():,} records in {results}", err=True)
    for notice in store.notices:
        echo(notice, err=True)


def _rows(fact: object) -> list[dict[str, object]]:
    if isinstance(fact, dict):
        return [{"what": key, "found": value} for key, value in fact.items()]
    assert isinstance(fact, list)
    return fact
