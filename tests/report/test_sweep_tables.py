"""Tables, columns, sentences and the page of a sweep: true, escaped, and in one form each."""

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest
import torch

from inscape._core.result import Summary
from inscape.models import mlp
from inscape.report.sweeps import Measurement, Sweep, sweep
from inscape.report.sweeps.columns import read_columns
from inscape.report.sweeps.figures import short_labels, small_multiples
from inscape.report.sweeps.latex import cell, escaped, latex_table
from inscape.report.sweeps.models import ListedModel
from inscape.report.sweeps.saving import csv_table
from inscape.report.sweeps.sentences import sentences
from inscape.report.sweeps.table import SweptModel

HOSTILE = '=cmd|"<script>alert(1)</script>"_{50%}\u202e'


def measured(model: str, value: float, width: float = 0.1, instrument: str = "gradient_norm"):
    summary = Summary(
        value=value, kind="estimate", basis="3 points", low=value - width, high=value + width
    )
    samples = np.array([value - 0.1, value, value + 0.1])
    return Measurement(
        model=model, instrument=instrument, family="smoothness", status="ok", summary=summary,
        samples=samples, sampling="seed 0", seconds=0.1,
    )  # fmt: skip


def made(names, values, **more) -> Sweep:
    """Return a sweep of given numbers; a value of None failed."""
    rows = [
        measured(name, value)
        if value is not None
        else Measurement(model=name, instrument="all", family="", status="failed: no luck")
        for name, value in zip(names, values, strict=True)
    ]
    models = tuple(SweptModel(name=name, source=f"{name}.pt") for name in names)
    return Sweep(
        models=models, measurements=tuple(rows), data="mnist", rows_measured=3, seed=0, **more
    )


def entries(*names: str) -> list[ListedModel]:
    return [ListedModel(name=name, source=f"/runs/{name}.pt", settings={}) for name in names]


@pytest.mark.parametrize(
    ("low", "value", "high", "kind", "text"),
    [
        (1.19, 1.23, 1.27, "estimate", r"$1.230 \pm 0.040$"),
        (1.2, 1.23, 1.28, "estimate", r"$1.230^{+0.050}_{-0.030}$"),
        (0.8, 0.9, 0.95, "upper bound", r"$\leq 0.90^{+0.05}_{-0.10}$"),
        (90, 100, 130, "estimate", r"$100^{+30}_{-10}$"),
        (1.1e-7, 1.2e-7, 1.3e-7, "estimate", r"$(1.20 \pm 0.10) \cdot 10^{-7}$"),
        (None, 103100.0, None, "exact", r"$1.031 \cdot 10^{5}$"),
        (None, 12.5, None, "lower bound", r"$\geq 12.5$"),
    ],
)
def test_numbers_in_latex_have_the_digits_of_their_interval(low, value, high, kind, text):
    summary = Summary(value=value, kind=kind, basis="", low=low, high=high)
    result = Measurement(model="a", instrument="b", family="c", status="ok", summary=summary)
    assert cell(result) == text
    assert cell(None) == "--"


def test_latex_is_balanced_and_no_name_is_a_command():
    table = latex_table(
        made([HOSTILE, r"\input{secrets}", "a&b\\\\", "fails"], [1.0, 2.0, 3.0, None])
    )
    lines = table.splitlines()
    assert lines[1:3] == [r"\begin{tabular}{lr}", r"\toprule"]
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    unescaped = re.sub(r"\\[{}&%$#_]", "", table.partition("\n")[2])
    assert unescaped.count("{") == unescaped.count("}")
    assert unescaped.count("$") % 2 == 0
    rows = [line for line in unescaped.splitlines() if line.endswith(r" \\")]
    assert len(rows) == 5
    assert all(row.count("&") == 1 for row in rows)
    assert "%" not in unescaped
    commands = set(re.findall(r"\\([a-z]+)", unescaped))
    assert commands <= {
        *("begin", "end", "toprule", "midrule", "bottomrule", "pm", "cdot"),
        *("textbackslash", "textbar", "textless", "textgreater", "textasciicircum"),
    }
    assert escaped("~^") == r"\textasciitilde{}\textasciicircum{}"


def test_latex_has_its_longer_side_downwards():
    wide = made(["a"], [1.0])
    more = tuple(measured("a", 1.0, instrument=name) for name in ("rugosity", "path_length"))
    both = Sweep(**{**vars(wide), "measurements": (*wide.measurements, *more)})
    assert r"Instrument & a \\" in latex_table(both)
    assert r"Model & Gradient norm \\" in latex_table(made(["a", "b"], [1.0, 2.0]))


def test_a_csv_has_no_formulas():
    text = csv_table(made([HOSTILE, "-b"], [1.0, 2.0], columns={"=k": {"-b": 2.0}}))
    rows = list(csv.reader(io.StringIO(text)))
    assert [row[0][0] for row in rows[1:]] == ["'", "'"]
    assert rows[0][-1] == "'=k"
    assert "\u202e" not in text
    assert rows[1][3] == "1.0"


def test_a_page_is_escaped_and_holds_everything(tmp_path):
    columns = {"<b>": {HOSTILE: 1, "b": 2, "c": 3, "d": 9}}
    names, values = [HOSTILE, "b", "c", "d", "fails"], [1.0, 2.0, 3.0, 5.0, None]
    result = made(names, values, columns=columns, command="inscape sweep x")
    page = result.save(tmp_path / "a.html").read_text()
    assert "<script" not in page
    assert "\u202e" not in page
    assert "<b>=" not in page
    assert 'id="gradient_norm"' in page
    assert "failed: no luck" in page
    assert "inscape</span> <span>sweep" in page
    assert page.count('class="plot"') == 3  # over models, forest, scatter
    assert len(page) < 2_000_000


@pytest.mark.parametrize("suffix", ["csv", "tex", "json", "html", "svg", "png", "pdf"])
def test_every_form_is_written_whole_and_alike(tmp_path, suffix):
    result = made(["a", "b", "c"], [1.0, 2.0, None])
    first, again = (result.save(tmp_path / f"{k}.{suffix}").read_bytes() for k in "ab")
    assert first == again
    assert len(first) > 100


def test_parquet_holds_the_frame(tmp_path):
    pytest.importorskip("pyarrow")
    result = made(["a", "b"], [1.0, 2.0])
    frame = pd.read_parquet(result.save(tmp_path / "a.parquet"))
    pd.testing.assert_frame_equal(frame, result.to_frame())


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must be named .html, .csv, .* found '.doc': rename"):
        made(["a"], [1.0]).save(tmp_path / "a.doc")


def test_sentences_say_what_failed_and_what_changes():
    result = made([*"abcdefghij", "lost"], [*map(float, range(1, 11)), None],
                 columns={"size": dict(zip("abcdefghij", range(10), strict=True))})  # fmt: skip
    texts = [sentence.text for sentence in sentences(result)]
    assert texts[0] == "1 of 11 models could not be opened or measured: lost."
    assert texts[1] == (
        "From a to j, 1 of 1 numbers change by more than their 95% interval; the gradient norm "
        "grows 10-fold."
    )
    assert texts[2].startswith(
        "Of 1 instruments, the gradient norm is most closely correlated with size:"
    )
    assert sentences(result)[0].warning


def test_a_correlation_that_is_not_clear_is_said():
    result = made(list("abcdef"), [1.0, 5.0, 2.0, 4.0, 3.0, 2.5],
                 columns={"k": dict(zip("abcdef", range(6), strict=True))})  # fmt: skip
    texts = [sentence.text for sentence in sentences(result)]
    assert any("None of 1 instruments is clearly correlated with k" in text for text in texts)


def test_columns_come_from_a_csv_by_name_file_or_path(tmp_path):
    path = tmp_path / "acc.csv"
    path.write_text("checkpoint,acc,who\na,91%,me\nb.pt,0.93,\n/runs/c.pt,0.95,you\nzz,1,\n")
    result = read_columns(path, entries("a", "b", "c", "d"))
    assert result.values == {"acc": {"a": 0.91, "b": 0.93, "c": 0.95}}
    assert result.notes == (
        f"{path} has no row for d: left out of its correlations",
        f"{path} has 1 rows about models that are not in this sweep: left out",
        f"{path} has no numbers in who: left out",
    )


def test_columns_come_from_frames_lists_and_dictionaries():
    named = entries("a", "b")
    frame = pd.DataFrame({"model": ["b", "a"], "acc": [0.2, 0.1]})
    assert read_columns(frame, named).values == {"acc": {"b": 0.2, "a": 0.1}}
    assert read_columns({"k": [1, 2]}, named).values == {"k": {"a": 1.0, "b": 2.0}}
    assert read_columns({"k": {"b": 2}}, named).values == {"k": {"b": 2.0}}
    assert read_columns(None, named).values == {}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"k": [1]}, "'k' must have a number for each of the 2 models, found 1: add"),
        ({"k": {"z": 1}}, "must name models of the sweep, found z: they are called a and b"),
        (3, "must be the path of a CSV, a data frame or a dictionary, found int"),
        ("gone.csv", "found gone.csv, which cannot be read .no such file"),
    ],
)
def test_columns_that_cannot_be_are_refused(source, said):
    with pytest.raises((ValueError, TypeError), match=said):
        read_columns(source, entries("a", "b"))


def test_a_csv_about_other_models_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("model,acc\nx,1\n")
    with pytest.raises(ValueError, match="must name the models, found 'x', none of which is one"):
        read_columns(tmp_path / "a.csv", entries("a", "b"))
    (tmp_path / "b.csv").write_text("model,acc\n")
    with pytest.raises(ValueError, match="a header and a row for each model, found no rows"):
        read_columns(tmp_path / "b.csv", entries("a"))


@pytest.mark.parametrize(
    ("names", "labels", "start"),
    [
        (["epoch-1", "epoch-12"], ["1", "12"], "epoch"),
        (["e10", "e12"], ["10", "12"], "e"),
        (["small_net", "small_big"], ["net", "big"], "small"),
        (["a", "ab"], ["a", "ab"], ""),
        (["only"], ["only"], ""),
    ],
)
def test_labels_leave_out_what_all_have(names, labels, start):
    assert short_labels(names) == (labels, start)


def test_the_figure_has_a_panel_for_each_measure_and_marks_what_is_missing():
    figure = small_multiples(made(["a", "b", "c"], [1.0, 2.0, None]))
    (ax,) = figure.axes
    assert ax.get_title(loc="left") == "gradient norm"
    assert sum(line.get_marker() == "x" for line in ax.lines) == 1
    assert len(small_multiples(made(["a"], [None])).axes) == 1


def test_ticks_of_numbers_that_are_close_are_told_apart():
    figure = small_multiples(made(["a", "b"], [2313.8, 2315.2]))
    figure.draw_without_rendering()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(labels) > 3
    assert len(set(labels)) == len(labels)


def test_a_notebook_shows_a_table_with_a_figure():
    shown = made([HOSTILE, "b"], [1.0, 2.0])._repr_html_()
    assert "<table" in shown
    assert "data:image/png;base64," in shown
    assert "<script" not in shown
    assert (
        repr(made(["a", "b"], [1.0, None])) == "Sweep(2 models x 1 instruments on mnist, 1 failed)"
    )


def test_a_plot_is_a_figure_that_pyplot_does_not_know():
    import matplotlib.pyplot as plt

    swept = sweep([mlp(2, 4, 1)], torch.randn(9, 2), only="gradient_norm", quiet=True)
    assert len(swept.plot().axes) == 1
    assert not plt.get_fignums()
