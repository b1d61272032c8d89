"""The index made by the build says what the sources say, and an old one is never believed."""

import json
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from inscape import index

INSTRUMENT = '''"""A family."""

@instrument(reads="function", cost="instant", cites="nobody")
def height(f, x, *, seed=0):
    """Measure the height."""
'''
EXPERIMENT = '"""Figure 1: a figure."""\nEXPERIMENT = Experiment(cell)\n'


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of one instrument and one experiment, whose index is not yet made."""
    for name, text in {
        "family/__init__.py": '"""How high is it?\n\nAnd more."""',
        "family/height.py": INSTRUMENT,
        "family/helper.py": "VALUE = 1",
        "papers/somebody/figure_1.py": EXPERIMENT,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(index, "PACKAGE", tmp_path)
    monkeypatch.setattr(index, "PAPERS", tmp_path / "papers")
    monkeypatch.setattr(index, "FILE", tmp_path / "index.json")
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    """Make the next call read files again, as a new process does."""
    for cached in (index.entries, index._source, index._stored):
        cached.cache_clear()


def listed(folder: Path) -> list[object]:
    forget()
    (experiment,) = index.source(folder / "papers/somebody/figure_1.py").experiments
    return [index.entries(), index.families(), index.question("family"), experiment]


def test_the_index_says_what_the_sources_say(package, monkeypatch):
    without = listed(package)
    assert [entry.name for entry in without[0]] == ["height"]
    assert without[1:3] == [["family"], "How high is it?"]
    assert without[3].id == "somebody/figure-1"
    index.write()
    monkeypatch.setattr(index, "_parsed", lambda path, text: pytest.fail(f"{path} was parsed"))
    (package / "family/helper.py").unlink()  # it defines nothing, and is not in the index
    assert listed(package) == without


def test_all_that_inscape_has_is_found_in_its_index(tmp_path, monkeypatch):
    sources = [*index.PACKAGE.glob("[a-z]*/[a-z]*.py"), *index.PAPERS.glob("[a-z]*/[a-z]*.py")]
    monkeypatch.setattr(index, "FILE", tmp_path / "index.json")
    forget()
    without = [index.source(path) for path in sources]
    index.write()
    forget()
    assert [index.source(path) for path in sources] == without
    kept = json.loads(index.FILE.read_text())
    assert kept.keys() == {
        path.relative_to(index.PACKAGE).as_posix()
        for path in {*sources, *index.PACKAGE.glob("[a-z]*/__init__.py")}
        if index.source(path) != index.Source()
    }
    forget()


def test_a_source_that_has_changed_is_read_anew(package):
    index.write()
    (package / "family/height.py").write_text(INSTRUMENT.replace("the height", "the new height"))
    (package / "family/width.py").write_text(INSTRUMENT.replace("height", "width"))
    (package / "papers/somebody/figure_1.py").write_text(EXPERIMENT.replace("1: a", "1: another"))
    instruments, _, _, experiment = listed(package)
    titles = {entry.name: entry.title for entry in instruments}
    assert titles == {"height": "Measure the new height.", "width": "Measure the width."}
    assert experiment.title == "Figure 1: another figure."


def test_a_source_that_is_gone_is_not_listed(package):
    index.write()
    (package / "family/height.py").unlink()
    forget()
    assert index.entries() == ()


def test_an_index_of_an_older_form_is_not_believed(package):
    without = listed(package)
    index.write()
    entries = json.loads(index.FILE.read_text())
    older = {
        name: {k: v for k, v in e.items() if k != "experiments"} for name, e in entries.items()
    }
    index.FILE.write_text(json.dumps(older))
    assert listed(package) == without


def test_a_damaged_index_is_not_believed(package):
    without = listed(package)
    index.FILE.write_text('{"family/height.py": {"che')
    assert listed(package) == without


def test_checksums_are_those_of_the_files(package):
    index.write()
    kept = json.loads(index.FILE.read_text())
    assert sorted(kept) == [
        "family/__init__.py", "family/height.py", "papers/somebody/figure_1.py",
    ]  # fmt: skip
    for name, said in kept.items():
        assert said["checksum"] == zlib.crc32((package / name).read_bytes())


def test_list_loads_what_help_loads_and_neither_pydantic_nor_torch():
    show = "from inscape.cli import main; import sys, atexit; sys.argv = ['inscape', 'list']; "
    show += "atexit.register(lambda: print('LOADED', *sys.modules)); main()"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    words = done.stdout.partition("LOADED")[2].split()
    loaded = {word.split(".")[0] for word in words}
    assert "typer" in loaded
    assert not loaded & {"pydantic", "torch", "numpy", "rich"}
