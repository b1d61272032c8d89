"""The tutorial of CONTRIBUTING.md, done as it is told, in a temporary copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from doc_blocks import ROOT, blocks

#: What a copy of the tests needs for the contract and the tutorial's own test.
CONTRACT = "tests/contract/test_every_instrument.py"
HELPERS = [f"tests/{name}.py" for name in ("conftest", "cases", "same", "elsewhere", "shapes")]
PYTEST = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider")


def steps() -> dict[str, str]:
    """Return the text of each block of the tutorial, by the path in its first line."""
    written = {}
    for block in blocks("CONTRIBUTING.md", "python"):
        first, _, text = block.text.partition("\n")
        written[first.removeprefix("# ")] = text
    return written


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project with the instrument of the tutorial: a file, a line, a test."""
    folder = tmp_path_factory.mktemp("project")
    unwanted = shutil.ignore_patterns("*.pyc.*", "papers", "index.json")  # compiled files are kept
    shutil.copytree(ROOT / "src" / "inscape", folder / "src" / "inscape", ignore=unwanted)
    (folder / "src" / "inscape" / "papers").mkdir()
    for name in ("pyproject.toml", CONTRACT, *HELPERS):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for name, text in steps().items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    return folder


def python(folder: Path, *words: str) -> str:
    """Run Python on the copy and return what it prints."""
    environment = {key: text for key, text in os.environ.items() if not key.startswith("INSCAPE")}
    environment |= {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tutorial_is_one_file_one_line_and_a_test():
    new, line, test = steps().items()
    assert new[0] == "src/inscape/spectra/weight_norm.py"
    assert line[0] == "src/inscape/spectra/__init__.py"
    assert len(line[1].splitlines()) == 1
    assert test[0] == "tests/spectra/test_weight_norm.py"
    assert not [name for name in (new[0], test[0]) if (ROOT / name).exists()]


def test_list_and_show_know_the_new_instrument(copy):
    assert re.search(
        r"^weight_norm +instant +parameters", python(copy, "-m", "inscape", "list"), re.M
    )
    assert "All weights together" in python(copy, "-m", "inscape", "show", "weight_norm")


def test_look_measures_it(copy):
    make = "from inscape.models import mlp\ndef make():\n    return mlp(64, 8, 10)\n"
    (copy / "net.py").write_text(make)
    words = ("look", "--model", "net.py:make", "--data", "digits", "--only", "weight_norm")
    shown = python(copy, "-m", "inscape", *words, "--out", "pages")
    assert re.search(r"^weight_norm +[\d.]+ +exact", shown, re.M)
    (page,) = (copy / "pages").glob("*.html")
    assert "All weights together have the length" in page.read_text(encoding="utf-8")


def test_the_contract_and_its_own_test_hold_it(copy):
    shown = python(copy, *PYTEST, "-k", "weight_norm or place", CONTRACT, "tests/spectra")
    assert int(re.search(r"(\d+) passed", shown)[1]) > 50
    path = copy / "src" / "inscape" / "spectra" / "weight_norm.py"
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace("    probe(model, x)\n", ""), encoding="utf-8")
    with pytest.raises(AssertionError, match=r"FAILED .*test_training_mode_is_refused.weight_norm"):
        python(copy, *PYTEST, "-k", "mode and weight_norm", CONTRACT)
    path.write_text(whole, encoding="utf-8")
