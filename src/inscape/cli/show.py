"""``inscape show NAME``: what an instrument, a data set or an experiment is, and how to call it."""

import ast
from dataclasses import asdict
from typing import Annotated, Literal

import typer

from inscape import index
from inscape.cli.console import echo
from inscape.cli.tables import print_json, text
from inscape.errors import did_you_mean
from inscape.lab import catalogue

Record = dict[str, object]


def show(
    name: Annotated[str, typer.Argument(help="An instrument, data set, paper or experiment.")],
    scale: Annotated[
        Literal["laptop", "paper"],
        typer.Option("--scale", help="Show the claims of an experiment at this scale."),
    ] = "laptop",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show an instrument, a data set, a paper or an experiment: what it is, how to call it."""
    instruments = {entry.name: entry for entry in index.entries()}
    listings = catalogue.experiments()
    if entry := instruments.get(name.lower().replace("-", "_")):
        record = _of_instrument(entry)
    elif name in [listing.id for listing in listings] or catalogue.is_own(name):
        from inscape.report.paper.description import experiment_description

        record = experiment_description(name, scale)
    elif name in [listing.paper for listing in listings]:
        record = _of_paper(name)
    else:
        ids = [listing.id for listing in listings]
        record = _of_dataset(name, [*instruments, *ids, *catalogue.papers()])
    if as_json:
        print_json(record)
    else:
        echo(page(record))


def page(record: Record) -> str:
    """Return a record as text: name and definition, short fields in two columns, then calls."""
    fields = {key: text(value) for key, value in record.items() if value}
    name, doc = fields.pop("name"), fields.pop("doc")
    calls = {key: fields.pop(key) for key in ("python", "command_line") if key in fields}
    size = max(map(len, fields))
    lines = [name, "=" * len(name), "", doc, ""]
    lines += [f"{key.ljust(size)}  {value}" for key, value in fields.items()]
    for key, value in calls.items():
        lines += ["", f"{key.replace('_', ' ')}:"]
        lines += [f"    {line}" for line in value.splitlines()]
    return "\n".join(lines)


def _of_instrument(entry: index.Entry) -> Record:
    record: Record = asdict(entry)
    del record["title"]
    return record | {
        "family": f"{entry.family} ({index.question(entry.family)})",
        "python": f"from inscape.{entry.family} import {entry.name}\n{_call(entry)}",
        "command_line": f"inscape look --only {entry.name}\n"
        "inscape look --model file.py:factory --weights weights.pt --data data.npz "
        f"--only {entry.name}",
    }


def _of_paper(paper: str) -> Record:
    facts = catalogue.paper_facts(paper).get("paper", {})
    return {
        "name": paper,
        "doc": facts.get("title", "no citation"),
        "authors": facts.get("authors", ()),
        "venue": facts.get("venue", ""),
        "experiments": [listing.item for listing in catalogue.experiments(paper)],
        "python": f"import inscape.lab\ninscape.lab.reproduce({paper!r})",
        "command_line": f"inscape reproduce {paper}\ninscape reproduce {paper} --dry-run",
    }


def _call(entry: index.Entry) -> str:
    """Return a call with the arguments that have no default."""
    (function,) = ast.parse(f"def {entry.signature}: ...").body
    assert isinstance(function, ast.FunctionDef)
    required = [arg.arg for arg in function.args.args]
    stands_for = {"f": "model.eval()", "model": "model.eval()"}
    return f"{entry.name}({', '.join(stands_for.get(arg, arg) for arg in required)})"


def _of_dataset(name: str, others: list[str]) -> Record:
    from inscape.data import catalogue as data

    try:
        entry = data.lookup(name.partition(":")[0])
    except ValueError:
        known = [*others, *data.names()]
        raise ValueError(f"nothing is called {name!r}: {did_you_mean(name, known)}") from None
    spec = f"{entry.name}:4-9" if entry.needs else entry.name
    return {
        "name": entry.name,
        "doc": entry.summary,
        "source": entry.source,
        "cites": entry.cites,
        "settings": [f"{key}={str(value).lower()}" for key, value in entry.settings.items()],
        "python": f'inscape.data.load("{spec}")',
        "command_line": f"inscape look --model file.py:factory --data {spec}",
    }
