import re
from xml.etree import ElementTree

import torch

from inscape.report.pictures import COLOURS, figure, formula
from inscape.smoothness import GradientNorm

RESULT = GradientNorm(norms=torch.linspace(0, 1, 50), outputs=1, seed=0)


def test_figure_takes_colours_and_letters_from_the_page():
    svg = figure(RESULT, prefix="a", label='<Norms> & "more"')
    assert not re.findall(r"#[0-9a-f]{6}\b", svg)
    assert {"--blue", "--vermilion"} <= set(re.findall(r"var\((--\w+)\)", svg))
    assert "DejaVu" not in svg
    assert "font-size: 8.5px" in svg
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == '<Norms> & "more"'
    assert root.get("role") == "img"
    assert root.get("viewBox")
    assert root.get("width") is None


def test_ids_of_two_figures_do_not_meet_and_every_link_finds_its_end():
    svgs = [figure(RESULT, prefix=prefix, label="") for prefix in ("a", "b")]
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in svgs]
    assert ids[0]
    assert not ids[0] & ids[1]
    for svg, known in zip(svgs, ids, strict=True):
        links = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg)
        assert links
        assert {one or other for one, other in links} <= known


def test_same_result_gives_the_same_picture():
    assert figure(RESULT, prefix="a", label="") == figure(RESULT, prefix="a", label="")


def test_colours_are_looked_up_in_one_case():
    assert all(colour == colour.upper() for colour in COLOURS)


def test_formula_is_an_outline_in_the_colour_of_the_text():
    svg = formula(r"\tfrac{1}{n} \sum_i \lVert x_i \rVert")
    assert svg is not None
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == r"\tfrac{1}{n} \sum_i \lVert x_i \rVert"
    (path,) = root
    assert path.get("fill") == "currentColor"
    assert re.fullmatch(r"[MLQCZ0-9. -]+", path.get("d"))


def test_formula_that_cannot_be_read_is_none():
    assert formula(r"\unheardof{x}") is None
