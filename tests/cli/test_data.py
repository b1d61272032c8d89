import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from inscape.cli.data import app
from inscape.data import catalogue
from inscape.data.files import FILE_SETS
from inscape.errors import DataError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("INSCAPE_DATA_DIR", raising=False)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "cache"))
    return tmp_path / "cache" / "data"


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


def rows(*words: object) -> list[dict[str, str]]:
    answer = run(*words, "--json")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def test_list_names_every_set_with_a_line():
    answer = run("list")
    assert answer.exit_code == 0
    for name, line in catalogue.describe().items():
        assert name in answer.stdout
        assert line in answer.stdout
    assert answer.stderr == ""


def test_list_says_what_is_on_disk(tmp_path):
    sources = {row["name"]: row["source"] for row in rows("list", "--data-dir", tmp_path)}
    assert sources["disc"] == "made"
    assert sources["digits"] == "embedded"
    assert sources["mnist-binary"] == "not on disk"
    (tmp_path / "data_batch_1.bin").write_bytes(b"x")
    sources = {row["name"]: row["source"] for row in rows("list", "--data-dir", tmp_path)}
    assert sources["cifar10"] == "partly on disk"


def test_list_does_not_load_torch():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom inscape.cli.data import app\n"
        "assert CliRunner().invoke(app, ['list']).exit_code == 0\nprint(*sys.modules)"
    )
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert "inscape.data.catalogue" in loaded
    assert not loaded & {"torch", "numpy", "sklearn", "pandas", "matplotlib"}


def test_where_tells_every_part_and_its_state(tmp_path):
    (tmp_path / "test_batch.bin").write_bytes(b"x")
    result = rows("where", "cifar10", "--data-dir", tmp_path)
    assert [row["state"] for row in result] == ["missing"] * 5 + ["bad"]
    assert result[-1]["path"] == str(tmp_path / "test_batch.bin")
    assert "30730000 bytes expected, found 1" in result[-1]["detail"]


def test_where_without_a_name_tells_all_files_once():
    sets = [row["dataset"] for row in rows("where")]
    assert sets == ["mnist"] * 4 + ["fashion-mnist"] * 4 + ["cifar10"] * 6
    assert rows("where", "digits") == []
    assert [row["dataset"] for row in rows("where", "mnist-binary:4-9")] == ["mnist"] * 4


def test_verify_of_nothing_is_fine_but_a_named_set_must_be_there():
    assert run("verify").exit_code == 0
    answer = run("verify", "mnist")
    assert isinstance(answer.exception, DataError)
    assert "mnist lacks train-images" in str(answer.exception)
    assert "missing" in answer.stdout


def test_verify_sets_a_bad_file_of_the_cache_aside(cache):
    cache.mkdir(parents=True)
    (cache / "test_batch.bin").write_bytes(b"x")
    answer = run("verify")
    assert isinstance(answer.exception, DataError)
    assert "found 1 that differ" in str(answer.exception)
    assert "set aside as test_batch.bin.bad" in answer.stdout
    assert [path.name for path in cache.iterdir()] == ["test_batch.bin.bad"]
    assert run("verify").exit_code == 0


@pytest.mark.parametrize("verb", ["where", "verify", "fetch"])
def test_unknown_names_are_answered(verb):
    answer = run(verb, "mnits")
    assert isinstance(answer.exception, ValueError)
    assert "did you mean mnist" in str(answer.exception)


@pytest.mark.parametrize("verb", ["list", "where", "verify"])
def test_a_missing_folder_is_answered(verb, tmp_path):
    answer = run(verb, "--data-dir", tmp_path / "none")
    assert isinstance(answer.exception, DataError)
    assert "data_dir must name a folder" in str(answer.exception)


def test_fetch_says_what_needs_no_files():
    answer = run("fetch", "disc", "digits")
    assert answer.exit_code == 0
    assert answer.stderr.splitlines() == ["disc needs no files.", "digits needs no files."]


def test_fetch_passes_its_options_on(monkeypatch, tmp_path):
    seen = {}

    def fetch(name, **options):
        seen[name] = options
        return []

    monkeypatch.setattr("inscape.data.fetching.fetch", fetch)
    run("fetch", "mnist", "--to", tmp_path, "--mirror", "http://a/", "--mirror", "http://b/")
    assert seen == {
        "mnist": {"data_dir": None, "to": tmp_path, "mirrors": ("http://a/", "http://b/")}
    }


def test_fetch_needs_a_name():
    answer = run("fetch")
    assert answer.exit_code == 2
    assert "names" in answer.stderr


@pytest.mark.data
def test_real_files_are_whole(data_dir):
    result = rows("verify", "mnist", "cifar10", "--data-dir", data_dir)
    assert {row["state"] for row in result if row["dataset"] == "mnist"} == {"ok"}
    there = {row["part"] for row in result if row["state"] == "ok"}
    assert {"data_batch_1", "data_batch_2", "test_batch"} <= there
    assert len(result) == len(FILE_SETS["mnist"].parts) + len(FILE_SETS["cifar10"].parts)
