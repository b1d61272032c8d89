import base64
import errno
import html
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from PIL import Image

from inscape._core import Result, Summary, instruments
from inscape.figures import rendered
from inscape.figures.style import new_axes
from inscape.report.html import LIMIT, csv_text, table
from inscape.report.look import page as page_module
from inscape.report.look.directions import by_question, direction
from inscape.report.look.finding import Finding
from inscape.report.look.page import page
from inscape.report.look.parts import LeftOut, Skipped
from inscape.report.look.tasks import said
from inscape.report.pictures import drawn
from inscape.report.words import number
from inscape.smoothness import GradientNorm, PathLength
from markup import Structure


@pytest.fixture(scope="module")
def written(seen) -> str:
    return page(seen)


@pytest.fixture(scope="module")
def parsed(written) -> Structure:
    return Structure(written)


def test_page_is_well_formed_with_unique_ids_and_links_that_end_somewhere(parsed):
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inner = [a["href"][1:] for a in parsed.all("a") if (a["href"] or "").startswith("#")]
    labels = [a["aria-labelledby"] for _, a in parsed.tags if "aria-labelledby" in a]
    assert inner
    assert labels
    assert set(inner) | set(labels) <= set(ids)


def test_page_needs_nothing_from_elsewhere_and_runs_nothing(written, parsed):
    tags = {tag for tag, _ in parsed.tags}
    assert not tags & {"script", "link", "iframe", "object", "embed", "base"}
    addresses = [
        value
        for tag, attributes in parsed.tags
        for key, value in attributes.items()
        if key in ("src", "href", "xlink:href", "action", "poster")
    ]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert "@import" not in written
    assert not re.search(r"url\((?!#)", written)
    assert not any(key.startswith("on") for _, attributes in parsed.tags for key in attributes)
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\s\"'<>]+", written)) <= namespaces
    policy = next(a["content"] for a in parsed.all("meta") if "http-equiv" in a)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def test_page_is_small(written, classified):
    assert len(written.encode()) < LIMIT / 2
    assert len(page(classified).encode()) < LIMIT / 2


def test_page_says_everything_that_was_found(seen, parsed):
    text = parsed.text
    for measured in seen.measurements:
        assert measured.meaning in text
        assert measured.command in text
        assert number(measured.summary.value) in text
        for reference in measured.references:
            assert (number(reference.value) if reference.value else reference.reason) in text
    for skipped in seen.not_applicable:
        assert skipped.reason in text
    assert "Does not apply" in text
    assert "Left out for time" not in text
    assert "Failed" not in text
    assert seen.command in text
    assert seen.provenance.date in text
    assert "95% interval" in text


def test_every_number_says_its_direction_its_work_and_how_to_repeat_it(seen):
    worked = replace(
        seen, measurements=tuple(replace(m, work="64 chords") for m in seen.measurements)
    )
    text = Structure(page(worked)).text
    for measured in seen.measurements:
        assert direction(measured.name).sentence in text
        assert direction(measured.name).short in text
    assert text.count("Work: 64 chords.") == len(seen.measurements)
    assert text.count("repeat:") == len(seen.measurements) + 1


def test_what_a_plain_reader_does_not_need_is_behind_a_click(seen, written):
    closed = "".join(re.findall(r"<details(?! [^>]*open)[^>]*>.*?</details>", written, re.DOTALL))
    for hidden in (seen.data.hash, "Settings:", '<th scope="col">module</th>', ".csv"):
        assert hidden in closed
        assert written.count(hidden) == closed.count(hidden)


def test_figures_are_drawn_once_however_large_the_page(seen, monkeypatch):
    calls = []
    real = page_module.figure
    monkeypatch.setattr(
        page_module, "figure", lambda *a, **more: calls.append(more["prefix"]) or real(*a, **more)
    )
    monkeypatch.setattr(page_module, "LIMIT", 1)
    page(seen)
    assert sorted(calls) == sorted(set(calls))


def test_shapes_with_many_corners_are_pixels():
    from inscape.figures.style import new_axes
    from inscape.report.pictures import CORNERS, drawn

    few, many = new_axes(), new_axes()
    few.scatter(range(5), range(5))
    many.scatter(range(CORNERS), range(CORNERS))
    assert "<image" not in drawn(few, prefix="a", label="few")
    pixels = drawn(many, prefix="a", label="many")
    assert "<image" in pixels
    assert "<text" in pixels  # words stay words
    assert len(pixels) < 200_000


def test_pictures_have_words_and_controls_have_names(parsed):
    for svg in parsed.all("svg"):
        assert svg.get("aria-label") or svg.get("aria-hidden") or svg.get("overflow")
    radios = parsed.all("input")
    assert {radio["id"] for radio in radios} == {label["for"] for label in parsed.all("label")}
    assert [radio["id"] for radio in radios if "checked" in radio] == ["theme-auto"]
    assert parsed.all("html") == [{"lang": "en"}]
    assert parsed.tags[[tag for tag, _ in parsed.tags].index("body") + 1][1]["href"] == "#main"


def test_style_follows_the_system_the_switch_and_the_printer(written):
    style = re.search(r"<style>(.*?)</style>", written, re.DOTALL)[1]
    assert style.count("{") == style.count("}")
    for rule in (
        "color-scheme: light dark",
        ":root:has(#theme-dark:checked) { color-scheme: dark; }",
        ":root:has(#theme-light:checked) { color-scheme: light; }",
        "@media print",
        ":focus-visible",
        "prefers-reduced-motion",
    ):
        assert rule in style
    used = set(re.findall(r"var\((--[\w-]+)\)", written))
    assert used <= set(re.findall(r"(--[\w-]+):", style))


def test_button_holds_the_data(seen, parsed):
    buttons = [a for a in parsed.all("a") if "download" in a]
    ordered = [measured for _, group in by_question(seen.measurements) for measured in group]
    assert [button["download"] for button in buttons] == [f"{m.name}.csv" for m in ordered]
    assert len(ordered) == len(seen.measurements)
    at = [measured.name for measured in ordered].index("gradient_norm")
    content = base64.b64decode(buttons[at]["href"].partition("base64,")[2])
    frame = pd.read_csv(io.BytesIO(content))
    pd.testing.assert_frame_equal(frame, ordered[at].result.to_frame(), rtol=1e-8)


def test_long_data_are_thinned_and_that_is_said(seen):
    norms = torch.arange(5001.0)
    result = GradientNorm(norms=norms, outputs=1, seed=0)
    every = list(result.rows())
    rows, note = table(every, 2000)
    assert [row["gradient_norm"] for row in rows] == norms[::3].tolist()
    assert note == "one in 3 of the 5,001 rows, to keep the page small"
    long = replace(seen, measurements=(replace(seen.measurements[0], result=result),))
    assert note in Structure(page(long)).text
    assert table(every, 5001) == (every, "")


def test_too_large_a_page_carries_fewer_rows(seen, monkeypatch):
    full = page(seen)
    monkeypatch.setattr(page_module, "LIMIT", len(full.encode()))
    smaller = page(seen)
    assert len(smaller) < len(full)
    assert "to keep the page small" in smaller


def test_many_samples_stay_within_the_limit(seen):
    rng = torch.Generator().manual_seed(0)
    lengths = torch.rand(20_000, generator=rng, dtype=torch.float64)
    many = PathLength(lengths=lengths + 1, distances=lengths, knots=9, outputs=1, seed=0)
    parts = tuple(replace(seen.measurements[2], name=f"path_{k}", result=many) for k in range(8))
    assert len(page(replace(seen, measurements=parts)).encode()) < LIMIT


def test_csv_of_numbers_words_and_nothing():
    assert csv_text([{"a": 1, "b": 1 / 3, "c": "x,y"}]) == 'a,b,c\n1,0.333333333,"x,y"\n'
    assert csv_text([]) == "\n"


@dataclass(frozen=True, eq=False, kw_only=True)
class Undrawn(Result):
    """A result that no figure and no number is known of."""

    answer: str = "<b>forty-two</b>"

    def rows(self) -> Iterator[dict[str, str | int]]:
        for k in range(30):
            yield {"k": k, "answer": self.answer}


def test_result_without_a_figure_falls_back_to_a_table(seen):
    part = replace(seen.measurements[0], result=Undrawn(), summary=None, references=())
    text = page(replace(seen, measurements=(part,)))
    result = Structure(text)
    assert "The first rows." in result.text
    assert result.text.count("<b>forty-two</b>") == 10 + 1
    assert "Beside its baselines" not in result.text


def test_names_from_outside_are_shown_as_text(seen):
    bad = "<script>alert(1)</script>"
    look = replace(
        seen,
        model=replace(seen.model, name=bad, source=bad, notes=(bad,)),
        data=replace(seen.data, name=bad, settings={bad: bad}),
        failed=(Skipped(name=bad, reason=bad),),
        left_out=(LeftOut(name=bad, part="references", seconds=3.0, command=bad),),
        command=bad,
    )
    text = page(look)
    assert "<script" not in text
    result = Structure(text)
    assert result.text.count(bad) >= 8
    assert "Left out for time" in result.text
    assert "<script" not in look._repr_html_()


def test_a_line_with_very_many_marks_is_pixels():
    from inscape.figures.style import new_axes
    from inscape.report.pictures import CORNERS, drawn

    few, many, plain = new_axes(), new_axes(), new_axes()
    few.plot(range(10), "|")
    many.plot(range(CORNERS), "|")
    plain.plot(range(CORNERS))
    shown = [drawn(ax, prefix="a", label="b") for ax in (few, many, plain)]
    assert ["data:image/png" in svg for svg in shown] == [False, True, False]


def test_a_linear_model_that_knows_the_measured_examples_says_so(seen, classified):
    assert "logistic regression fitted to these examples" in Structure(page(classified)).text
    assert "fitted to these examples" not in Structure(page(seen)).text


def test_value_without_bounds_is_told(seen):
    odd = replace(
        seen.measurements[0],
        summary=Summary(value=float("inf"), kind="upper bound", basis="a guess"),
    )
    text = Structure(page(replace(seen, measurements=(odd,)))).text
    assert "≤ upper bound" in text
    assert "∞" in text


def test_a_notebook_shows_the_page_in_a_frame(seen):
    text = seen._repr_html_()
    assert re.fullmatch(
        r'<iframe title="[^"]*" sandbox style="[^"]*" srcdoc="[^"]*"></iframe>', text
    )
    inside = html.unescape(re.search(r'srcdoc="([^"]*)"', text)[1])
    assert inside == page(seen)


def test_report_is_written_where_asked_and_can_be_written_again(seen, tmp_path, figures):
    path = tmp_path / "new" / "folder" / "report.html"
    assert seen.save(path) == path
    first = path.read_bytes()
    figures.clear()  # of the first pages: the same are drawn again
    assert seen.save(str(path)).read_bytes() == first
    assert list(path.parent.iterdir()) == [path]
    numbers = json.loads(seen.save(tmp_path / "a.json").read_text(encoding="utf-8"))
    assert numbers == json.loads(json.dumps(seen.to_dict()))


def test_other_suffixes_are_refused(seen, tmp_path):
    with pytest.raises(ValueError, match=r"must be named \.html or \.json, found '\.pdf': rename"):
        seen.save(tmp_path / "a.pdf")


def test_full_disk_leaves_the_old_report_and_no_pieces(seen, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(
        OSError,
        match=r"^the report could not be written to .*report\.html \(no "
        r"space left on device\): make room or choose another place",
    ):
        seen.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "old"


def test_folder_that_is_a_file_is_named(seen, tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(OSError, match=r"could not be written to .*b\.html \(.*\): make room or"):
        seen.save(tmp_path / "a" / "b.html")


def test_folder_under_the_name_of_the_report_is_named(seen, tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(IsADirectoryError, match=r"\(is a directory\): make room or choose"):
        seen.save(tmp_path / "a.html")
    assert [file.name for file in tmp_path.iterdir()] == ["a.html"]


def test_read_only_folder_is_named(seen, tmp_path, monkeypatch):
    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError, match=r"\(permission denied\): make room or choose"):
        seen.save(tmp_path / "a.html")


@pytest.mark.parametrize("which", ["seen", "classified"])
def test_errors_by_zone_stand_on_the_page_with_those_of_the_peers(which, request):
    look = request.getfixturevalue(which)
    (measured,) = (one for one in look.measurements if one.name == "extrapolation")
    text = page(replace(look, measurements=(measured,)))
    zones = text.split('<table class="zones">')[1].split("</table>")[0]
    cells = re.findall(r'<td class="num[^>]*>([^<]*)</td>', zones)
    rows = [*measured.result.by_zone()]
    models = len(measured.result.models)
    expected = []
    for start in range(0, len(rows), models):
        zone = rows[start : start + models]
        expected += [str(zone[0]["queries"]), *(number(row["error"]) for row in zone)]
    assert cells == expected
    result = "fraction of wrong answers" if which == "classified" else "mean squared error"
    assert result in zones
    assert ">gaussian process<" in zones


@pytest.mark.parametrize("guess", ["", "y holds -1 and 1: taken as regression"])
def test_a_guess_of_the_task_is_called_one(seen, guess):
    text = page(
        replace(seen, measurements=(), data=replace(seen.data, guess=guess, notes=(guess,)))
    )
    assert ('href="#notes">a guess</a>' in text) == bool(guess)
    assert 'id="notes"' in text


#: Words of our own for which the field has one (GLOSSARY.md), wherever a page could say them.
PRIVATE = re.compile(
    r"\b(bends?|bent|(linear|straight) (pieces?|ways?)|pieces? of|mosaic|shares?|in doubt|"
    r"along the way|chords|takes? for alike|detour|in all[.,])\b"
)


@pytest.mark.parametrize("section", ["scores", "model", "slice", "path_length", "robustness"])
def test_a_finding_links_to_its_section_if_the_page_has_it(seen, section):
    finding = Finding(rule="a rule", severity=90, text="This was found.", section=section)
    bare = replace(seen, slice=None)
    vars(bare)["findings"] = (finding,)  # robustness does not apply to a regression
    text = page(bare)
    linked = f'<a href="#{section}">This was found.</a>' in text
    assert linked == (f'id="{section}"' in text) == (section not in ("slice", "robustness"))
    assert "This was found." in text


def test_a_large_picture_in_a_figure_has_fewer_colours():
    ax = new_axes()
    ax.imshow(torch.rand(300, 300, 3, generator=torch.Generator().manual_seed(0)).numpy())
    whole, lighter = rendered(ax).decode(), drawn(ax, prefix="a", label="noise")
    assert len(lighter) < 0.6 * len(whole)
    coded = re.search(r'data:image/png;base64,([^"]+)', lighter)[1]
    with Image.open(io.BytesIO(base64.b64decode(coded))) as picture:
        assert picture.mode == "P"
        before = re.search(r'data:image/png;base64,([^"]+)', whole)[1]
        assert picture.size == Image.open(io.BytesIO(base64.b64decode(before))).size


def test_nothing_on_paper_is_cut_off_or_waits_for_a_scroll(written):
    printed = written[written.index("@media print") :]
    assert ".wide, .command, .definition .display { overflow: visible; }" in printed
    assert ".command span { white-space: normal; overflow-wrap: anywhere; }" in printed


@pytest.mark.parametrize("which", ["seen", "classified"])
def test_a_page_is_written_in_the_words_of_the_field(which, request):
    text = Structure(page(request.getfixturevalue(which))).text
    shown = re.sub(r"Definition, data and how to repeat it.*?repeat:", "", text, flags=re.DOTALL)
    assert not PRIVATE.findall(shown)


@pytest.mark.parametrize("name", sorted(instruments()))
def test_every_meaning_and_direction_is_written_in_the_words_of_the_field(name):
    said = instruments()[name].meaning
    assert not PRIVATE.findall(f"{said} {direction(name).sentence}")
    assert said.endswith(".")


@pytest.mark.parametrize(
    ("kind", "words"),
    [("exact", "is 7."), ("lower bound", "is at least 7."), ("upper bound", "most 7.")],
)
def test_the_sentence_of_a_bound_says_which_side_is_known(kind, words):
    summary = Summary(value=7.0, kind=kind, basis="")
    assert f"The number is {said(summary)}.".endswith(words)
