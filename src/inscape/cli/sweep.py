"""``inscape sweep``: measure many models with the same instruments, and compare them."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from inscape.cli import options as opt
from inscape.cli.console import Speech
from inscape.cli.errors import FAILED
from inscape.cli.group import typed

if TYPE_CHECKING:
    from inscape.report.sweeps.run import PreparedSweep

Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODELS...",
        help="Checkpoints or models (.pt, .safetensors, .pt2, .onnx, .nnet), folders of them, or "
        "file.py:factory.",
    ),
]
Factory = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="FACTORY",
        help="Builds the network of files that hold weights alone: file.py:factory or "
        "package.module:factory.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="A,B", help="Instruments or families, e.g. smoothness,regions."),
]
Columns = Annotated[
    Path | None,
    typer.Option(
        "--with",
        metavar="CSV",
        help="Your numbers for each model (a column of models, others such as accuracy), to "
        "correlate every number with.",
    ),
]
Compare = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--compare", metavar="A B", help="Print the differences of two models: A minus B."
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="SECONDS",
        help="Time per model: chooses how many examples are measured, the same for all models.",
    ),
]
Where = Annotated[
    Literal["serial", "joblib", "ray", "slurm"] | None,
    typer.Option("--executor", help="Where to run; processes of this machine by default."),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", help="Models at a time; all cores by default.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FOLDER", help="Folder of records, tables and page; else sweeps/DATA."
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Measure again what is there already.")]


def sweep(
    models: Models,
    model: Factory = None,
    data: opt.Data = None,
    only: Only = None,
    columns: Columns = None,
    compare: Compare = None,
    budget: Budget = None,
    executor: Where = None,
    jobs: Jobs = None,
    take: opt.Take = None,
    trust: opt.Trust = False,
    max_size: opt.MaxSize = None,
    data_dir: opt.DataDir = None,
    download: opt.Download = False,
    input_shape: opt.InputShape = None,
    divide: opt.Divide = "none",
    normalise: opt.Normalise = None,
    target: opt.Target = None,
    labels: opt.Labels = "auto",
    loss: opt.Loss = "auto",
    limit: opt.Limit = None,
    device: opt.Device = "cpu",
    dtype: opt.DType = None,
    seed: opt.Seed = 0,
    out: Out = None,
    fresh: Fresh = False,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
    dry_run: opt.DryRun = False,
) -> None:
    """Measure many models with the same instruments on the same samples, and compare them.

    Each number is on disk the moment it is there: the same command after a kill measures only
    what is missing. Exits with 1 where a model could not be opened or measured; its row says why.
    """
    options = locals()
    opt.require_data(data, "models")
    say = Speech(quiet=quiet)
    from inscape.cli import sweep_output
    from inscape.lab.reproduction_plan import data_from

    with data_from(data_dir):
        folder = out if out is not None else sweep_output.default_folder(str(data))
        sweep_output.check_writable(folder, advice="choose another with --out.")
        with redirect_stdout(sys.stderr):  # what a model prints is no result
            prepared = _prepared(options, folder)
        say(*prepared.plan.notes, *prepared.columns.notes, sweep_output.announcement(prepared))
        if dry_run:
            sweep_output.print_forecast(prepared, as_json=as_json)
            return
        result = prepared.run(quiet=True if quiet else None)
    sweep_output.print_sweep(result, compare, as_json=as_json)
    say(*(f"wrote {path}" for path in sweep_output.write_all(result, folder)))
    say(f"repeat: {typed()}")
    if result.failed:
        raise typer.Exit(FAILED)


def _prepared(options: dict[str, object], folder: Path) -> "PreparedSweep":
    from inscape.report.sweeps.run import prepare

    as_given = ("model", "only", "columns", "executor", "jobs", "take", "trust", "device", "dtype",
                "fresh")  # fmt: skip
    return prepare(
        options["models"],
        options["data"],
        **{key: options[key] for key in as_given},  # type: ignore[arg-type]
        budget=options["budget"],  # type: ignore[arg-type]
        limit=opt.at_least_one("--limit", options["limit"]),  # type: ignore[arg-type]
        max_size=opt.max_size(options["max_size"]),  # type: ignore[arg-type]
        seed=opt.seed(options["seed"]),  # type: ignore[arg-type]
        data_options=opt.preparation(options),
        out=folder,
        keeps=not options["dry_run"],
        command=typed(),
    )
