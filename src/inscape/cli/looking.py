"""A look at a model: open it, say what it will cost, measure, print, write."""

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import typer

from inscape.cli.errors import FAILED, typed
from inscape.cli.forecast import announcement, print_forecast
from inscape.cli.glance import print_look
from inscape.cli.opening import Wanted, opened
from inscape.cli.output import Speech, check_writable, page_path, said_if_slow

if TYPE_CHECKING:
    from inscape.report.look.session import Prepared

#: Said where that is not done in a moment, as it is once the kernels are on disk.
COMPILING = "making kernels ready: the first look on a machine compiles them, for some ten seconds"


def look_at_model(given: Mapping[str, Any]) -> None:
    """Look at a model with the options of a look, print what was found and write its page."""
    wanted = Wanted.read(given)
    say, as_json = Speech(quiet=given["quiet"]), given["as_json"]
    page = None
    if not (given["no_page"] or given["dry_run"]):
        page = page_path(given["out"], wanted.name)
        check_writable(page)
    with redirect_stdout(sys.stderr):  # what a model prints is no result
        prepared = _prepared(wanted, say, page=page is not None)
    say(*announcement(prepared))
    if given["dry_run"]:
        print_forecast(prepared, as_json=as_json)
        return
    with redirect_stdout(sys.stderr):
        look = prepared.run(quiet=True if say.quiet else None)
    print_look(look, page, as_json=as_json)
    if page is not None:
        say(f"report: {look.save(page)}")
    say(f"repeat: {look.command}")
    if look.failed:
        raise typer.Exit(FAILED)


def _prepared(wanted: Wanted, say: Speech, *, page: bool) -> "Prepared":
    from inscape.report.look.session import names_chosen, prepare
    from inscape.report.look.warmup import compile_ahead

    with said_if_slow(say, COMPILING):
        compile_ahead(names_chosen(wanted.only))
    subject = opened(wanted, say)
    return prepare(
        subject.model,
        subject.data,
        budget=wanted.budget,
        seed=wanted.seed,
        only=wanted.only,
        trajectory=subject.trajectory,
        explain=wanted.explain,
        memory=wanted.memory,
        threads=wanted.threads,
        take=wanted.take,
        embedding=wanted.embedding,
        work=wanted.work,
        command=typed(),
        page=page,
    )
