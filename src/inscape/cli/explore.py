"""``inscape explore``: zoom into the exact linear regions of a network, in a browser."""

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inscape.cli import options as opt
from inscape.cli.console import Speech, echo
from inscape.cli.group import typed

if TYPE_CHECKING:
    from inscape.explorer.session import Session
    from inscape.explorer.subject import ExploredSubject

Port = Annotated[
    int, typer.Option("--port", metavar="N", help="Port to listen at; a free one if 0.")
]
Host = Annotated[
    str,
    typer.Option(
        "--host", metavar="NAME", help="Where to listen; others can reach any but 127.0.0.1."
    ),
]
Results = Annotated[
    Path,
    typer.Option(
        "--results", metavar="FOLDER", help="Folder of the records that the papers are shown from."
    ),
]
NoBrowser = Annotated[
    bool, typer.Option("--no-browser", help="Print the address and open no browser.")
]

With = Annotated[
    str | None,
    typer.Option(
        "--with", metavar="OTHER", help="A second network of the same inputs, named as in --model."
    ),
]
WithWeights = Annotated[
    Path | None,
    typer.Option(
        "--with-weights",
        metavar="FILE",
        help="Weights of the second network; of another copy of --model if --with is not given.",
    ),
]

Export = Annotated[
    Path | None,
    typer.Option(
        "--export",
        metavar="FILE.html",
        help="Write the slice to one file that needs no server, and end.",
    ),
]

Options = Mapping[str, Any]


def explore(
    model: opt.Model = None,
    weights: opt.Weights = None,
    take: opt.Take = None,
    embedding: opt.Embedding = None,
    trajectory: opt.RecordedTraining = None,
    other: With = None,
    other_weights: WithWeights = None,
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
    host: Host = "127.0.0.1",
    port: Port = 0,
    no_browser: NoBrowser = False,
    results: Results = Path("results"),
    export: Export = None,
    quiet: opt.Quiet = False,
) -> None:
    """Zoom into the exact linear regions of a network, in a browser on this machine.

    Without options it shows the built-in example, a small network trained on the digits of
    scikit-learn. No request leaves the machine; Ctrl-C ends it.
    """
    _run({**locals(), "threads": opt.threads(threads), "seed": opt.seed(seed)})


def _run(options: dict[str, Any]) -> None:
    """Open what is explored, and serve it until it is interrupted, or write one file."""
    limit, size = opt.at_least_one("--limit", options["limit"]), opt.max_size(options["max_size"])
    options |= {"limit": limit, "max_size": size}
    export, host = options["export"], options["host"]
    from inscape.explorer.serve import is_loopback, need_web, serve

    need_web()
    _check_export(export)
    from inscape.explorer.session import Session

    say = Speech(quiet=options["quiet"])
    with redirect_stdout(sys.stderr):  # what a model prints is no result
        subject = _explored(options, say)
    session = Session(subject, results=options["results"])
    if export is not None:
        _write_slice(session, export, say)
        return
    if not is_loopback(host):
        say(f"--host {host}: whoever can reach this machine and knows the token sees this page")

    def ready(address: str) -> None:
        echo(address)
        say("open this address in a browser on this machine; Ctrl-C ends the explorer")
        if not options["no_browser"]:
            import webbrowser

            webbrowser.open(address)

    serve(session, host=host, port=options["port"], ready=ready)


def _explored(options: Options, say: Speech) -> "ExploredSubject":
    """Open the model, its data and what goes with them."""
    import torch

    from inscape.explorer.opening import explored

    if options["model"] is not None:
        opt.require_data(options["data"], "model")
    else:
        say("no --model given: training the built-in example, a small network on digits")
    if options["threads"] is not None:
        torch.set_num_threads(options["threads"])
    return explored(
        {name: options[name] for name in _OPENING},
        preparation=opt.preparation(options),
        command=typed(),
        quiet=say.quiet,
    )


def _check_export(path: Path | None) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    if path is None:
        return
    if path.suffix != ".html":
        raise ValueError(
            f"--export must name an .html file, found {path.name!r}: rename it to "
            f"{path.with_suffix('.html').name!r}."
        )
    if not path.absolute().parent.is_dir():
        raise ValueError(
            f"--export must be in a folder that exists, found {str(path.parent)!r}: make it first."
        )


def _write_slice(session: "Session", path: Path, say: Speech) -> None:
    """Write a slice to one file, and say how large it is."""
    from inscape._core.anytime import finished
    from inscape.explorer.planes import kinds_of
    from inscape.explorer.requests import SavedRequest
    from inscape.explorer.saved_slice import saved_slice
    from inscape.files.atomic import write

    query = SavedRequest(kind=kinds_of(session.subject)[0])
    page, facts = finished(saved_slice(session, query))
    write(path, page)
    echo(str(path))
    say(f"{facts['cells']:,} linear regions, {len(page) / 1e6:.1f} MB; open it in any browser")


_OPENING = (
    *("model", "data", "weights", "trajectory", "trust", "max_size", "limit", "device", "dtype"),
    *("seed", "take", "embedding", "other", "other_weights"),
)
