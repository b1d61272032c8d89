"""The papers in the explorer: the numbers of the reproduction page, and its figures."""

from pathlib import Path

import pytest

from inscape._core.anytime import finished
from inscape.explorer.paper_pages import (
    DARK,
    ItemRequest,
    PaperFigureRequest,
    PaperPages,
    PaperRequest,
    on_dark_paper,
)
from inscape.figures.style import INK
from inscape.lab.experiment_outcome import stored_outcome
from inscape.lab.store import Store

REQUEST = PaperFigureRequest(paper="klindt", item="figure-12")
RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def pages():
    return PaperPages(RESULTS)


def test_all_five_papers_are_there(pages):
    about = pages.about()
    names = [paper["name"] for paper in about["papers"]]
    assert names == ["courtois", "goldblum", "klindt", "sattelberg", "volhejn"]
    assert about["records"]
    assert not PaperPages(Path("no-records")).about()["records"]
    facts, _ = finished(pages.paper(PaperRequest(paper="sattelberg")))
    run = {item["item"] for item in facts["items"] if item["run"]}
    assert {"table-3.1", "figure-3.5"} <= run


def test_an_item_has_the_verdicts_of_its_records(pages):
    facts, _ = finished(pages.item(ItemRequest(paper="klindt", item="figure-12")))
    outcome = stored_outcome("klindt/figure-12", Store(RESULTS, mends=False))
    verdicts = [judgement.verdict for judgement in outcome.counted]
    assert dict(map(tuple, facts["tally"])) == {name: verdicts.count(name) for name in verdicts}
    assert facts["scale"] == "paper"
    says = {claim["says"] for claim in facts["claims"]}
    assert says <= {judgement.claim.says for judgement in outcome.judgements}
    assert not any("<" in claim["interval"] for claim in facts["claims"])


def test_a_figure_is_drawn_for_light_and_for_dark_paper(pages):
    light, dark = (
        bytes(finished(pages.figure(REQUEST.model_copy(update={"dark": dark})))[1]["file"]).decode()
        for dark in (False, True)
    )  # fmt: skip
    assert light.lstrip().startswith("<?xml") or light.lstrip().startswith("<svg")
    assert DARK[INK] in dark
    assert DARK[INK] not in light
    assert "<script" not in light


def test_a_figure_is_drawn_as_pdf_and_png(pages):
    for format, magic in (("pdf", b"%PDF"), ("png", b"\x89PNG")):
        asked = REQUEST.model_copy(update={"format": format, "dark": True})
        facts, arrays = finished(pages.figure(asked))
        assert facts["drawn"]
        assert bytes(arrays["file"]).startswith(magic)


def test_letters_without_a_colour_are_light_on_dark_paper():
    assert on_dark_paper("<svg><defs></defs><text>a</text></svg>") == (
        f"<svg><defs><style>text{{fill:{DARK[INK]}}}</style></defs><text>a</text></svg>"
    )


def test_only_names_of_the_catalogue_are_looked_up(pages):
    with pytest.raises(ValueError, match="must be one of courtois"):
        finished(pages.paper(PaperRequest(paper="etc")))
    for item in ("table-99", "..", "figure-12.json"):
        with pytest.raises(ValueError, match=r"no experiment is called|pattern"):
            finished(pages.item(ItemRequest(paper="klindt", item=item)))
