"""``inscape.lab.reproduce``: records and verdicts in Python, as the command line has them."""

import inspect
import json
import re

import pytest

import fake_paper
import inscape.lab
from inscape.lab import plan_reproduction, reproduce, reproduction_plan
from inscape.lab.executors import SerialExecutor
from inscape.report.paper import save_pages

TABLE, FIGURE, COUNTING = fake_paper.IDS


@pytest.fixture(autouse=True)
def paper(tmp_path, monkeypatch):
    """Let there be one paper, run in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduction_plan, "available_cores", lambda: 1)
    return fake_paper.install(tmp_path / "papers", monkeypatch)


def test_verdicts_records_and_numbers():
    done = reproduce(TABLE)
    by_claim = {row["claim"]: row for row in done.verdicts}
    assert by_claim["mean-1"] == {
        "experiment": TABLE,
        "claim": "mean-1",
        "published": 1.12,
        "ours": pytest.approx(1.1),
        "low": pytest.approx(0.8515862),
        "high": pytest.approx(1.3484138),
        "verdict": "reproduced",
        "same trend": False,
        "reason": by_claim["mean-1"]["reason"],
    }
    assert by_claim["grows"]["published"] is None  # a trend has no published number
    assert by_claim["huge"]["ours"] is None
    assert done.counts == {"reproduced": 3, "inconclusive": 1, "not run": 1}
    assert len(done.records[TABLE]) == 9
    assert (done.computed, done.errors, done.scale) == (9, (), "laptop")
    assert done.command == f"inscape.lab.reproduce(['{TABLE}'], scale='laptop')"
    assert eval(done.command, {"inscape": inscape}).computed == 0  # all records are there


def test_the_same_as_on_the_command_line(capsys):
    from inscape.cli import app

    done = reproduce("fake", out="here")
    with pytest.raises(SystemExit) as end:
        app(["reproduce", "fake", "--json", "--quiet"])
    assert end.value.code == 3
    said = json.loads(capsys.readouterr().out)["experiments"]
    printed = {
        (told["experiment"], claim["name"]): claim["verdict"]
        for told in said
        for claim in told["claims"]
    }
    ours = {(row["experiment"], row["claim"]): row["verdict"] for row in done.verdicts}
    assert ours.items() <= printed.items()
    assert "not reproduced" in ours.values()


def test_repr_and_html_are_short():
    done = reproduce([TABLE, COUNTING])
    assert repr(done) == (
        "Reproduction(2 experiments at scale laptop; claims: 3 reproduced, "
        "1 not reproduced, 1 inconclusive, 1 not run)"
    )
    html = done._repr_html_()
    assert html.startswith("<p><b>Reproduction(2 experiments")
    assert html.count("<tr>") == 6  # the head and five of six claims
    frame = done.to_frame()
    assert list(frame["claim"])[-1] == "tall"


def test_cells_that_fail_are_named_and_stop_nothing():
    done = reproduce([COUNTING, TABLE], overrides={"seed": [0, 1, 99]})
    (error,) = done.errors
    assert "1 of 3 cells of fake/counting failed; the cell seed=99 said" in error
    assert list(done.records) == [TABLE]
    assert repr(done).endswith("; 1 failed)")
    (left,) = reproduce("fake", overrides={"size": [7]}).notices
    assert left == "fake/counting has no setting 'size': left unchanged"


def test_a_plan_runs_nothing_and_says_what_it_costs(tmp_path):
    planned = plan_reproduction("fake", seeds=2)
    rows = planned.forecast()
    assert [row["experiment"] for row in rows] == [COUNTING, FIGURE, TABLE, "all"]
    assert rows[1]["shows"] == TABLE
    total = rows[-1]
    assert (total["cells"], total["missing"]) == (8, 8)
    assert total["seconds"] == sum(row["seconds"] for row in rows[:-1])
    assert not (tmp_path / "results").exists()
    assert planned.run(quiet=True).computed == 8


def test_notices_are_told_at_once_and_kept():
    reproduce(TABLE)
    for file in list(reproduction_plan.Store("results").root.rglob("*.json")):
        fake_paper.under_claims(file, {"grows": "another"})
    result = []
    done = plan_reproduction(TABLE).run(notify=result.append)
    assert result == list(done.notices)
    assert result[0].endswith("another wording of the claims: claim grows changed after the run.")


def test_pages_from_a_reproduction(tmp_path):
    (page,) = save_pages(reproduce(TABLE, out=tmp_path / "out"))
    assert page == tmp_path / "out" / "fake.html"
    assert "Sums of &lt;small&gt; numbers" in page.read_text()
    (own,) = save_pages(reproduce(TABLE, out=tmp_path / "out", overrides={"shift": [1.0]}))
    assert own.name == "fake-own-settings.html"


def test_an_executor_of_ones_own():
    class Counting(SerialExecutor):
        tasks = 0

        def run(self, tasks, work):
            type(self).tasks += len(tasks)
            return super().run(tasks, work)

    assert reproduce(COUNTING, executor=Counting()).computed == Counting.tasks == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"ids": "fakes"}, "no experiment or paper is called 'fakes': did you mean fake"),
        ({"ids": TABLE, "jobs": 0}, "jobs must be at least 1, found 0"),
        ({"ids": TABLE, "seeds": 0}, "seeds must be at least 1, found 0"),
        ({"ids": TABLE, "only": "path_lenght"}, "no instrument or family is called 'path_lenght'"),
        ({"ids": TABLE, "data_dir": "nowhere"}, "must name a folder, found nowhere"),
    ],
    ids=str,
)
def test_what_cannot_be_run_is_refused_first(tmp_path, arguments, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        reproduce(**arguments)
    assert not (tmp_path / "results").exists()


def test_plan_and_run_take_the_same_arguments():
    both = [inspect.signature(function).parameters for function in (reproduce, plan_reproduction)]
    assert set(both[0]) - set(both[1]) == {"data_dir", "quiet"}
    assert set(both[1]) - set(both[0]) == {"command"}
