"""Help and list answer at once: nothing heavy is loaded, and this test can tell."""

import pytest

HEAVY = ("torch", "numpy", "sklearn", "matplotlib", "pandas", "scipy", "rich", "numba")

LOADED = """
import sys
from inscape.cli import main
{before}
sys.argv = ["inscape", *{words!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
sys.stderr.write("loaded: " + " ".join(name for name in {heavy!r} if name in sys.modules))
"""


def loaded(process, *words: str, before: str = "") -> list[str]:
    """Return the heavy packages that a command loads in a fresh process."""
    code = LOADED.format(words=words, heavy=HEAVY, before=before)
    done = process(python=("-c", code))
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return done.stderr.rpartition("loaded:")[2].split()


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["look", "--help"],
        ["list"],
        ["list", "smoothness", "--json"],
        ["show", "path_length"],
        ["show", "mnist"],
        ["show", "volhejn"],
        ["list", "volhejn"],
        ["reproduce", "--help"],
        ["pages", "--help"],
        ["doctor", "--help"],
        ["data", "list"],
    ],
    ids=" ".join,
)
def test_loads_nothing_heavy(process, words):
    assert loaded(process, *words) == []


def test_the_check_can_fail(process):
    assert loaded(process, "--version", before="import numpy") == ["numpy"]


def test_version(process):
    from inscape import __version__

    assert process("--version").stdout == f"inscape {__version__}\n"


def test_no_words_show_the_help(run):
    assert "Usage: inscape" in run().output


def test_entry_point_of_the_installed_package():
    from importlib.metadata import entry_points

    from inscape.cli import main

    (script,) = entry_points(group="console_scripts", name="inscape")
    assert script.load() is main
