"""A look at a model: open it, say what it will cost, measure, print, write."""

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import typer

from inscape.cli.errors import FAILED, typed
from inscape.cli.forecast import announcement, forecast, print_forecast
from inscape.cli.glance import print_look
from inscape.cli.opening import Subject, Wanted, opened
from inscape.cli.output import Speech, check_writable, page_path

if TYPE_CHECKING:
    import inscape.report


def look_at_model(given: Mapping[str, Any]) -> None:
    """Look at a model with the options of a look, print what was found and write its page."""
    wanted = Wanted.read(given)
    say, as_json = Speech(quiet=given["quiet"]), given["as_json"]
    page = None
    if not (given["no_page"] or given["dry_run"]):
        page = page_path(given["out"], wanted.name)
        check_writable(page)
    with redirect_stdout(sys.stderr):  # what a model prints is no result
        subject = opened(wanted, say)
        expected = forecast(subject, wanted)
    say(*announcement(subject, wanted, expected))
    if given["dry_run"]:
        print_forecast(wanted, expected, as_json=as_json)
        return
    found = _looked(subject, wanted, quiet=say.quiet)
    print_look(found, page, as_json=as_json)
    if page is not None:
        say(f"report: {found.save(page)}")
    say(f"repeat: {typed()}")
    if found.failed:
        raise typer.Exit(FAILED)


def _looked(subject: Subject, wanted: Wanted, *, quiet: bool) -> "inscape.report.Look":
    from inscape.report import look

    with redirect_stdout(sys.stderr):
        return look(
            subject.model,
            subject.data,
            budget=wanted.budget,
            seed=wanted.seed,
            only=wanted.only,
            trajectory=subject.trajectory,
            explain=wanted.explain,
            quiet=True if quiet else None,
            command=typed(),
        )
