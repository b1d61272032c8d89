"""``inscape look``: measure a model in every way that applies and write its report."""

import inspect
import sys
from collections.abc import Collection, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from inscape.cli import options as opt
from inscape.cli.console import Speech, said_if_slow
from inscape.cli.errors import FAILED
from inscape.cli.group import typed
from inscape.cli.tables import print_blocks, print_json
from inscape.selection import selected

if TYPE_CHECKING:
    from inscape.report import Look, Prepared
    from inscape.report.boolean.summary import BooleanLook

#: Said where that is not done in a moment, as it is once the kernels are on disk.
COMPILING = "making kernels ready: the first look on a machine compiles them, for half a minute"

#: Options that describe a model of the user's own and its files.
OWN_MODEL = (
    *("weights", "take", "embedding", "trajectory", "data", "trust", "max_size"),
    *opt.PREPARATION,
)
#: Options that a look at a Boolean function has.
OF_FUNCTIONS = (
    *("boolean", "seed", "budget", "threads", "out", "as_json", "no_page", "quiet", "dry_run"),
)

Options = Mapping[str, Any]


def look(
    model: opt.Model = None,
    boolean: opt.Boolean = None,
    weights: opt.Weights = None,
    take: opt.Take = None,
    embedding: opt.Embedding = None,
    trajectory: opt.RecordedTraining = None,
    trust: opt.Trust = False,
    max_size: opt.MaxSize = None,
    data: opt.Data = None,
    data_dir: opt.DataDir = None,
    download: opt.Download = False,
    input_shape: opt.InputShape = None,
    divide: opt.Divide = "none",
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
    memory: opt.Memory = None,
    work: opt.WorkDone = None,
    only: opt.Only = None,
    explain: opt.Explain = None,
    out: opt.Out = Path("reports"),
    as_json: opt.AsJson = False,
    no_page: opt.NoPage = False,
    quiet: opt.Quiet = False,
    dry_run: opt.DryRun = False,
) -> None:
    """Measure a model in every way that applies and write its report.

    Without options it looks at a built-in example: a small network trained on the digits of
    scikit-learn. Its training is recorded, so that the report shows which images made some of its
    predictions; --trajectory does the same for a training of your own.
    """
    options = _read(locals())
    if boolean is not None:
        _look_at_function(boolean, options)
    else:
        _look_at_model(options)


def _read(options: Options) -> Options:
    """Return the options with their texts read; what cannot be is refused before torch loads."""
    only = options["only"]
    return {
        **options,
        "limit": opt.at_least_one("--limit", options["limit"]),
        "threads": opt.threads(options["threads"]),
        "seed": opt.seed(options["seed"]),
        "budget": opt.seconds(options["budget"]),
        "memory": opt.memory(options["memory"]),
        "max_size": opt.max_size(options["max_size"]),
        "only": list(selected(only, also=("attribution",))) if only else None,
        "explain": opt.rows(options["explain"]),
    }


def _look_at_model(options: Options) -> None:
    _refuse_halves(options)
    from inscape.report.look import forecast
    from inscape.report.look.example import EXAMPLE
    from inscape.report.look.terminal import look_text
    from inscape.report.page_paths import page_name

    say = Speech(quiet=options["quiet"])
    own = options["model"] is not None
    name = page_name(options["model"], options["weights"], options["data"]) if own else EXAMPLE
    page = _page(options, name)
    with redirect_stdout(sys.stderr):  # what a model prints is no result
        prepared = _prepared(options, say, page=page is not None)
    say(*forecast.announcement(prepared))
    if options["dry_run"]:
        if options["as_json"]:
            print_json(forecast.forecast_dict(prepared))
        else:
            print_blocks([forecast.forecast_table(prepared)])
        return
    with redirect_stdout(sys.stderr):
        result = prepared.run(quiet=True if say.quiet else None)
    if options["as_json"]:
        print_json({**result.to_dict(), "page": None if page is None else str(page)})
    else:
        print_blocks(look_text(result))
    _write(result, page, say)
    say(f"repeat: {result.command}")
    if result.failed:
        raise typer.Exit(FAILED)


def _prepared(options: Options, say: Speech, *, page: bool) -> "Prepared":
    import torch

    from inscape.report import prepare
    from inscape.report.look.opening import opened_example, opened_subject
    from inscape.report.look.session import names_chosen
    from inscape.report.look.warmup import compile_ahead

    with said_if_slow(say, COMPILING):
        compile_ahead(names_chosen(options["only"]))
    if options["threads"] is not None:
        torch.set_num_threads(options["threads"])
    computing = {name: options[name] for name in ("limit", "device", "dtype")}
    if options["model"] is None:
        say("no --model given: training the built-in example, a small network on digits")
        subject = opened_example(**computing, quiet=say.quiet)
    else:
        files = ("model", "data", "weights", "trajectory", "trust", "max_size")
        preparation = opt.preparation(options)
        subject = opened_subject(
            **{name: options[name] for name in files}, **computing, preparation=preparation
        )
    how = ("budget", "seed", "only", "explain", "memory", "threads", "take", "work", "embedding")
    return prepare(
        subject.model,
        subject.data,
        trajectory=subject.trajectory,
        command=typed(),
        page=page,
        **{name: options[name] for name in how},
    )


def _look_at_function(text: str, options: Options) -> None:
    _refuse_others(options)
    from inscape.boolean.formula import read_function
    from inscape.report.boolean.summary import check_inputs, look_at_function
    from inscape.report.boolean.terminal import function_text
    from inscape.report.page_paths import function_page_name

    say = Speech(quiet=options["quiet"])
    page = _page(options, function_page_name(text))
    table = read_function(text)
    check_inputs(table)
    say(f"looking: function {table.number} of {table.n} inputs")
    if options["dry_run"]:
        return
    how = {name: options[name] for name in ("seed", "budget", "threads")}
    result = look_at_function(
        table, written=text, command=typed(), quiet=True if say.quiet else None, **how
    )
    if options["as_json"]:
        print_json({**result.to_dict(), "page": None if page is None else str(page)})
    else:
        print_blocks(function_text(result))
    _write(result, page, say)
    say(f"repeat: {typed()}")


def _page(options: Options, name: str) -> Path | None:
    """Return the file of the report, which can be written; nothing where none is wanted."""
    from inscape.report.page_paths import check_page, page_path

    if options["no_page"] or options["dry_run"]:
        return None
    page = page_path(options["out"], name)
    check_page(page)
    return page


def _write(result: "Look | BooleanLook", page: Path | None, say: Speech) -> None:
    """Write the report, after it was printed, so that a full disk loses no numbers."""
    if page is not None:
        say(f"report: {result.save(page)}")


def _refuse_halves(options: Options) -> None:
    """Refuse a model without data, and anything about a model that is not there."""
    if options["model"] is None:
        for name in _changed(options, OWN_MODEL):
            raise ValueError(
                f"--{name} describes a model of your own, found no --model: "
                "give --model file.py:factory too, or leave it out to look at the example."
            )
    else:
        opt.require_data(options["data"], "model")


def _refuse_others(options: Options) -> None:
    """Refuse options that say something about a model where a Boolean function is looked at."""
    for name in _changed(options, [name for name in options if name not in OF_FUNCTIONS]):
        raise ValueError(
            f"--boolean looks at a function, found --{name} too, which "
            "describes a model: leave one of them out."
        )


def _changed(options: Options, names: Collection[str]) -> list[str]:
    """Return those options, as they are typed, that are not at their default."""
    parameters = inspect.signature(look).parameters
    return [n.replace("_", "-") for n in names if options[n] != parameters[n].default]
