"""``inscape compare``: do two networks, or more, do the same, and where do they differ?"""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inscape.cli import options as opt
from inscape.cli.console import Speech
from inscape.cli.errors import FAILED
from inscape.cli.group import typed
from inscape.cli.tables import print_blocks, print_json, print_table

if TYPE_CHECKING:
    from inscape.report.comparison.session import PreparedCompare

Models = Annotated[
    list[str],
    typer.Argument(
        metavar="A B ...",
        help="Models or checkpoints (.pt, .safetensors, .pt2, .onnx, .nnet), folders of them, or "
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
Names = Annotated[
    str | None,
    typer.Option("--names", metavar="A,B", help="What the networks are called; else their files."),
]


def compare(
    models: Models,
    model: Factory = None,
    data: opt.Data = None,
    names: Names = None,
    only: opt.Only = None,
    budget: opt.Budget = 60.0,
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
    out: opt.Out = Path("reports"),
    as_json: opt.AsJson = False,
    no_page: opt.NoPage = False,
    quiet: opt.Quiet = False,
    dry_run: opt.DryRun = False,
) -> None:
    """Compare two networks or more on the same examples, and write one page.

    How often they disagree and on which examples, how alike their layers and local maps are, a
    slice with both decision boundaries, and the difference of every instrument of look.
    """
    options = locals()
    opt.require_data(data, "networks")
    from inscape.report.comparison import terminal
    from inscape.report.page_paths import check_page, comparison_name, page_path

    say = Speech(quiet=quiet)
    page = None
    if not (no_page or dry_run):
        page = page_path(out, comparison_name(models, str(data)))
        check_page(page)
    with redirect_stdout(sys.stderr):  # what a model prints is no result
        prepared = _prepared(options)
    say(terminal.announcement(prepared))
    if dry_run:
        (print_json if as_json else print_table)(terminal.forecast_rows(prepared))
        return
    with redirect_stdout(sys.stderr):
        result = prepared.run(quiet=True if quiet else None)
    if as_json:
        print_json({**result.to_dict(), "page": None if page is None else str(page)})
    else:
        print_blocks(terminal.compare_text(result))
    if page is not None:
        say(f"report: {result.save(page)}")
    say(f"repeat: {result.command}")
    if result.failed or result.sweep.failed:
        raise typer.Exit(FAILED)


def _prepared(options: dict[str, Any]) -> "PreparedCompare":
    from inscape.report.comparison.session import prepare

    as_given = ("model", "only", "take", "trust", "device", "dtype")
    names = options["names"]
    return prepare(
        options["models"],
        options["data"],
        **{key: options[key] for key in as_given},
        names=None if names is None else [name.strip() for name in names.split(",")],
        budget=opt.seconds(options["budget"]),
        limit=opt.at_least_one("--limit", options["limit"]),
        max_size=opt.max_size(options["max_size"]),
        seed=opt.seed(options["seed"]),
        data_options=opt.preparation(options),
        command=typed(),
    )
