"""The pages of a reproduction: of each paper that it ran, or of its own settings."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from inscape.lab.catalogue import OWN, name_of
from inscape.lab.reproduction import Reproduction
from inscape.report.html import write
from inscape.report.paper.page import page_of, paper_page


def reproduction_pages(reproduction: Reproduction) -> dict[Path, Callable[[], str]]:
    """Return the pages to write: the path of each, and a function that returns its text.

    A run at the scale of the paper or a laptop makes the paper's own page anew. A page about other
    settings, other instruments or the smoke scale has another name, and only what was run.
    """
    pages: dict[Path, Callable[[], str]] = {}
    by_paper = [name_of(outcome.id).partition("/")[0] for outcome in reproduction.outcomes]
    for paper in dict.fromkeys(by_paper):
        outcomes = [
            outcome
            for outcome in reproduction.outcomes
            if name_of(outcome.id).startswith(f"{paper}/")
        ]
        ending = "-smoke" if reproduction.scale == "smoke" else ""
        if reproduction.only or any(outcome.changed for outcome in outcomes):
            ending = "-own-settings"
        complete = not ending and not paper.startswith(OWN)
        pages[reproduction.store.root / f"{paper}{ending}.html"] = (
            partial(paper_page, paper, reproduction.store)
            if complete
            else partial(page_of, paper, outcomes, command=reproduction.command)
        )
    return pages


def save_pages(reproduction: Reproduction) -> list[Path]:
    """Write the pages of a reproduction beside its records and return their paths."""
    pages = reproduction_pages(reproduction)
    for path, text in pages.items():
        write(path, text().encode())
    return list(pages)
