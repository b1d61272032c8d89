"""``inscape doctor``: what is installed, what works and what is missing."""

from pathlib import Path
from typing import Annotated

import typer

from inscape.cli.errors import FAILED
from inscape.cli.tables import print_json, print_table
from inscape.cli.terminal import echo

Facts = dict[str, object]


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
    if rebuild_index:
        _rebuild(results)
    facts, broken = examine(data_dir, results)
    if as_json:
        print_json({**facts, "broken": broken})
    else:
        _print(facts)
        for line in broken:
            echo(f"broken: {line}")
        echo(_closing(facts, broken))
    if broken:
        raise typer.Exit(FAILED)


def examine(data_dir: Path | None, results: Path = Path("results")) -> tuple[Facts, list[str]]:
    """Return all facts, and a sentence about each needed thing that does not work."""
    from inscape.cli import health

    packages = list(health.packages())
    devices = health.devices()
    broken = [
        f"{fact['package']} {fact['needs']} is needed, found {fact['found'] or 'none'}: "
        "install inscape again."
        for fact in packages
        if fact["state"] != "ok"
    ]
    facts: Facts = {
        "system": health.system(),
        "packages": packages,
        "extras": list(health.extras()),
        "devices": devices,
        "instruments": health.instruments(),
    }
    if devices["state"] != "ok":
        return facts, [*broken, f"{devices['state']}: install torch again."]
    from inscape.cli.processor import processor
    from inscape.data import cache_dir

    facts["processor"] = processor()
    facts["cache"] = health.folder(cache_dir())
    try:
        facts["data"] = list(health.datasets(data_dir))
    except ValueError as error:
        broken.append(str(error))
    try:
        facts["records"], damaged = health.records(results)
        broken += damaged
    except ValueError as error:
        broken.append(str(error))
    return facts, broken


def _closing(facts: Facts, broken: list[str]) -> str:
    """Say in one line how it is."""
    if broken:
        return "something needed is broken"
    records = facts.get("records")
    assert isinstance(records, list)
    if any("stale" in str(fact["state"]) for fact in records):
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
    count = store.rebuild_index()
    echo(f"index: {count:,} records in {results}", err=True)
    for notice in store.notices:
        echo(notice, err=True)


def _print(facts: Facts) -> None:
    for title, fact in facts.items():
        rows = fact if isinstance(fact, list) else _two_columns(fact)
        print_table(rows, title=title)
        echo()


def _two_columns(fact: object) -> list[dict[str, object]]:
    assert isinstance(fact, dict)
    return [{"what": key, "found": value} for key, value in fact.items()]
