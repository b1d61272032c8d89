"""``inscape look``: measure a model in every way that applies and write its report."""

import sys
from contextlib import redirect_stdout
from pathlib import Path

import typer

from inscape.cli import options as opt
from inscape.cli.boolean import look_boolean
from inscape.cli.errors import FAILED, typed
from inscape.cli.forecast import announcement, forecast, print_forecast
from inscape.cli.glance import print_look
from inscape.cli.opening import Wanted, opened
from inscape.cli.output import Speech, check_writable, page_path


def look(
    model: opt.Model = None,
    boolean: opt.Boolean = None,
    weights: opt.Weights = None,
    trust: opt.Trust = False,
    data: opt.Data = None,
    data_dir: opt.DataDir = None,
    download: opt.Download = False,
    input_shape: opt.InputShape = None,
    scale: opt.Scale = "none",
    normalise: opt.Normalise = None,
    target: opt.Target = None,
    labels: opt.Labels = "auto",
    loss: opt.Loss = "auto",
    limit: opt.Limit = None,
    device: opt.Device = "auto",
    dtype: opt.DType = None,
    threads: opt.Threads = None,
    seed: opt.Seed = 0,
    budget: opt.Budget = 60.0,
    only: opt.Only = None,
    out: opt.Out = Path("reports"),
    as_json: opt.AsJson = False,
    no_page: opt.NoPage = False,
    quiet: opt.Quiet = False,
    dry_run: opt.DryRun = False,
) -> None:
    """Measure a model in every way that applies and write its report.

    Without options it looks at a built-in example: a small network trained on the digits of
    scikit-learn.
    """
    if boolean is not None:
        look_boolean(boolean, locals())
        return
    wanted = Wanted.read(locals())  # every option by its name
    say = Speech(quiet=quiet)
    page = None if no_page or dry_run else page_path(out, wanted.name)
    if page is not None:
        check_writable(page)
    with redirect_stdout(sys.stderr):  # what a model prints is no result
        subject = opened(wanted, say)
        times = forecast(subject, wanted)
    say(announcement(subject, wanted, times))
    if dry_run:
        print_forecast(wanted, times, as_json=as_json)
        return
    from inscape.report import look as look_at

    with redirect_stdout(sys.stderr):
        found = look_at(
            subject.model,
            subject.data,
            budget=wanted.budget,
            seed=wanted.seed,
            only=wanted.only,
            quiet=True if quiet else None,
            command=typed(),
        )
    print_look(found, page, as_json=as_json)
    if page is not None:
        say(f"report: {found.save(page)}")
    say(f"repeat: {typed()}")
    if found.failed:
        raise typer.Exit(FAILED)
