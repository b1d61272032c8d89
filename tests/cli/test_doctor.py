"""``inscape doctor`` says what is there, and notices what is broken."""

import json
import sys
from importlib import metadata

import pytest
import torch

import fake_paper
from inscape import __version__, index
from inscape.data import cache_dir
from inscape.environment import installation
from inscape.lab.record import content_hash
from inscape.lab.store import Store


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Keep the user's own cache out of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_dir().is_relative_to(tmp_path)
    return cache_dir()


def facts(run, *words):
    done = run("doctor", "--json", *words)
    return done.exit_code, json.loads(done.stdout)


def test_a_healthy_machine(run, cache):
    code, found = facts(run)
    assert (code, found["broken"]) == (0, [])
    assert found["system"]["inscape"] == __version__
    assert found["instruments"] == {
        family: sum(entry.family == family for entry in index.entries())
        for family in index.families()
    }
    (of_torch,) = [package for package in found["packages"] if package["package"] == "torch"]
    assert of_torch["found"] == metadata.version("torch")
    assert all(package["state"] == "ok" for package in found["packages"])
    assert found["devices"]["threads"] == torch.get_num_threads()
    assert bool(found["devices"]["cuda"]) == torch.cuda.is_available()


def test_extras_are_those_of_the_installed_package(run, cache):
    _, found = facts(run)
    extras = {extra["extra"]: extra for extra in found["extras"]}
    published = set(metadata.metadata("inscape").get_all("Provides-Extra"))
    assert set(extras) == published - installation.FOR_DEVELOPERS
    assert set(extras) == set(installation.BRINGS)
    assert extras["parquet"]["packages"] == ["pyarrow"]


def test_data_sets_and_cache(run, cache):
    code, found = facts(run)
    assert code == 0
    assert {data["state"] for data in found["data"]} == {"missing"}
    assert found["cache"] == {"path": str(cache), "exists": False, "bytes": 0, "writable": True}
    (cache / "mnist").mkdir(parents=True)
    (cache / "mnist" / "train-labels-idx1-ubyte").write_bytes(b"12345")
    code, found = facts(run)
    (mnist,) = [data for data in found["data"] if data["dataset"] == "mnist"]
    assert code == 0
    assert mnist["state"] == "bad"
    assert mnist["where"] == [str(cache / "mnist")]
    assert mnist["to_do"] == "inscape data verify mnist"
    assert found["cache"]["bytes"] == 5


@pytest.mark.data
def test_real_data(run, cache, data_dir):
    _, found = facts(run, "--data-dir", data_dir)
    (mnist,) = [data for data in found["data"] if data["dataset"] == "mnist"]
    assert (mnist["state"], mnist["files"], mnist["to_do"]) == ("ok", "4 of 4", "")


def test_tables(run, cache):
    done = run("doctor")
    assert done.exit_code == 0
    for word in ("scikit-learn", "parquet", "threads", "smoothness", "fashion-mnist"):
        assert word in done.stdout
    assert done.stdout.endswith("all that is needed works\n")


def test_a_missing_data_folder_is_broken(run, cache):
    code, found = facts(run, "--data-dir", "nowhere")
    assert code == 1
    (line,) = found["broken"]
    assert "must name a folder, found nowhere" in line


def test_a_missing_and_a_wrong_package_are_broken(run, cache, monkeypatch):
    def version(name):
        if name == "jinja2":
            raise metadata.PackageNotFoundError(name)
        return "0.0.1" if name == "rich" else real(name)

    real = metadata.version
    monkeypatch.setattr(installation.metadata, "version", version)
    done = run("doctor")
    assert done.exit_code == 1
    assert "broken: jinja2 >=3.1 is needed, found none: install inscape again.\n" in done.stdout
    assert "broken: rich >=14 is needed, found 0.0.1: install inscape again.\n" in done.stdout
    assert done.stdout.endswith("something needed is broken\n")


def test_a_broken_torch_is_said(run, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    code, found = facts(run)
    assert code == 1
    (line,) = found["broken"]
    assert line.startswith("torch cannot be loaded: ")
    assert line.endswith(": install torch again.")


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Return a store with the records of a small paper."""
    fake_paper.install(tmp_path / "papers", monkeypatch)
    store = Store(tmp_path / "results")
    fake_paper.fill(store, "fake/table-1.1", "laptop")
    fake_paper.fill(store, "fake/counting", "smoke")
    return store


def test_records_are_counted(run, cache, results):
    code, found = facts(run)
    assert code == 0
    assert found["records"] == [
        {"experiment": "fake/counting", "scale": "smoke", "records": 1, "state": "ok"},
        {"experiment": "fake/table-1.1", "scale": "laptop", "records": 9, "state": "ok"},
    ]
    assert facts(run, "--results", "elsewhere")[1]["records"] == []


def test_records_made_under_other_claims_are_named(run, cache, results):
    file = sorted(results.folder("fake/table-1.1", "laptop").glob("*.json"))[0]
    fake_paper.under_claims(file, {"grows": "another"})
    _, found = facts(run)
    assert found["records"][1]["state"] == (
        f"1 stale: claim grows changed after the run ({file.stem})"
    )
    done = run("doctor")
    assert f"({file.stem})" in done.stdout
    assert done.stdout.endswith("some records are stale: their verdicts are to be distrusted\n")


def test_many_stale_records_are_counted(run, cache, results):
    for file in results.folder("fake/table-1.1", "laptop").glob("*.json"):
        claims = json.loads(file.read_text())["claims"]
        fake_paper.under_claims(file, dict.fromkeys(claims))
    state = facts(run)[1]["records"][1]["state"]
    assert state.startswith("9 stale: claim mean-1, mean-2, mean-3, paper-3, grows and 1 more add")
    assert state.count(", ...)") == 1


def test_records_without_a_hash_are_counted_and_no_fault(run, cache, results):
    files = sorted(results.folder("fake/table-1.1", "laptop").glob("*.json"))
    for file in files[:2]:
        content = json.loads(file.read_text())
        del content["sha256"]
        file.write_text(json.dumps(content))
    code, found = facts(run)
    assert code == 0
    assert found["records"][1]["state"] == (
        "2 without a hash: a changed number would not be noticed "
        f"({files[0].stem}, {files[1].stem})"
    )
    assert run("doctor").stdout.endswith("all that is needed works\n")


def test_a_changed_number_is_named_with_both_hashes(run, cache, results):
    file = next(results.folder("fake/counting", "smoke").glob("*.json"))
    content = json.loads(file.read_text())
    stated = content["sha256"]
    content["values"]["more"] = 1
    file.write_text(json.dumps(content))
    code, found = facts(run)
    assert code == 1
    problem = (
        "has values, claims or provenance that do not match its hash (stated "
        f"{stated[:12]}, computed {content_hash(content)[:12]})"
    )
    assert found["records"][0]["state"] == f"1 damaged: {problem} ({file.stem})"
    assert problem in found["broken"][0]
    assert file.exists()


def test_a_record_from_the_future_is_said(run, cache, results):
    file = next(results.folder("fake/counting", "smoke").glob("*.json"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema": 99}))
    code, found = facts(run)
    assert code == 1
    assert "must have a schema up to 1, found 99" in found["broken"][0]


def test_damaged_records_are_named_and_left_as_they_are(run, cache, results):
    file = next(results.folder("fake/counting", "smoke").glob("*.json"))
    file.write_text("{")
    own = results.root / "own-mine" / "count" / "smoke" / "0123456789abcdef.json"
    own.parent.mkdir(parents=True)
    own.write_text("[]")
    before = sorted(results.root.rglob("*"))
    code, found = facts(run)
    assert code == 1
    assert found["records"][0]["state"] == (f"1 damaged: is not a whole JSON record ({file.stem})")
    assert found["broken"] == [
        f"the record results/{path.relative_to(results.root)} is not a whole JSON record: inscape "
        "reproduce sets it aside and computes it anew."
        for path in (file, own)
    ]
    assert sorted(results.root.rglob("*")) == before
    assert file.read_text() == "{"


def test_index_is_made_anew(run, cache, results):
    done = run("doctor", "--rebuild-index")
    assert done.exit_code == 0
    assert done.stderr == "index: 10 records in results\n"
    assert (results.root / "index.sqlite").exists()


def test_index_of_nothing(run, cache):
    done = run("doctor", "--rebuild-index", "--results", "nowhere")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "inscape: --rebuild-index needs a folder of records, found none at nowhere: name it with "
        "--results.\n"
    )


def test_takes_a_few_seconds(process):
    done = process("doctor", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["broken"] == []
