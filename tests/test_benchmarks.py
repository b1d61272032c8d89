"""The lines in which benchmarks report bars, and the page that collects them."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def bars(monkeypatch):
    return imported("bars", monkeypatch)


@pytest.fixture
def run(monkeypatch, bars):
    return imported("run", monkeypatch)


def imported(name, monkeypatch):
    """Import a file of the benchmarks as they do, and forget it afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module(name)
    monkeypatch.setitem(sys.modules, name, module)
    return module


@pytest.mark.parametrize(
    ("limits", "met", "line"),
    [
        ({"at_least": 1.3}, True, "bar | a kernel | 1.3 x | at least 1.3 x | met\n"),
        ({"at_least": 1.31}, False, "bar | a kernel | 1.3 x | at least 1.31 x | MISSED\n"),
        ({"at_most": 2, "unit": "s"}, True, "bar | a kernel | 1.3 s | at most 2 s | met\n"),
        ({"at_most": 0, "unit": "s"}, False, "bar | a kernel | 1.3 s | at most 0 s | MISSED\n"),
        ({"at_least": 1, "at_most": 2}, True,
         "bar | a kernel | 1.3 x | at least 1 x and at most 2 x | met\n"),
        ({}, True, "bar | a kernel | 1.3 x | - | -\n"),
    ],
)  # fmt: skip
def test_a_bar_is_one_line(bars, capsys, limits, met, line):
    assert bars.bar("a kernel", 1.3, **limits) is met
    assert capsys.readouterr().out == line


def test_a_value_that_is_no_number_misses_its_bar(bars, capsys):
    assert not bars.bar("a kernel", float("nan"), at_least=1)
    assert capsys.readouterr().out.endswith("| MISSED\n")


def test_a_name_that_would_break_the_table_is_refused(bars):
    with pytest.raises(ValueError, match=r"a name without '\|' was expected, got 'a \| b'"):
        bars.bar("a | b", 1.0)


def test_works_are_timed_in_turn_and_medians_returned(bars, monkeypatch):
    clock, order = [0.0], []
    costs = {"peer": iter([9, 5, 7, 100]), "ours": iter([9, 2, 1, 3])}
    monkeypatch.setattr(bars.time, "perf_counter", lambda: clock[0])

    def work(name):
        order.append(name)
        clock[0] += next(costs[name])

    taken = bars.times(3, 1, peer=lambda: work("peer"), ours=lambda: work("ours"))
    assert taken == {"peer": 7, "ours": 2}  # the first of each, 9, is not counted
    assert order == ["ours", "peer", "peer", "ours", "ours", "peer", "peer", "ours"]


def test_the_page_has_a_row_for_each_bar_and_says_what_failed(run, monkeypatch, tmp_path, capsys):
    for name, text in {
        "good": "print('beside'); bar('a', 2, at_least=1); bar('b', 1, at_least=3)",
        "bad": "bar('c', 2); raise SystemExit(4)",
        "silent": "pass",
        "look": "raise SystemExit('only with --look')",
    }.items():
        text = f"from bars import bar\nif __name__ == '__main__':\n    {text}\n"
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "helper.py").write_text("raise SystemExit('no benchmark')\n")
    (tmp_path / "bars.py").write_text((FOLDER / "bars.py").read_text())
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    monkeypatch.setattr(run, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(sys, "argv", ["run.py"])
    assert run.main() == 1
    page = run.RESULTS.read_text()
    assert "| good | a | 2 x | at least 1 x | met |" in page
    assert "| good | b | 1 x | at least 3 x | MISSED |" in page
    assert "| bad | c | 2 x | - | - |" in page
    assert "| bad | ended with exit code 4 after" in page
    assert "| silent | reported no bar | - | - | FAILED |" in page
    assert "- bars: 1 met, 1 missed" in page
    assert "look" not in page
    assert "helper" not in page
    assert "| benchmark | date | commit | processor | seconds | load | machine |" in page
    assert "beside" in capsys.readouterr().out


def test_a_benchmark_ends_with_its_processor_time_not_with_the_clock(run, monkeypatch, tmp_path):
    text = "if '__main__':\n    while True: pass\n"
    (tmp_path / "endless.py").write_text(text)
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    monkeypatch.setattr(run, "LIMIT", 1)
    report = run.measured("endless", [])
    assert report.failed
    assert 0.9 < float(report.run[3]) < 4


def test_one_benchmark_alone_replaces_its_own_rows(run, monkeypatch, tmp_path):
    text = "if '__main__': print('bar | {} | 2 x | at least 1 x | met')\n"
    (tmp_path / "good.py").write_text(text.format("a"))
    (tmp_path / "other.py").write_text(text.format("b"))
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    monkeypatch.setattr(run, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(sys, "argv", ["run.py"])
    assert run.main() == 0
    (tmp_path / "good.py").write_text(text.format("c"))
    monkeypatch.setattr(sys, "argv", ["run.py", "good"])
    assert run.main() == 0
    page = run.RESULTS.read_text()
    assert [row[:2] for row in run.rows(page, run.BARS)] == [("good", "c"), ("other", "b")]
    assert [row[0] for row in run.rows(page, run.RUNS)] == ["good", "other"]
    assert "- bars: 2 met, 0 missed" in page
    assert "- not run yet: none" in page


def test_rows_of_a_benchmark_that_is_gone_go_with_it(run):
    report = run.Report("new", (("new", "a", "2 x", "-", "-"),), ("new", *["1"] * 6))
    before = run.merged("", run.Report("old", (("old", "b", "2 x", "-", "-"),), ("old", *"123456")),
                        ["old"])  # fmt: skip
    page = run.merged(before, report, ["new", "later"])
    assert "| old |" not in page
    assert "- not run yet: later" in page


def test_an_unknown_benchmark_is_refused_by_name(run, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run.py", "ensembel"])
    with pytest.raises(SystemExit):
        run.main()
    assert "found ensembel" in capsys.readouterr().err


RUN = {
    "network": "a", "budget": 60.0, "busy": 0, "whole": 61.24, "peak": 2.5e8, "date": "today",
    "load": "1.0 to 1.1", "machine": "a processor", "findings": ["It is flat."], "left_out": ["c"],
    "no_baselines": ["b"],
    "measurements": {
        "b": [{"value": 1.5, "low": 1.0, "high": 2.0, "kind": "estimate"}, "complete"],
        "d": [None, "complete"],
    },
}  # fmt: skip


def test_looks_are_written_with_times_findings_and_intervals(monkeypatch):
    results = imported("look_results", monkeypatch)
    wide = {"b": [{"value": 1.4, "low": 0.5, "high": 3.0, "kind": "estimate"}, "3 answers"]}
    page = results.page([RUN, {**RUN, "budget": 10.0, "measurements": wide, "findings": []}])
    assert "| a | 60 | - | 61.2 | 250 | 2 of 3 | c | b | today, 1.0 to 1.1 |" in page
    assert "**a**\n\n- It is flat." in page
    assert "| 61.2 of processor time |" in results.page([{**RUN, "clock": "processor"}])
    assert "| network | instrument | 10 s | 60 s |" in page
    assert "| a | b | 1.4 [0.5, 3] (estimate) | 1.5 [1, 2] (estimate) |" in page
    assert "| a | d | - | no single number |" in page
