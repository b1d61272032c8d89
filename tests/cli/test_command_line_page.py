"""The page of the command line names every verb and option that there is, and no other."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from inscape.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
TEXT = PAGE.read_text(encoding="utf-8")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def verbs(group, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield each verb by its words, those of groups inside too."""
    for name, command in group.commands.items():
        words = f"{path} {name}".strip()
        if hasattr(command, "commands"):
            yield from verbs(command, words)
        else:
            yield words, command


MAIN = typer.main.get_command(app)
VERBS = dict(verbs(MAIN))
OPTIONS = {
    name: {o for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("--")}
    for name, command in {**VERBS, "inscape": MAIN}.items()
}


def test_there_are_verbs_and_options():
    assert {"look", "reproduce", "data fetch"} <= set(VERBS)
    assert "--divide" in OPTIONS["look"]
    assert "--only" in OPTIONS["look"] & OPTIONS["reproduce"]


@pytest.mark.parametrize("verb", VERBS)
def test_the_page_names_the_verb(verb):
    assert re.search(rf"`(inscape )?{verb}\b", TEXT), verb


@pytest.mark.parametrize("verb", OPTIONS)
def test_the_page_names_every_option(verb):
    named = set(OPTION.findall(TEXT))
    missing = OPTIONS[verb] - named - {"--help", "--install-completion", "--show-completion"}
    assert not missing


def test_the_page_names_no_other_option():
    known = {option for options in OPTIONS.values() for option in options}
    assert not set(OPTION.findall(TEXT)) - known - {"--help"}


def test_scale_means_one_thing():
    assert [verb for verb in VERBS if "--scale" in OPTIONS[verb]] == ["reproduce", "show"]
    assert not [verb for verb in VERBS if "--measures" in OPTIONS[verb]]
