"""Every error is one line and an exit code; a traceback comes only when asked for."""

import errno
import os
import subprocess
import sys

import pytest

from inscape._core import BudgetError, DataError, UnsupportedModelError
from inscape.cli import list as list_module
from inscape.cli.errors import exit_code, sentence


def fail_with(monkeypatch, error: BaseException) -> None:
    """Let ``inscape list`` raise."""

    def raises() -> list[str]:
        raise error

    monkeypatch.setattr(list_module.index, "families", raises)


ERRORS = [
    (ValueError("x must be y, found z: do w."), 2, "x must be y, found z: do w."),
    (TypeError("x must hold floats."), 2, "x must hold floats."),
    (UnsupportedModelError("layer 'a' is odd."), 2, "layer 'a' is odd."),
    (DataError("mnist is missing."), 2, "mnist is missing."),
    (ImportError("saving needs 'pyarrow'."), 2, "saving needs 'pyarrow'."),
    (BudgetError("too much."), 1, "too much."),
    (RuntimeError("two\n  lines"), 1, "two lines"),
    (ConnectionError("no mirror answered."), 1, "no mirror answered."),
    (
        OSError(errno.ENOSPC, "No space left on device", "reports/a.html"),
        1,
        "cannot write reports/a.html: no space left on device: free some space or choose another "
        "--out folder.",
    ),
    (
        PermissionError(errno.EACCES, "Permission denied", "a.npz"),
        1,
        "cannot use a.npz: permission denied: change its permissions or choose another path.",
    ),
    (
        FileNotFoundError(errno.ENOENT, "No such file or directory", "a.npz"),
        2,
        "cannot find a.npz: no such file or directory: check the path.",
    ),
    (OSError(errno.EIO, "Input/output error"), 1, "cannot use the disk: input/output error."),
    (MemoryError(), 1, "out of memory: use fewer points (--limit) or a smaller model."),
    (KeyboardInterrupt(), 130, "interrupted: nothing was left half written."),
    (
        KeyError("a"),
        1,
        "unexpected KeyError: 'a'; run it again with --debug and report it.",
    ),
    (
        ValueError(),
        2,
        "unexpected ValueError: no text; run it again with --debug and report it.",
    ),
]


@pytest.mark.parametrize(("error", "code", "text"), ERRORS, ids=lambda v: type(v).__name__)
def test_one_line_and_a_code(run, monkeypatch, error, code, text):
    fail_with(monkeypatch, error)
    done = run("list")
    assert (done.exit_code, done.stdout, done.stderr) == (code, "", f"inscape: {text}\n")
    assert (exit_code(error), sentence(error)) == (code, text)


@pytest.mark.parametrize("words", [["--debug", "list"], ["list", "--debug"]], ids=" ".join)
def test_debug_shows_the_traceback_as_well(run, monkeypatch, words):
    fail_with(monkeypatch, ValueError("bad."))
    done = run(*words)
    assert done.exit_code == 2
    assert done.stderr.startswith("Traceback (most recent call last)")
    assert done.stderr.endswith("ValueError: bad.\ninscape: bad.\n")


@pytest.mark.parametrize(("value", "shown"), [("1", True), ("0", False), ("", False)])
def test_debug_by_environment(run, monkeypatch, value, shown):
    fail_with(monkeypatch, ValueError("bad."))
    monkeypatch.setenv("INSCAPE_DEBUG", value)
    assert ("Traceback" in run("list").stderr) == shown


def test_errors_of_the_data_verbs_too(run):
    done = run("data", "where", "mnits")
    assert done.exit_code == 2
    assert done.stderr.startswith("inscape: no data set is called 'mnits': did you mean mnist")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["look", "--sede", "3"], "No such option: --sede"),
        (["look", "--seed", "abc"], "Invalid value for '--seed': Input should be a valid integer"),
        (["look", "--labels", "colours"], "'colours' is not one of"),
        (["loook"], "No such command 'loook'. Did you mean 'look'"),
        (["show"], "Missing argument 'name'"),
    ],
)
def test_bad_usage(run, words, text):
    done = run(*words)
    assert done.exit_code == 2
    assert text in done.stderr
    assert done.stdout == ""


def test_a_reader_that_goes_away_is_no_error(process):
    code = "import os, sys; os.close(1); from inscape.cli import main; main()"
    done = process("list", python=("-c", code))
    assert "Traceback" not in done.stderr


def _inscape(words: str, streams: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a shell, with its streams as the shell is told."""
    command = f"{sys.executable} -m inscape {words} {streams}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        ["bash", "-c", command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("streams", "code"),
    [
        (">&-", 0),
        ("2>&-", 0),
        (">&- 2>&- <&-", 0),
        ("| true; exit ${PIPESTATUS[0]}", 141),
        ("2>&1 | true; exit ${PIPESTATUS[0]}", 141),
    ],
)
def test_a_closed_stream_ends_quietly(streams, code):
    done = _inscape("list", streams)
    assert (done.returncode, done.stderr) == (code, "")


def test_a_full_disk_behind_the_output_is_said():
    done = _inscape("list", "> /dev/full")
    assert done.returncode == 1
    assert done.stderr == (
        "inscape: cannot write the disk: no space left on device: free some space or choose "
        "another --out folder.\n"
    )


def test_a_pipe_that_breaks_elsewhere_is_an_error():
    assert exit_code(BrokenPipeError()) == 1
    assert exit_code(OSError(errno.ELOOP, "loop")) == 2
