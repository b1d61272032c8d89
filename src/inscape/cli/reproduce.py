"""``inscape reproduce``: run a paper again and put a verdict beside each of its claims."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from inscape.cli.errors import FAILED, OUT_OF_TOLERANCE, typed
from inscape.cli.output import Speech
from inscape.cli.requests import Request, data_from, instruments, overrides, resolved
from inscape.cli.terminal import echo

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
Measures = Annotated[
    str | None, typer.Option("--measures", metavar="A,B", help="Measure these instruments.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be run, and its cost.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute again what is there already.")]
Results = Annotated[
    Path, typer.Option("--out", metavar="FOLDER", help="Folder of the records and the page.")
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="FOLDER", help="Where to look for data sets first."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors.")]


def reproduce(
    names: Names,
    scale: Scale = "laptop",
    jobs: Jobs = None,
    executor: Where = None,
    seeds: Seeds = None,
    changes: Set = None,
    measures: Measures = None,
    dry_run: DryRun = False,
    fresh: Fresh = False,
    out: Results = Path("results"),
    data_dir: DataDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run tables and figures of a paper again; compute only what is missing.

    Exits with 3 when a claim is not reproduced at a scale that gives a verdict.
    """
    say = Speech(quiet=quiet)
    request = Request(
        ids=resolved(names),
        scale=scale,
        jobs=jobs,
        executor=executor,
        seeds=seeds,
        overrides=overrides(changes or ()),
        measures=instruments("--measures", measures),
        fresh=fresh,
        out=out,
    )
    with data_from(data_dir):
        from inscape.cli import reproduction, verdicts

        plans = reproduction.plans(request, say)
        say(reproduction.announcement(request, plans))
        if dry_run:
            verdicts.print_forecast(reproduction.forecast(request, plans), as_json=as_json)
            return
        done = reproduction.run(request, plans, say, quiet=quiet)
    pages = reproduction.pages(request, done)
    verdicts.print_verdicts(done.found, done.reports, list(pages), typed(), as_json=as_json)
    for path, page in pages.items():
        verdicts.write_page(path, page())
        say(*done.store.told(), f"page: {path}")
    say(f"repeat: {typed()}")
    for error in done.errors:
        echo(f"inscape: {error}", err=True)
    if done.errors:
        raise typer.Exit(FAILED)
    if any(
        judged.verdict == "not reproduced" for found in done.found for judged in found.judgements
    ):
        raise typer.Exit(OUT_OF_TOLERANCE)
