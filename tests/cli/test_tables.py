"""The same rows as a rich table, as aligned text and as JSON."""

import io
import json
import math
import re

import pytest

from inscape.cli import tables
from inscape.cli.tables import aligned, print_json, print_table, text

ROWS = [
    {"name": "short", "a_number": 1.5, "what": "a text of some words"},
    {"name": "a longer name", "a_number": 12345, "what": ""},
]


def test_aligned_text_puts_numbers_right_and_texts_left():
    assert aligned(ROWS) == [
        "name           a number  what",
        "-------------  --------  --------------------",
        "short               1.5  a text of some words",
        "a longer name     12345",
    ]


def test_the_last_column_is_wrapped_to_the_terminal():
    row = {"name": "n", "what": "one two three four five six seven eight nine ten"}
    lines = aligned([row], width=32)
    assert max(map(len, lines)) <= 32
    assert " ".join(line[6:] for line in lines[2:]) == row["what"]


def test_a_terminal_that_is_too_narrow_does_not_squeeze_everything():
    row = {"name": "x" * 40, "what": "word " * 10}
    assert max(len(line) for line in aligned([row], width=20)) <= 40 + 2 + tables.NARROWEST


def test_a_row_may_lack_cells_and_have_more():
    assert aligned([{"a": "x"}, {"a": "y", "b": "z"}]) == ["a  b", "-  -", "x", "y  z"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "yes"),
        (False, "no"),
        (0.123456, "0.1235"),
        (7, "7"),
        (["a", 1.0], "a, 1"),
        ("x", "x"),
    ],
)
def test_cells(value, shown):
    assert text(value) == shown


def test_plain_in_a_pipe(capsys):
    print_table(ROWS, title="the title")
    out = capsys.readouterr().out.splitlines()
    assert out == ["the title", *aligned(ROWS)]


def test_no_rows_print_nothing(capsys):
    print_table([], title="the title")
    assert capsys.readouterr().out == ""


class Terminal(io.StringIO):
    """A stdout that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def in_terminal(monkeypatch, rows, title="", right=(), **environment: str) -> str:
    """Return what a terminal of 80 columns is shown."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "80", **environment}.items():
        monkeypatch.setenv(name, value)
    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    print_table(rows, title=title, right=right)
    return out.getvalue()


def test_rich_in_a_terminal(monkeypatch):
    rows = [*ROWS, {"name": "[bold]", "a_number": 1, "what": "no markup"}]
    shown = in_terminal(monkeypatch, rows, title="the title")
    assert "\x1b[" in shown
    for word in ("the title", "a longer name", "a number", "12345", "[bold]"):
        assert word in shown


def test_no_cell_is_cut_in_a_narrow_terminal(monkeypatch):
    row = {"instrument": "gradient_path_length", "this network": "20.63", "interval": "1.5 to 2.5"}
    more = {"at initialisation": "1.95", "linear model": "0.25", "lower bound": "0.125"}
    shown = in_terminal(monkeypatch, [row | more], right=tuple(more), COLUMNS="72")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert max(map(len, lines)) <= 72
    words = {word for line in lines for word in line.split()}
    for cell in (*row, *more, *row.values(), *more.values()):
        assert words.issuperset(cell.split())


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_plain_in_a_terminal_that_wants_it(monkeypatch, environment):
    shown = in_terminal(monkeypatch, ROWS, **environment)
    assert shown.splitlines() == aligned(ROWS, width=80)


def test_json_has_no_nan(capsys):
    print_json({"a": [1.0, math.nan, (math.inf,)], "b": "é"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": [1.0, None, [None]], "b": "é"}
    assert "NaN" not in out
    assert "é" in out
