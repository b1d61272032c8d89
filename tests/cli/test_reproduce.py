"""``inscape reproduce`` runs what is missing, judges it, and says how it ended by its exit code."""

import errno
import json
import os
from pathlib import Path

import pytest

import fake_paper
from inscape.lab import executors, reproduction_plan
from inscape.lab.store import Store
from inscape.report import paper

TABLE, FIGURE, COUNTING = fake_paper.IDS


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Let there be one paper, run in this process."""
    monkeypatch.setattr(reproduction_plan, "available_cores", lambda: 1)
    return fake_paper.install(tmp_path / "papers", monkeypatch)


def lines(text):
    return [" ".join(line.split()) for line in text.splitlines()]


def test_verdicts_page_and_command(run, installed):
    done = run("reproduce", TABLE)
    assert done.exit_code == 0
    out = lines(done.stdout)
    assert out[0] == "item claim paper ours 95% interval verdict"
    assert "table-1.1 mean-1 1.12 1.1 0.852 to 1.35 reproduced" in out
    assert "table-1.1 mean-2 2.5 2.1 1.85 to 2.35 inconclusive, same trend" in out
    assert "table-1.1 grows above 0 2.01 1.99 to 2.03 reproduced" in out
    assert "table-1.1 huge above 0 not run" in out
    assert "table-1.1, huge: not run: the records give no 'size'." in out
    assert "table-1.1: There are 9 sums." in out
    assert not any("paper-3" in line for line in out)  # it is about another scale
    assert out[-1].startswith(
        "claims: 3 reproduced, 1 inconclusive and 1 not run; 9 cells computed"
    )
    assert lines(done.stderr) == [
        "1 experiment at scale laptop: 9 cells, 9 to compute, about 18 s with 1 at a time",
        "page: results/fake.html",
        "repeat: inscape reproduce fake/table-1.1",
    ]
    assert "Sums of &lt;small&gt; numbers" in Path("results/fake.html").read_text()


def test_the_same_command_again_computes_nothing(run, installed):
    run("reproduce", TABLE)
    before = {path: path.stat().st_mtime_ns for path in Path("results").rglob("*.json")}
    assert len(before) == 9
    again = run("reproduce", TABLE)
    assert "9 cells, 0 to compute: all records are there" in again.stderr
    assert "; 0 cells computed" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in before} == before
    next(iter(before)).unlink()
    assert "; 1 cell computed" in run("reproduce", TABLE).stdout
    assert "; 9 cells computed" in run("reproduce", TABLE, "--fresh").stdout


def test_a_claim_that_is_not_reproduced_ends_with_3(run, installed):
    done = run("reproduce", COUNTING)
    assert done.exit_code == 3
    assert "counting, tall: not reproduced: 1, exact, not above 5." in lines(done.stdout)
    assert "page: results/fake.html" in done.stderr


def test_a_whole_paper_runs_shared_cells_once(run, installed):
    done = run("reproduce", "fake", FIGURE)
    assert done.exit_code == 3
    assert "3 experiments at scale laptop: 11 cells, 11 to compute" in done.stderr
    assert "11 cells computed" in done.stdout
    assert len(list(Path("results").rglob("*.json"))) == 11


def test_smoke_gives_numbers_but_no_verdict(run, installed):
    done = run("reproduce", "fake", "--scale", "smoke")
    assert done.exit_code == 0
    out = lines(done.stdout)
    assert out[0] == "item quantity ours 95% interval n"
    assert "table-1.1 mean/2 2 no interval 1" in out
    assert "counting top 0 exact 1" in out
    assert "claims: 6 not run" in out[-1]
    assert "page: results/fake-smoke.html" in done.stderr
    assert "they only show that the code runs" in Path("results/fake-smoke.html").read_text()
    assert not Path("results/fake.html").exists()


def test_changed_settings_give_no_verdict_and_a_page_of_their_own(run, installed):
    done = run("reproduce", COUNTING, "--set", "seed=7,8")
    assert done.exit_code == 0
    assert "counting top 8 exact 1" in lines(done.stdout)
    assert "page: results/fake-own-settings.html" in done.stderr
    page = Path("results/fake-own-settings.html").read_text()
    assert "with changed settings: seed. No verdict." in page
    assert "Nobody runs this" not in page


def test_values_that_are_those_of_the_scale_are_no_change(run, installed):
    assert run("reproduce", COUNTING, "--seeds", 2).exit_code == 3
    assert run("reproduce", COUNTING, "--seeds", 3).exit_code == 0
    assert run("reproduce", TABLE, "--set", "shift=0").exit_code == 0
    assert "same trend" in run("reproduce", TABLE, "--set", "shift=0").stdout


def test_experiments_that_lack_a_setting_are_left_as_they_are(run, installed):
    done = run("reproduce", "fake", "--set", "size=7")
    assert "fake/counting has no setting 'size': left unchanged" in lines(done.stderr)
    assert "table-1.1 mean/7 7.1 6.85 to 7.35 3" in lines(
        run("reproduce", TABLE, "--set", "size=7").stdout
    )
    assert len(list(Path("results/fake/counting/laptop").glob("*.json"))) == 2
    assert len(list(Path("results/fake/table-1.1/laptop").glob("*.json"))) == 3


def test_a_damaged_record_and_a_damaged_index_are_said(run, installed):
    run("reproduce", TABLE)
    file = next(Path("results/fake/table-1.1/laptop").glob("*.json"))
    file.write_text("{")
    Path("results/index.sqlite").write_text("nonsense" * 200)
    said = lines(run("reproduce", TABLE).stderr)
    assert said.count("the index results/index.sqlite was damaged: it was made anew.") == 1
    about = f"the record {file} is not a whole JSON record: it was set aside as .corrupt and will"
    assert [line.startswith(about) for line in said].count(True) == 1
    assert "9 cells, 1 to compute" in " ".join(said)


def test_a_damaged_record_of_another_experiment_is_said_by_the_page(run, installed):
    run("reproduce", "fake")
    next(Path("results/fake/counting/laptop").glob("*.json")).write_text("{")
    said = run("reproduce", TABLE).stderr
    assert said.count("is not a whole JSON record: it was set aside") == 1


def test_records_under_another_wording_of_a_claim_are_said(run, installed):
    run("reproduce", TABLE)
    for file in Path("results/fake/table-1.1/laptop").glob("*.json"):
        fake_paper.under_claims(file, {"grows": "another"})
    said = lines(run("reproduce", TABLE, FIGURE).stderr)
    about = "fake/table-1.1: 9 of 9 records were made under another wording of the claims: "
    assert said.count(f"{about}claim grows changed after the run.") == 1


def test_an_outcome_under_own_settings_knows_its_command(run, installed, monkeypatch):
    seen = []
    real = paper.reproduction_pages
    monkeypatch.setattr(
        paper, "reproduction_pages", lambda done: (seen.extend(done.outcomes), real(done))[1]
    )
    run("reproduce", COUNTING, "--set", "seed=7,8")
    run("reproduce", COUNTING)
    assert [outcome.command for outcome in seen] == [
        "inscape reproduce fake/counting --set seed=7,8",
        "",
    ]


def test_one_quick_cell_is_said_well(run, tmp_path):
    (tmp_path / "mine").mkdir()
    text = fake_paper.EXTRA.replace("    cell=cell,", "    cell=cell,\n    seconds=lambda s: 0.01,")
    (tmp_path / "mine" / "count.py").write_text(text)
    done = run("reproduce", "mine/count.py", "--jobs", 1, "--seeds", 1)
    assert "1 cell, 1 to compute, under 0.1 s with 1 at a time" in done.stderr
    assert "; 1 cell computed in" in done.stdout


def test_dry_run_says_cells_time_and_disk_and_writes_nothing(run, installed):
    done = run("reproduce", "fake", "--dry-run")
    assert done.exit_code == 0
    assert lines(done.stdout)[0] == "experiment cells to compute time disk note"
    assert "fake/table-1.1 9 9 18 s 18 kB" in lines(done.stdout)
    assert "fake/figure-2 0 0 none 0 kB shows records of fake/table-1.1" in lines(done.stdout)
    assert lines(done.stdout)[-1] == "all 11 11 20 s 22 kB"
    assert not Path("results").exists()
    printed = json.loads(run("reproduce", "fake", "--dry-run", "--json").stdout)
    assert (printed["all"]["cells"], len(printed["experiments"])) == (11, 3)


def test_json(run, installed):
    done = run("reproduce", TABLE, COUNTING, "--json", "--quiet")
    assert (done.exit_code, done.stderr) == (3, "")
    printed = json.loads(done.stdout)
    table, counting = printed["experiments"]
    assert (table["experiment"], table["scale"], table["cells"]) == (TABLE, "laptop", 9)
    claims = {claim["name"]: claim for claim in table["claims"]}
    assert claims["mean-2"]["verdict"] == "inconclusive"
    assert claims["mean-2"]["same_trend"]
    assert claims["mean-2"]["ours"]["value"] == pytest.approx(2.1)
    assert claims["huge"]["ours"] is None
    assert table["quantities"]["mean/1"]["n"] == 3
    assert table["conclusions"] == ["There are 9 sums."]
    assert counting["claims"][0]["verdict"] == "not reproduced"
    assert printed["pages"] == ["results/fake.html"]
    assert printed["command"] == f"inscape reproduce {TABLE} {COUNTING} --json --quiet"
    assert printed["computed"] == 11


def test_another_folder(run, installed):
    assert run("reproduce", TABLE, "--out", "elsewhere").exit_code == 0
    assert Path("elsewhere/fake.html").exists()
    assert not Path("results").exists()


def test_a_cell_that_fails_ends_with_1_and_the_rest_is_judged(run, installed):
    done = run("reproduce", COUNTING, TABLE, "--set", "seed=0,1,99")
    assert done.exit_code == 1
    assert "inscape: 1 of 3 cells of fake/counting failed; the cell seed=99 said" in done.stderr
    assert "seed 99 does not count" in done.stderr
    assert "table-1.1 mean/1" in " ".join(lines(done.stdout))
    assert "counting" not in done.stdout  # nothing is said from a part of the cells


def test_a_full_disk_ends_with_1(run, installed, monkeypatch):
    def full(self, record):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.root))

    monkeypatch.setattr(Store, "write", full)
    done = run("reproduce", TABLE)
    assert done.exit_code == 1
    assert "cannot write" in done.stderr
    assert "no space left on device: free some space or choose another --out" in done.stderr


def test_ctrl_c_ends_with_130(run, installed, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction_plan, "run_plan", interrupted)
    done = run("reproduce", TABLE)
    assert done.exit_code == 130
    assert done.stderr.endswith("inscape: interrupted: nothing was left half written.\n")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["fake/table-1.2"], "no experiment or paper is called 'fake/table-1.2': did you mean fak"),
        (["fakes"], "no experiment or paper is called 'fakes': did you mean fake"),
        (
            ["table-1.1"],
            "no experiment or paper is called 'table-1.1': did you mean fake/table-1.1",
        ),
        (["zzz"], "no experiment or paper is called 'zzz': choose from fake, fake/"),
        (["nowhere.py"], "an experiment of your own must be a Python file, found none at nowhere"),
        ([TABLE, "--set", "size"], "--set must be KEY=VALUE, found 'size': write for example"),
        ([TABLE, "--set", "size="], "--set must be KEY=VALUE, found 'size='"),
        ([TABLE, "--set", "size=1", "--set", "size=2"], "--set size was given twice: put all"),
        ([TABLE, "--set", "width=1"], "fake/table-1.1 has no setting 'width'"),
        ([TABLE, "--seeds", "0"], "seeds must be at least 1, found 0"),
        (
            [TABLE, "--only", "a,,b"],
            "only must be names of instruments or families separated by com",
        ),
        ([TABLE, "--only", "gradient_norm"], "fake/table-1.1 has no setting 'measures'"),
        (
            [TABLE, "--only", "gradient_norm,path_lenght", "--dry-run"],
            "no instrument or family is called 'path_lenght': did you mean path_length",
        ),
        (["fake", "--set", "width=1"], "has no setting 'width'"),
        ([TABLE, "--set", "size=abc"], "'size' of fake/table-1.1 must be an integer, such as"),
        ([TABLE, "--set", "size=0"], "the setting 'size' of fake/table-1.1 must be above 0, found"),
        ([TABLE, "--data-dir", "nowhere"], "--data-dir must name a folder, found nowhere"),
    ],
)
def test_usage(run, installed, words, text):
    done = run("reproduce", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert text in done.stderr
    assert not Path("results").exists()


def test_jobs_below_one(run, tmp_path, monkeypatch):
    fake_paper.install(tmp_path / "papers", monkeypatch)
    done = run("reproduce", TABLE, "--jobs", 0)
    assert done.exit_code == 2
    assert done.stderr == "inscape: --jobs must be at least 1, found 0: raise it or leave it out.\n"


@pytest.mark.parametrize("words", [["--scale", "huge"], ["--executor", "abacus"]])
def test_choices(run, installed, words):
    assert run("reproduce", TABLE, *words).exit_code == 2


def test_a_folder_that_cannot_be_written_is_refused_before_the_run(run, installed):
    Path("results").write_text("a file")
    done = run("reproduce", TABLE)
    assert done.exit_code == 1
    assert lines(done.stderr) == [
        "inscape: cannot write into the folder results: not a directory: choose another with --out."
    ]


def test_the_data_folder_is_told_to_the_run_and_forgotten_after(
    run, installed, monkeypatch, tmp_path
):
    seen = []
    real = reproduction_plan.run_plan
    monkeypatch.setattr(
        reproduction_plan,
        "run_plan",
        lambda *a, **k: (seen.append(os.environ.get("INSCAPE_DATA_DIR")), real(*a, **k))[1],
    )
    (tmp_path / "data").mkdir()
    assert run("reproduce", TABLE, "--data-dir", "data").exit_code == 0
    assert seen == [str(tmp_path / "data")]
    assert "INSCAPE_DATA_DIR" not in os.environ
    monkeypatch.setenv("INSCAPE_DATA_DIR", "before")
    with reproduction_plan.data_from(tmp_path):
        assert os.environ["INSCAPE_DATA_DIR"] == str(tmp_path)
    assert os.environ["INSCAPE_DATA_DIR"] == "before"


def test_executors_by_name(run, installed, monkeypatch):
    asked = []

    def chosen(name, jobs):
        asked.append((name, jobs))
        return executors.SerialExecutor()

    monkeypatch.setattr(reproduction_plan, "executor_named", chosen)
    run("reproduce", COUNTING)
    run("reproduce", COUNTING, "--executor", "ray")
    monkeypatch.setattr(reproduction_plan, "available_cores", lambda: 4)
    run("reproduce", COUNTING)
    assert sorted(set(asked)) == [("joblib", 4), ("ray", 1), ("serial", 1)]


def test_cores_of_this_machine():
    assert reproduction_plan.available_cores() >= 1


def test_an_experiment_of_ones_own(run, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "count.py").write_text(fake_paper.EXTRA)
    done = run("reproduce", "mine/count.py", "--jobs", 1)
    assert done.exit_code == 3
    assert "page: results/own-mine.html" in done.stderr
    assert len(list(Path("results/own-mine/count/laptop").glob("*.json"))) == 2


def test_in_processes_of_its_own(process, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "count.py").write_text(fake_paper.EXTRA)
    done = process("reproduce", "mine/count.py", "--jobs", "2")
    assert done.returncode == 3, done.stderr
    assert "2 cells computed" in done.stdout


def test_pages_from_records_alone(run, installed, monkeypatch):
    run("reproduce", "fake")
    monkeypatch.setattr(reproduction_plan, "run_plan", None)
    done = run("pages")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["reports/index.html", "reports/fake.html"]
    assert Path("reports/fake.html").read_text() == Path("results/fake.html").read_text()


def test_pages_without_records(run, installed):
    done = run("pages", "--results", "nowhere")
    assert done.exit_code == 2
    assert done.stderr == (
        "inscape: --results must be a folder of records, found none at nowhere: run inscape "
        "reproduce first, or name another folder.\n"
    )


def test_pages_of_an_empty_folder(run, installed):
    Path("results").mkdir()
    done = run("pages")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "must be a folder of records, found an empty one at results: run inscape" in done.stderr
    assert not Path("reports").exists()


def test_pages_as_json_say_that_own_experiments_have_none(run, installed, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "count.py").write_text(fake_paper.EXTRA)
    run("reproduce", "mine/count.py")
    printed = json.loads(run("pages", "--json").stdout)
    assert printed["pages"] == ["reports/index.html", "reports/fake.html"]
    (notice,) = printed["notices"]
    assert notice.startswith("own-mine/count: no page, for nothing says where your files are; ")
    assert notice in run("pages").stderr


def test_pages_say_what_was_set_aside(run, installed):
    run("reproduce", TABLE)
    next(Path("results/fake/table-1.1/laptop").glob("*.json")).write_text("{")
    done = run("pages")
    assert done.exit_code == 0
    assert "is not a whole JSON record" in done.stderr
    assert "only 8 of 9 cells at scale laptop" in Path("reports/fake.html").read_text()


def test_random_cells_are_rerun_and_compared(run, installed):
    run("reproduce", TABLE)
    done = run("reproduce", "fake", "--verify", 3)
    assert done.exit_code == 0
    out = lines(done.stdout)
    assert len(out) == 4
    assert all(line.endswith(": bit for bit") for line in out[:3])
    assert out[3] == "3 cells rerun: 3 bit for bit; repeated means within 0.001"
    empty = run("reproduce", TABLE, "--verify", 1, "--out", "elsewhere")
    assert empty.exit_code == 2
    assert "--verify needs records to rerun, found none under elsewhere" in empty.stderr
