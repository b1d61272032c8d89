"""The page of a paper: every number that was found is on it, and it needs nothing else."""

import base64
import io
import re
from dataclasses import replace

import pandas as pd
import pytest

import fake_paper
from inscape import figures
from inscape.lab import catalogue
from inscape.lab.catalogue import paper_facts, papers
from inscape.lab.experiment import Estimate, Experiment, Trend, Value
from inscape.lab.experiment_outcome import ExperimentOutcome, stored_outcome
from inscape.lab.statistics import mean_estimate
from inscape.lab.store import Store
from inscape.lab.verdict import RULE, judge
from inscape.report.html import LIMIT
from inscape.report.paper import page as paper_module
from inscape.report.paper import section as section_module
from inscape.report.paper.claims import claim, formula, interval, spread
from inscape.report.paper.claims import claims as claims_of
from inscape.report.paper.page import citation, page_of, paper_page, write_pages
from inscape.report.paper.section import csv_rows, kicker, section
from inscape.report.paper.table import tables
from markup import Structure

TABLE, FIGURE, COUNTING = fake_paper.IDS


@pytest.fixture
def store(tmp_path, monkeypatch):
    fake_paper.install(tmp_path / "papers", monkeypatch)
    store = Store(tmp_path / "results")
    fake_paper.fill(store, TABLE, "laptop")
    fake_paper.fill(store, TABLE, "paper", leave_out=3)
    fake_paper.fill(store, COUNTING, "laptop")
    return store


@pytest.fixture
def written(store):
    return paper_page("fake", store)


@pytest.fixture
def parsed(written):
    return Structure(written)


def test_page_is_well_formed_and_its_links_end_somewhere(parsed):
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inner = [a["href"][1:] for a in parsed.all("a") if (a["href"] or "").startswith("#")]
    labels = [a["aria-labelledby"] for _, a in parsed.tags if "aria-labelledby" in a]
    assert set(inner) | set(labels) <= set(ids)
    assert {"table-1.1", "figure-2", "counting"} <= set(inner)


def test_page_needs_nothing_from_elsewhere_and_runs_nothing(written, parsed):
    assert not {tag for tag, _ in parsed.tags} & {"script", "link", "iframe", "object", "base"}
    addresses = [
        value
        for tag, attributes in parsed.tags
        for key, value in attributes.items()
        if key in ("src", "href", "xlink:href")
        if (tag, value) != ("a", "https://github.com/ada/sums/tree/0123456789abcdef")
    ]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert not any(key.startswith("on") for _, attributes in parsed.tags for key in attributes)
    assert len(written.encode()) < LIMIT / 10
    used = set(re.findall(r"var\((--[\w-]+)\)", written))
    assert used <= set(re.findall(r"(--[\w-]+):", written))


def test_citation_lead_and_rule(parsed):
    text = parsed.text
    assert "On <small> & large numbers" in text
    assert "Ada Adder, Carl Counter. Journal of Sums 2020." in text
    assert "0 of 2 tables and figures with claims have all of them reproduced." in text
    counted = "3 reproduced, 1 not reproduced, 1 inconclusive and 2 not run"
    assert f"Of 7 claims of the paper: {counted}." in text
    assert "From records at scale laptop." in text
    assert RULE in text
    assert "inscape reproduce fake" in text


def test_the_bars_have_words_and_shares(parsed):
    items, claims = [a for _, a in parsed.tags if a.get("class") == "tally"]
    counted = "each by its weakest claim: 1 not reproduced, 1 inconclusive"
    assert items["aria-label"] == f"Tables and figures, {counted}"
    assert claims["aria-label"].endswith(
        ": 3 reproduced, 1 not reproduced, 1 inconclusive, 2 not run"
    )
    shares = [a["style"] for _, a in parsed.tags if (a.get("style") or "").startswith("flex")]
    assert shares[2:] == ["flex-grow:3", "flex-grow:1", "flex-grow:1", "flex-grow:2"]


def test_table_in_the_form_of_the_paper(written, parsed):
    (table,) = re.findall(r'<table class="printed">.*?</table>', written, re.DOTALL)
    rows = [
        " ".join(" ".join(Structure(row).words).split())
        for row in re.findall(r"<tr>.*?</tr>", table, re.S)
    ]
    assert rows[0] == "mean"
    assert rows[1] == "size 1 1.1 0.852 to 1.35 paper 1.12 ± 0.02"
    assert rows[2] == "size 2 2.1 1.85 to 2.35 paper 2.5"
    assert rows[3] == "size 3 3.1 2.85 to 3.35 paper 3.1 printed 3.15"
    assert re.findall(r'role="img" aria-label="([^"]+)"', table) == [
        "reproduced",
        "inconclusive",
        "same trend",
        "reproduced",
    ]
    assert "Each cell: our number with its mark, its 95% interval, and the published" in parsed.text
    assert "Paper: table 1.1." in parsed.text


def test_claims_with_test_estimate_verdict_and_reason(parsed):
    text = parsed.text
    assert (
        "Sums grow. reproduced 2.01 1.99 to 2.03 2.01, interval 1.985 to 2.035, all above 0."
        in (text)
    )
    assert "Test: above 0; t interval. Interval: t interval over 3 values." in text
    assert "It is huge. not run The records give no 'size'." in text
    assert "not reproduced 1 exact 1, exact, not above 5." in text
    assert "Test: published 1.12, standard error 0.02, tolerance 0.5." in text
    assert "from both intervals) lies within the margin of 0.5" in text
    assert "Claims about other scales (1), not judged here" in text
    assert "The mean at size 3 is 3.15. Scale paper; published 3.15, tolerance 0.01." in text


def test_departures_errata_notes_conclusions_and_facts(parsed):
    text = parsed.text
    assert "Three seeds instead of four." in text
    assert "F1 , eq 1: a factor 2 is missing. Correct: 2x (by algebra) ." in text
    assert "unrelated" not in text
    assert "Numbers are <not> random." in text
    assert "There are 9 sums." in text
    assert "scale laptop · records 9 · time 4 min 30 s in all cells together · torch 2.13.0" in text
    assert "All 9 cells of scale laptop; 9 of 12 cells at scale paper so far." in text
    assert "inscape reproduce fake/table-1.1 --scale laptop" in text


def test_every_entry_of_the_paper_and_what_is_beyond(parsed):
    titles = [a["id"] for tag, a in parsed.tags if tag == "section" and "id" in a]
    assert titles == ["table-1.1", "figure-2", "counting"]
    assert [a["id"] for tag, a in parsed.tags if tag == "li" and "id" in a] == ["theorem-3"]
    assert "No experiment is about these entries yet." in parsed.text
    assert "Beyond the paper" in parsed.text


def test_figure_is_drawn_from_records_with_words_and_the_colours_of_the_page(written, parsed):
    (plot,) = [a for a in parsed.all("svg") if a.get("class") == "plot"]
    assert plot["aria-label"] == "Figure 2: A line. The line goes up."
    svg = re.search(r'<svg [^>]*class="plot".*?</svg>', written, re.DOTALL)[0]
    assert "var(--blue)" in svg
    assert ">size</text>" in svg
    assert "Redrawn from our records at scale laptop. The paper: The line goes up." in parsed.text
    assert "runs of fake/table-1.1" in parsed.text


def test_large_figures_become_pixels_with_the_same_words(store, monkeypatch):
    monkeypatch.setattr(paper_module, "FIGURES", (10,))
    parsed = Structure(paper_page("fake", store))
    (image,) = parsed.all("img")
    assert image["alt"] == "Figure 2: A line. The line goes up."
    content = base64.b64decode(image["src"].removeprefix("data:image/png;base64,"))
    assert content.startswith(b"\x89PNG")


def test_too_large_a_page_shows_pixels(store, written, monkeypatch):
    assert "<img" not in written
    monkeypatch.setattr(paper_module, "LIMIT", len(written.encode()))
    drawn = []
    monkeypatch.setattr(
        section_module, "rendered", lambda ax: drawn.append(ax) or figures.rendered(ax)
    )
    assert "<img" in paper_page("fake", store)
    assert len(drawn) == 1  # not once more for each limit


def test_button_holds_the_quantities(parsed):
    buttons = {a["download"]: a["href"] for a in parsed.all("a") if "download" in a}
    assert list(buttons) == ["fake-table-1.1.csv", "fake-counting.csv"]
    content = base64.b64decode(buttons["fake-table-1.1.csv"].partition("base64,")[2])
    frame = pd.read_csv(io.BytesIO(content)).set_index("claim")
    assert list(frame.quantity) == ["mean/1", "mean/2", "mean/3", "mean/3", "growth"]
    assert frame.value["mean-2"] == pytest.approx(2.1)
    assert frame.published["mean-2"] == 2.5
    assert frame.published_se["mean-1"] == 0.02
    assert frame.verdict["mean-2"] == "inconclusive"
    assert frame.same_trend["mean-2"] in (True, "True")
    assert frame.n["grows"] == 3


def test_a_paper_that_was_not_run(tmp_path, monkeypatch):
    fake_paper.install(tmp_path / "papers", monkeypatch)
    store = Store(tmp_path / "results")
    fake_paper.fill(store, TABLE, "smoke")
    text = Structure(paper_page("fake", store)).text
    assert "Of 7 claims of the paper: 7 not run." in text
    assert "Not run yet." in text
    assert text.count("there are 0 of 12 cells at paper and 0 of 9 cells at laptop.") == 1
    smoke = Structure(paper_page("fake", store, "smoke")).text
    assert "All 2 cells of scale smoke: they only show that the code runs. No verdict." in smoke
    assert "Of 7 claims of the paper: 7 not run" in smoke


def test_the_largest_whole_scale_is_named(store):
    fake_paper.fill(store, TABLE, "paper")
    text = Structure(paper_page("fake", store)).text
    assert (
        "All 12 cells of scale paper, the largest that is complete (laptop is there, too)." in text
    )
    assert "From records at scale paper and laptop" in text


def test_changed_claims_are_confessed(store):
    path = next(store.folder(TABLE, "laptop").glob("*.json"))
    fake_paper.under_claims(path, {"grows": "another"})
    assert "1 records were made under another text of 'grows'" in (
        Structure(paper_page("fake", store)).text
    )


def test_pages_and_their_index(store, tmp_path):
    out = tmp_path / "reports"
    assert write_pages(store, out) == [out / "index.html", out / "fake.html"]
    index = Structure((out / "index.html").read_text())
    assert "fake.html" in [a["href"] for a in index.all("a")]
    assert "Of 7 claims of the paper: 3 reproduced" in index.text
    assert (out / "fake.html").read_text() == paper_page("fake", store)
    assert not list(out.glob(".*"))


def test_same_records_give_the_same_page(store, written):
    assert paper_page("fake", Store(store.root)) == written


def test_an_unknown_paper(store):
    with pytest.raises(ValueError, match=r"no paper is called 'fak': did you mean fake\?"):
        paper_page("fak", store)


def test_small_words():
    assert kicker({"id": "table-4.1", "section": "4.3.1"}) == "Table 4.1, section 4.3.1"
    assert kicker({"id": "figure-1", "section": "Introduction"}) == "Figure 1, Introduction"
    assert kicker({"id": "figure-1"}) == "Figure 1"
    nan, inf = float("nan"), float("inf")
    assert interval(Estimate(value=nan, low=nan, high=nan, se=nan, n=2)) == "no number"
    assert interval(Estimate(value=1.0, low=-inf, high=inf, se=inf, n=1)) == "no interval"
    assert interval(Estimate(value=1.0, low=1.0, high=1.0, se=0.0, n=10)) == "no interval"
    sets = Estimate(value=1.0, low=1.0, high=1.0, se=0.0, n=10, interval="resampled")
    assert interval(sets) == "1 to 1"
    assert interval(Estimate(value=1.0, low=0.5, high=9e6, se=1.0, n=10)) == "0.5 or more"


def estimate(value, *, se=0.1, n=4, method="t interval over 4 values", interval="t"):
    return Estimate(
        value=value, low=value - 0.2, high=value + 0.2, se=se, n=n, method=method, interval=interval
    )


def value(at, published, of, **more):
    known = {"source": "printed table", "published_se": 0.1} | more
    name = " ".join((*at, *known.get("scales", ())))
    return Value(name=name, says="A number.", of=of, published=published, at=at, **known)


def finding_of(claims, quantities, scale="laptop"):
    axes = {"size": [1, 2]}
    experiment = Experiment(
        shows="Table 1.1", title="T", laptop=axes, cell=dict, claims=tuple(claims)
    )
    judged = tuple(judge(experiment, quantities, scale))
    return ExperimentOutcome(
        id=TABLE, experiment=experiment, scale=scale, quantities=quantities, judgements=judged
    )


def test_numbers_that_the_paper_does_not_print_are_called_raw(store):
    source = "the thesis' raw results on equal sizes"
    raw = value(("GN", "tau"), 0.5344, "tau/GN", source=source, origin="raw data")
    also = value(("PL", "tau"), 0.7, "tau/PL", source="printed number; error from raw results")
    result = finding_of([raw, also], {"tau/GN": estimate(0.5123456), "tau/PL": estimate(0.7)})
    written = page_of("fake", [result], command="inscape reproduce fake/table-1.1")
    text = Structure(written).text
    assert "0.512 ± 0.1 0.312 to 0.712 raw 0.53 ± 0.1" in text
    assert "paper 0.7 ± 0.1" in text
    assert "Raw: the thesis' raw results on equal sizes." in text
    assert 'title="the thesis&#39; raw results on equal sizes"' in written


def test_printed_digits_and_spread_come_from_the_list_of_results():
    entry = {"columns": ["measure", "tau_mean", "tau_sd"], "rows": [["GN", 0.15, 0.3]]}
    (judged,) = finding_of([value(("GN", "tau"), 0.1514, "tau/GN")], {}).judgements
    shown = claim(judged, entry)
    assert (shown["published"], shown["printed_spread"]) == ("0.15", "0.3")
    assert shown["deviation"]
    bare = claim(judged, {})
    assert (bare["published"], bare["printed_spread"]) == ("0.1514", "0.1")  # its error instead
    assert not bare["deviation"]


def test_spreads_beside_a_printed_deviation_are_deviations_too(store):
    entry = {"columns": ["measure", "tau_mean", "tau_sd"], "rows": [["GN", 0.15, 0.3]]}
    raw = {"origin": "raw data", "published_n": 9, "scales": ("laptop",)}
    pair = [
        value(("GN", "tau"), 0.5344, "tau/GN", **raw),
        value(("GN", "tau"), 0.1514, "tau/GN", scales=("paper",)),
    ]
    (shown,) = claims_of(finding_of(pair, {"tau/GN": estimate(0.5)}), entry)
    assert (shown["published"], shown["printed_there"], shown["there"]) == ("0.53", "0.15", "0.3")
    assert (shown["spread"], shown["printed_spread"], shown["deviation"]) == ("0.2", "0.3", True)


def test_columns_of_numbers_are_a_table_and_a_lone_number_is_none(store):
    claims = [
        value(("GN", "tau"), 0.5, "tau/GN"),
        value(("PL", "tau"), 0.7, "tau/PL"),
        value(("GN", "1"), 1.0, "mean/GN/1"),
        value(("GN", "2"), 2.0, "mean/GN/2"),
        value(("lost", "of 180"), 23, "lost"),
    ]
    result = finding_of(claims, {one.of: estimate(one.published) for one in claims})
    made = section(result, {}, {}, 0)
    assert [(table.title, table.columns) for table in made.tables] == [
        ("", ("tau",)),
        ("Mean by size", ("1", "2")),
    ]
    assert [one["name"] for one in made.claims] == ["lost of 180"]
    assert len(made.values) == 4
    spreads = [table.cells[table.rows[0], table.columns[0]]["spread"] for table in made.tables]
    assert spreads == ["0.1", ""]


def test_what_shares_no_row_and_no_column_is_a_table_of_its_own(store):
    places = [("one", "size"), ("two", "size"), ("rates", "solved"), ("rates", "pruned")]
    claims = [value(at, 0.5, " ".join(at)) for at in places]
    result = finding_of(claims, {one.of: estimate(0.5) for one in claims})
    made = section(result, {}, {}, 0)
    assert [(table.rows, table.columns) for table in made.tables] == [
        (("one", "two"), ("size",)),
        (("rates",), ("solved", "pruned")),
    ]
    assert all(len(t.cells) == len(t.rows) * len(t.columns) for t in made.tables)  # none is empty
    joined = value(("one", "pruned"), 0.5, "more")
    whole = section(finding_of([*claims, joined], {"more": estimate(0.5)}), {}, {}, 0)
    assert [table.columns for table in whole.tables] == [("size", "solved", "pruned")]


def test_numbers_of_another_scale_have_ours_beside_them_without_a_verdict(store):
    claims = [
        value(("GN", "free"), 0.9, "free/GN", scales=("paper",)),
        value(("GN", "left"), 0.3, "left/GN"),
        value(("GN", "left"), 0.4, "left/GN", scales=("paper",)),
        value(("GN", "gone"), 0.4, "gone/GN", scales=("paper",)),
    ]
    entry = {
        "id": "table-1.1",
        "columns": ["measure", "free_mean", "lower_bound", "left_mean"],
        "rows": [["GN", 0.9, 1, 0.3]],
    }
    result = finding_of(claims, {"free/GN": estimate(0.8), "left/GN": estimate(0.31)})
    (table,) = section(result, entry, {}, 0).tables
    assert table.columns == ("free", "lower bound", "left")
    assert table.cells["GN", "free"]["verdict"] == "not compared"
    assert table.cells["GN", "free"]["ours"] == "0.8"
    assert table.cells["GN", "lower bound"] == {"given": "1"}
    assert table.cells["GN", "left"]["published"] == "0.3"
    assert "settings of scale paper" in table.notes[-1]


def test_quantities_beyond_the_table_stand_below_it(store):
    claims = [value(("GN", "tau"), 0.5, "tau/GN"), value(("PL", "tau"), 0.5, "tau/PL")]
    known = {name: estimate(0.5) for name in ("tau/GN", "tau/PL", "gap")}
    assert not section(finding_of(claims, known), {}, {}, 0).beyond
    more = finding_of(claims, {**known, "tau/fisher_rao/0.1": estimate(0.25)})
    assert section(more, {}, {}, 0).beyond == {
        "tau": (("fisher rao, 0.1", "0.25", "0.05 to 0.45"),)
    }
    text = Structure(page_of("fake", [more], command="x")).text
    assert "Beyond the printed table tau of ours 95% interval fisher rao" in text


def test_no_squared_error_beyond_the_table_has_a_negative_interval(store):
    kind = {"kind": "heavy-tailed", "published_se": 0.01}
    claims = [replace(value((row, "mse"), 0.3, f"mse/{row}"), **kind) for row in ("narrow", "wide")]
    tail = mean_estimate([0.01, 0.02, 0.01, 0.03, 1.5, 0.02])
    assert tail.low < 0
    known = dict.fromkeys(("mse/narrow", "mse/wide", "mse/fitted"), tail)
    outcome = finding_of(claims, known)
    ((_, ours, interval),) = section(outcome, {}, {}, 0).beyond["mse"]
    assert all(row["low"] > 0 for row in csv_rows(outcome) if row["claim"])
    assert ours == "0.265"
    assert not interval.startswith("\N{MINUS SIGN}")


def test_claims_are_counted_by_whose_they_are(store):
    origins = ("paper", "ours", "paper", "raw data", "ours")
    claims = [
        Trend(name=str(k), says="It grows.", of="a", side="above", origin=origin, source="ours")
        for k, origin in enumerate(origins)
    ]
    sure = replace(estimate(1.0), exact=True, interval="exact")
    text = Structure(page_of("fake", [finding_of(claims, {"a": sure})], command="x")).text
    assert "1 of 1 table or figure with claims has all of them reproduced." in text
    assert "Of 2 claims of the paper: 2 reproduced." in text
    assert "Of 1 number of its raw data: 1 reproduced." in text
    assert "Of 2 expectations of our own: 2 reproduced." in text
    assert "by chance alone" not in text  # exact numbers have no chance in them


def test_wrong_verdicts_by_chance_and_those_left_open_are_counted(store):
    claims = [
        Trend(name="up", says="It grows.", of="a", side="above"),
        Trend(name="left", says="It grows.", of="a", side="above", struck="it cannot fail."),
        Trend(name="sum", says="It adds.", of="a", side="above", by_construction="it adds."),
    ]
    many = replace(estimate(1.0), n=9)
    text = Structure(page_of("fake", [finding_of(claims, {"a": many})], command="x")).text
    assert "Of 3 claims of the paper: 1 reproduced, 1 no verdict and 1 by construction." in text
    assert "Of 1 verdicts with an interval at most 0.0 are expected to be wrong" in text
    assert "Where there is no verdict, the numbers alone would give 1 reproduced." in text
    assert "Struck out: it cannot fail." in text


def test_a_corrected_number_stands_beside_the_printed_one(store):
    claims = [
        value(("GN", "tau"), 0.64, "tau/GN", corrected=0.65, erratum="F1"),
        value(("PL", "tau"), 0.7, "tau/PL"),
    ]
    known = {"tau/GN": estimate(0.65), "tau/PL": estimate(0.7)}
    written = page_of("fake", [finding_of(claims, known)], command="x")
    assert "<s>0.64</s> 0.65 (F1)" in written


def test_an_empty_column_is_left_out(store):
    claims = [value(("GN", "tau"), 0.5, "tau/GN"), value(("PL", "tau"), 0.7, "tau/PL")]
    entry = {"id": "t", "columns": ["m", "tau_mean", "error"], "rows": [["other", 0.5, 0.1]]}
    known = {"tau/GN": estimate(0.5), "tau/PL": estimate(0.7)}
    (table,) = section(finding_of(claims, known), entry, {}, 0).tables
    assert table.columns == ("tau",)


def test_a_figure_of_other_records_confesses_their_departures(store):
    entry = {"id": "figure-2", "kind": "figure", "finding": "PL^(1) rises"}
    made = section(replace(stored_outcome(FIGURE, store), conclusions=("9 sums.",)), entry, {}, 10)
    assert made.departures == ("Three seeds instead of four.",)
    assert made.drawn == "Redrawn from our records at scale laptop."
    assert made.caption == "9 sums. The paper: PL<sup>(1)</sup> rises"
    assert made.conclusions == ()
    table = section(stored_outcome(FIGURE, store), {**entry, "kind": "table"}, {}, 10)
    assert table.drawn == "Drawn from our records at scale laptop; the paper has no such figure."


def test_a_page_about_own_settings_repeats_what_was_typed(store):
    typed = "inscape reproduce fake/table-1.1 --seeds 7 --measures a,b"
    text = Structure(page_of("fake", [stored_outcome(TABLE, store)], command=typed)).text
    assert text.count(typed) == 2
    assert "--scale laptop" not in text


def test_indices_and_exponents():
    assert formula("w_i^(1) in R^{h x d}") == "w<sub>i</sub><sup>(1)</sup> in R<sup>h x d</sup>"
    assert formula("x_{i+k} < init_scale") == "x<sub>i+k</sub> &lt; init_scale"


def test_only_a_mean_has_a_spread():
    assert spread(estimate(1.0)) == "0.2"
    assert spread(estimate(1.0), deviation=False) == "0.1"
    assert spread(estimate(1.0, interval="percentile")) == ""
    assert spread(estimate(1.0, se=0.0)) == ""
    resampled = estimate(1.0, interval="studentised")
    assert (spread(resampled), spread(replace(resampled, units=(0.9, 1.0, 1.1)))) == ("", "0.2")


def test_a_paper_with_an_address_is_linked(store, monkeypatch):
    assert citation("p", {})["url"] == ""
    more = {"url": "https://a.b/c", "related": {"The preprint": "https://a.b/d"}}
    code = {"repo": "owner/name", "commit": "0123456789abcdef"}
    paper = {**fake_paper.FACTS["paper"], **more}
    monkeypatch.setattr(
        paper_module, "paper_facts", lambda _: {**fake_paper.FACTS, "paper": paper, "code": code}
    )
    links = [a["href"] for a in Structure(paper_page("fake", store)).all("a")]
    assert {"https://a.b/c", "https://a.b/d"} <= set(links)
    assert "https://github.com/owner/name/tree/0123456789abcdef" in links


@pytest.mark.parametrize("paper", papers())
def test_the_page_of_every_paper_has_a_link_to_it(paper):
    facts = citation(paper, paper_facts(paper))
    links = [*filter(None, [facts["url"]]), *facts["related"].values()]
    assert links
    assert all(link.startswith("https://") for link in links)


def test_a_printed_column_with_claims_of_its_own_is_shown_once():
    shared = {"spread": "", "label": "ours", "source": "", "verdict": "not run"}
    cells = [{**shared, "at": ("Zero", name)} for name in ("loss_init", "loss_final")]
    entry = {
        "columns": ["init", "loss_init", "loss_init_se", "loss_final", "steps"],
        "rows": [["Zero", 2.3, 0.1, 2.3, 600]],
    }
    (shown,), alone = tables(cells, entry, catalogue.experiment("goldblum/table-2"))
    assert (shown.columns, alone) == (("steps", "loss_init", "loss_final"), [])
