"""``inscape list``: what instruments and experiments there are."""

from dataclasses import asdict
from typing import Annotated

import typer

from inscape import index
from inscape.cli.tables import print_json, print_table
from inscape.errors import did_you_mean
from inscape.lab import catalogue


def list_all(
    group: Annotated[str | None, typer.Argument(help="Only this family or paper.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the instruments, by family, and the experiments, by paper."""
    families, papers = index.families(), catalogue.papers()
    if group is not None and group not in (*families, *papers):
        known = [*families, *papers]
        raise ValueError(f"no family or paper is called {group!r}: {did_you_mean(group, known)}")
    chosen = [entry for entry in index.entries() if group in (None, entry.family)]
    runs = [listing for listing in catalogue.experiments() if group in (None, listing.paper)]
    if as_json:
        questions = {family: index.question(family) for family in families}
        instruments = [{**asdict(entry), "question": questions[entry.family]} for entry in chosen]
        print_json({"instruments": instruments, "experiments": [asdict(run) for run in runs]})
        return
    for name in families:
        print_table(_instruments(name, chosen), title=f"{name}: {index.question(name)}")
    for name in papers:
        print_table(_experiments(name, runs), title=f"{name}: experiments, for inscape reproduce")


def _instruments(family: str, entries: list[index.Entry]) -> list[dict[str, str]]:
    return [
        {"name": e.name, "cost": e.cost, "reads": e.reads, "what": e.title.replace("``", "")}
        for e in entries
        if e.family == family
    ]


def _experiments(paper: str, runs: list[index.Listing]) -> list[dict[str, str]]:
    return [{"name": run.id, "what": run.title} for run in runs if run.paper == paper]
