import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import matplotlib
import pytest
import torch
from matplotlib.figure import Figure

from inscape._core import NotApplicable, Result
from inscape.figures import caption, draw, has_figure, rendered, save_figure
from inscape.figures.style import CATEGORIES, FAINT, RULE
from inscape.smoothness import (
    GradientNorm,
    GradientPathLength,
    PathLength,
    SlopeVariation,
    TotalVariation,
    WeightsProduct,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Undrawn(Result):
    number: int = 1

    def rows(self) -> Iterator[dict[str, int]]:
        yield {"number": self.number}


def results() -> dict[str, Result]:
    rng = torch.Generator().manual_seed(0)
    values = torch.rand(60, generator=rng)
    at = torch.linspace(-1, 1, 9, dtype=torch.float64)
    curve = torch.stack([at.abs(), at.sin(), at**3], dim=1)
    return {
        "gradient_norm": GradientNorm(norms=values, outputs=1, seed=0),
        "path_length": PathLength(
            lengths=values + 0.5, distances=values, knots=10, outputs=1, seed=0
        ),
        "gradient_path_length": GradientPathLength(lengths=values, knots=10, outputs=2, seed=0),
        "weights_product": WeightsProduct(terms=values[:5], outputs=1),
        "total_variation": TotalVariation(at=at, values=curve, exact=True),
        "slope_variation": SlopeVariation(at=at, slopes=curve[1:], exact=True),
        "not_applicable": NotApplicable(what="weights_product", reason="it has three layers"),
    }


CASES = results()
DRAWN = pytest.mark.parametrize("result", CASES.values(), ids=CASES)


@DRAWN
def test_figure_is_drawn_on_the_given_axes_which_come_back(result):
    ax = Figure().add_subplot()
    assert draw(result, ax) is ax
    assert ax.has_data() or ax.texts


@DRAWN
@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png"])
def test_same_result_gives_the_same_file(result, suffix, tmp_path):
    first = save_figure(draw(result), tmp_path / f"a{suffix}").read_bytes()
    second = save_figure(draw(result), tmp_path / f"b{suffix}").read_bytes()
    assert first == second
    assert len(first) > 500


@DRAWN
def test_paper_is_clear_and_colours_are_those_that_everybody_can_tell_apart(result):
    svg = rendered(draw(result)).decode()
    known = {colour.lower() for colour in (*CATEGORIES, FAINT, RULE)}
    assert set(re.findall(r"#[0-9a-f]{6}\b", svg)) <= known
    assert "dc:date" not in svg


def test_settings_of_the_user_come_back():
    with matplotlib.rc_context({"font.size": 33, "svg.hashsalt": "mine"}):
        save = rendered(draw(CASES["gradient_norm"]))
        assert matplotlib.rcParams["font.size"] == 33
        assert matplotlib.rcParams["svg.hashsalt"] == "mine"
    assert save == rendered(draw(CASES["gradient_norm"]))


def test_pyplot_is_never_loaded():
    code = (
        "import sys, torch, inscape.figures as f; from inscape.smoothness import GradientNorm;"
        "f.rendered(f.draw(GradientNorm(norms=torch.ones(3), outputs=1, seed=0)));"
        "print('matplotlib.pyplot' in sys.modules, 'matplotlib.axes' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_result_draws_itself_and_saves_its_picture(tmp_path):
    result = CASES["path_length"]
    assert result.plot().get_xlabel() == draw(result).get_xlabel()
    assert result.save(tmp_path / "a.svg").read_bytes() == rendered(draw(result))


def test_result_without_a_figure_says_so():
    assert not has_figure(Undrawn())
    assert has_figure(CASES["gradient_norm"])
    with pytest.raises(TypeError, match=r"needs a result with a figure, found Undrawn: use \.to_"):
        draw(Undrawn())


def test_other_suffixes_are_refused(tmp_path):
    ax = draw(CASES["gradient_norm"])
    with pytest.raises(ValueError, match=r"one of \.svg, \.pdf, \.png, found '\.jpg': rename"):
        save_figure(ax, tmp_path / "a.jpg")
    assert not list(tmp_path.iterdir())


def test_removed_axes_are_refused():
    ax = draw(CASES["gradient_norm"])
    ax.remove()
    with pytest.raises(ValueError, match="must belong to a figure, found removed axes"):
        rendered(ax)


def test_caption_says_what_is_seen():
    assert (
        caption(CASES["gradient_norm"])
        == "How the norm of the gradient is distributed over the points."
    )
