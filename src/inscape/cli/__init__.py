"""The command line: parse, call, print; one file for each verb.

Nothing here imports torch, numpy or matplotlib before a verb needs it, so that ``--help`` and
``list`` answer at once. Exit codes: 0 ok, 1 the run failed (disk, network, budget), 2 bad usage,
3 finished but a checked number is out of tolerance, 130 interrupted, 141 nobody reads the output.
"""

from typing import Annotated

import typer

from inscape.cli import data
from inscape.cli.compare import compare as compare_verb
from inscape.cli.console import echo
from inscape.cli.doctor import doctor as doctor_verb
from inscape.cli.errors import open_streams
from inscape.cli.explore import explore as explore_verb
from inscape.cli.group import Verbs
from inscape.cli.list import list_all as list_verb
from inscape.cli.look import look as look_verb
from inscape.cli.pages import pages as pages_verb
from inscape.cli.reproduce import reproduce as reproduce_verb
from inscape.cli.show import show as show_verb
from inscape.cli.sweep import sweep as sweep_verb

app = typer.Typer(
    cls=Verbs,
    name="inscape",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> bool:
    if wanted:
        from inscape import __version__

        echo(f"inscape {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _inscape(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; accepted after a verb, too.")
    ] = False,
) -> None:
    """See what function a neural network has learned.

    `inscape look` measures a built-in example and writes its report;
    `inscape look --model file.py:factory --weights weights.pt --data data.npz` does it for yours;
    `inscape sweep ckpts/*.pt --model file.py:factory --data data.npz` compares many;
    `inscape compare before.pt2 after.pt2 --data data.npz` shows where two networks differ;
    `inscape reproduce volhejn` runs a paper again and judges its claims.
    """


app.command("look")(look_verb)
app.command("explore")(explore_verb)
app.command("sweep")(sweep_verb)
app.command("compare")(compare_verb)
app.command("reproduce")(reproduce_verb)
app.command("pages")(pages_verb)
app.command("list")(list_verb)
app.command("show")(show_verb)
app.command("doctor")(doctor_verb)
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line."""
    open_streams()
    app(prog_name="inscape")
