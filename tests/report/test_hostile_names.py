"""Names of layers, models and data from outside are shown on pages and in figures, not obeyed."""

import re
import shlex
import xml.etree.ElementTree as ElementTree

import pytest
import torch
from torch import nn

from inscape._core import Result
from inscape.cli.tables import print_blocks, print_json
from inscape.data import Dataset
from inscape.escaping import visible
from inscape.figures import draw, rendered
from inscape.figures.style import new_axes
from inscape.report import Look, look
from inscape.report.html import csv_text
from inscape.report.look.page import notebook_page, page
from inscape.report.look.terminal import look_text
from inscape.selection import selected_instruments
from inscape.spectra import DistanceFromInit, SpectralNorm
from markup import Structure

NAMES = [
    "cost_$",
    "$a$",
    "$\\frac{1",
    "<script>alert(1)</script>",
    "\"' onmouseover=alert(1) x='",
    "</style><script>",
    "]]><blink>",
    "&lt;b&gt;",
    "{{ 7 * 7 }}",
    "fc\u202ecod.exe",
    "a\u2066b\u2069\u200f",
    "red\x1b[31m",
    "nul\x00",
    "two\nlines",
    "=cmd|' /C calc'!A0",
    "+1-1",
    "-layer",
    "@SUM(A1)",
    "\tx",
    "half\ud800",
    "[bold]rich[/bold]",
    "\\input{x}",
]
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def model(*names: str) -> nn.Module:
    """Return a network whose layers have these names."""
    net = nn.Sequential()
    for index, name in enumerate(names):
        layer = nn.Linear(3, 3, dtype=torch.float64)
        nn.init.eye_(layer.weight)
        net._modules[f"{name}{index}" if index else name] = layer  # as a hostile file would
    net._modules["last"] = nn.Linear(3, 1, dtype=torch.float64)
    return net.eval()


def results(*names: str) -> list[Result]:
    """Return results with these names on either axis of their figures."""
    ones = torch.ones(len(names), dtype=torch.float64)
    return [
        SpectralNorm(norms=ones, layers=names, converged=True, outputs=1),
        DistanceFromInit(distances=ones, before=ones, after=ones, names=names, parameters=3),
    ]


@pytest.fixture(scope="module")
def hostile() -> Look:
    """Return a look at a network, on data, with all of the names."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(24, 3, generator=rng, dtype=torch.float64)
    data = Dataset(name="".join(NAMES), x=x, y=x[:, :1], task="regression")
    first = [
        f"{name}=1/1/1/1/1"
        for name, entry in selected_instruments(None).items()
        if hasattr(entry.function, "refine")
    ]
    work = ",".join(["batch=1600", *first])  # names are shown as they are, however little is done
    return look(model(*NAMES), data, quiet=True, work=work, command=shlex.join(NAMES))


def test_a_page_shows_every_name_and_obeys_none(hostile):
    text = page(hostile)
    assert not CONTROL.search(text)
    assert "<script" not in text.lower()
    assert "<blink" not in text
    shown = Structure(text).text
    for name in ("cost_$", "<script>alert(1)</script>", "{{ 7 * 7 }}", "fc\\u202ecod.exe"):
        assert name in shown
    assert "red\\u001b[31m" in shown
    assert not re.search(r"<[^>]*\sonmouseover", text)


def test_the_json_and_the_notebook_page_are_safe(hostile, tmp_path):
    text = hostile.save(tmp_path / "a.json").read_text()
    assert not CONTROL.search(text)
    shown = notebook_page(hostile)
    assert not CONTROL.search(shown)
    assert shown.count("<") == 2  # the frame, and its end: all else is inside
    hostile.save(tmp_path / "a.html")


def test_the_terminal_shows_names(hostile, capsys):
    print_blocks(look_text(hostile))
    print_json(hostile.to_dict())
    said = capsys.readouterr()
    assert said.out
    assert not CONTROL.search(said.out + said.err)


@pytest.mark.parametrize("names", [NAMES[k : k + 6] for k in range(0, len(NAMES), 6)], ids=ascii)
@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_a_figure_draws_any_name(names, suffix, tmp_path):
    for result in results(*names, "plain"):
        result.save(tmp_path / f"a{suffix}")
        if suffix == ".svg":
            text = (tmp_path / "a.svg").read_text()
            assert not CONTROL.search(text)
            shown = "".join(ElementTree.fromstring(text).itertext())
            lines = [line for name in names for line in visible(name).split("\n")]
            assert all(line.strip() in shown for line in lines)  # none is left out


def test_names_stand_in_a_figure_as_they_are():
    for result in results("cost_$", "fc\u202e", "$a$"):
        text = rendered(draw(result)).decode()
        assert ">cost_$<" in text
        assert ">fc\\u202e<" in text
        assert ">$a$<" in text
        ax = new_axes()
        for _ in range(2):  # on axes of the user's own, and twice
            draw(result, ax)
        assert ">cost_$<" in rendered(ax).decode()


def test_powers_of_ten_are_still_formulas():
    ax = new_axes()
    draw(results("a")[1], ax)
    ax.set_xscale("log")
    ax.set_xlim(1e-9, 1e9)
    text = re.sub("<!--.*?-->", "", rendered(ax).decode())  # comments quote the formula
    assert "$" not in text
    assert "mathdefault" not in text


@pytest.mark.parametrize("suffix", [".csv", ".html", ".tex", ".json"])
def test_a_saved_result_obeys_no_name(tmp_path, suffix):
    text = results(*NAMES)[0].save(tmp_path / f"a{suffix}").read_text()
    assert not CONTROL.search(text)
    if suffix == ".csv":
        cells = [cell for line in text.splitlines() for cell in line.split(",")]
        assert not [cell for cell in cells if re.match("[=+@\t]|-[a-z]", cell)]
        assert "'=cmd" in text
    if suffix == ".html":
        assert "<script" not in text
    if suffix == ".tex":
        assert "\\input{" not in text


def test_numbers_of_a_csv_stay_numbers():
    rows = [{"name": "-fc", "-x": -1.5, "n": -3, "word": "-2.5e-3", "inf": float("-inf")}]
    assert csv_text(rows) == "name,'-x,n,word,inf\n'-fc,-1.5,-3,-2.5e-3,-inf\n"


@pytest.mark.parametrize("start", list("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"))
def test_every_beginning_of_a_formula_is_neutralised(start):
    cell = csv_text([{"a": f"{start}SUM(1)"}]).partition("\n")[2].lstrip('"')
    assert cell.startswith("'")


def test_every_control_character_is_written_out_and_nothing_else():
    for number in (*range(32), *range(127, 160), 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2069):
        if chr(number) not in "\t\n":
            assert visible(f"a{chr(number)}b") == f"a\\u{number:04x}b"
    plain = "naïve Zürich \u5b66\u7fd2 10⁻³ \U0001f469\u200d\U0001f52c \t\n $x$"
    assert visible(plain) == plain
