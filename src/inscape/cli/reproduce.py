"""``inscape reproduce``: run a paper again and put a verdict beside each of its claims."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from inscape.cli import options as opt
from inscape.cli.console import Speech, echo
from inscape.cli.errors import FAILED, OUT_OF_TOLERANCE
from inscape.cli.group import typed
from inscape.cli.tables import print_blocks, print_json, print_table
from inscape.lab import catalogue
from inscape.selection import selected

Names = Annotated[
    list[str],
    typer.Argument(metavar="WHAT...", help="A paper, paper/item, or a file of your own (.py)."),
]
Scale = Annotated[
    Literal["smoke", "laptop", "paper"],
    typer.Option("--scale", help="How large: seconds, minutes to an hour, or as in the paper."),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", help="Cells at a time; all cores by default.")
]
Where = Annotated[
    Literal["serial", "joblib", "ray", "slurm"] | None,
    typer.Option("--executor", help="Where to run; processes of this machine by default."),
]
Seeds = Annotated[int | None, typer.Option("--seeds", metavar="N", help="Number of seeds.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a setting; commas give several values."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be run, and its cost.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute again what is there already.")]
Verify = Annotated[
    int | None,
    typer.Option("--verify", metavar="N", help="Rerun N random cells and compare; writes nothing."),
]
Results = Annotated[
    Path, typer.Option("--out", metavar="FOLDER", help="Folder of the records and the page.")
]


def reproduce(
    names: Names,
    scale: Scale = "laptop",
    jobs: Jobs = None,
    executor: Where = None,
    seeds: Seeds = None,
    changes: Set = None,
    only: opt.Only = None,
    dry_run: DryRun = False,
    fresh: Fresh = False,
    verify: Verify = None,
    out: Results = Path("results"),
    data_dir: opt.DataDir = None,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Run tables and figures of a paper again; compute only what is missing.

    Exits with 3 when a claim is not reproduced at a scale that gives a verdict.
    """
    if verify is not None:
        _verify(catalogue.resolved(names), out, opt.at_least_one("--verify", verify), data_dir)
        return
    request: dict[str, Any] = {
        "ids": catalogue.resolved(names),
        "scale": scale,
        "seeds": seeds,
        "overrides": overrides(changes or ()),
        "only": selected(only) if only else None,
        "executor": executor,
        "jobs": opt.at_least_one("--jobs", jobs),
        "fresh": fresh,
        "out": out,
        "command": typed(),
    }
    say = Speech(quiet=quiet)
    from inscape.lab.reproduction_plan import data_from, plan_reproduction
    from inscape.report.html import write
    from inscape.report.paper import reproduction_pages, terminal

    with data_from(data_dir):
        planned = plan_reproduction(**request)
        say(*planned.notices, terminal.announcement(planned))
        if dry_run:
            _print_forecast(terminal.forecast_rows(planned), as_json=as_json)
            return
        done = planned.run(quiet=quiet or None, notify=say)
    pages = reproduction_pages(done)
    if as_json:
        print_json(terminal.reproduction_dict(done, list(pages)))
    else:
        print_blocks(terminal.reproduction_text(done))
    for path, text in pages.items():
        write(path, text().encode())
        say(*done.store.take_notices(), f"page: {path}")
    say(f"repeat: {typed()}")
    for error in done.errors:
        echo(f"inscape: {error}", err=True)
    _exit(failed=bool(done.errors), missed="not reproduced" in done.counts)


def _exit(*, failed: bool, missed: bool) -> None:
    """End with the code of a failure or of a miss, where there is one."""
    if failed:
        raise typer.Exit(FAILED)
    if missed:
        raise typer.Exit(OUT_OF_TOLERANCE)


def _verify(ids: Sequence[str], out: Path, count: int | None, data_dir: Path | None) -> None:
    """Rerun random cells and print how near each comes to its record."""
    from collections import Counter

    from inscape.lab.reproduction_plan import data_from
    from inscape.lab.store import Store
    from inscape.lab.verification import TOLERANCE, verify

    counter: Counter[str] = Counter()
    with data_from(data_dir):
        for check in verify(ids, Store(out, mends=False), count or 1):
            counter[check.repetition] += 1
            record = check.record
            detail = check.problem or (
                f"{check.where} by {check.difference:.1e}" * bool(check.where)
            )
            words = f"{record.experiment} {record.scale} {record.key}: {check.repetition}"
            echo(words + (f" ({detail})" if detail else ""))
    if not counter:
        raise ValueError(
            f"--verify needs records to rerun, found none under {out}: run them first."
        )
    parts = ", ".join(f"{number} {words}" for words, number in counter.items())
    echo(f"{counter.total()} cells rerun: {parts}; repeated means within {TOLERANCE:g}")
    _exit(failed=bool(counter["failed"]), missed=bool(counter["not repeated"]))


def overrides(changes: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values that ``--set key=a,b`` gives to each setting.

    >>> overrides(["width=8,16", "rate=1e-3", "init=small", "pairs=[[0, 1], [2, 3]]"])
    {'width': [8, 16], 'rate': [0.001], 'init': ['small'], 'pairs': [[0, 1], [2, 3]]}
    """
    values: dict[str, list[Any]] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not (key and equals and text):
            raise ValueError(
                f"--set must be KEY=VALUE, found {change!r}: write for example --set width=8,16."
            )
        if key in values:
            raise ValueError(
                f"--set {key} was given twice: put all values into one, separated by commas."
            )
        value = _value(text)
        values[key] = value if isinstance(value, list) else [_value(p) for p in text.split(",")]
    return values


def _value(text: str) -> Any:
    """Return a number, true, false, null or a list as JSON reads it; else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def _print_forecast(rows: list[dict[str, object]], *, as_json: bool) -> None:
    if as_json:
        print_json({"experiments": rows[:-1], "all": rows[-1]})
    else:
        print_table(rows, right=("time", "disk"))
