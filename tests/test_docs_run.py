"""What a page tells its reader to type works: Python as it stands, shell lines as parsed."""

import doctest
import os
import re
import shlex
import time
import tomllib
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from doc_blocks import PAGES, ROOT, Block, blocks, shell_lines
from inscape.cli import app
from inscape.runtime.deadline import clock

MAIN = typer.main.get_command(app)
#: CONTRIBUTING.md is done step by step in tests/contract/test_new_instrument.py.
PYTHON = [page for page in PAGES if blocks(page, "python", "pycon") and page != "CONTRIBUTING.md"]
LINES = sorted({(page, line) for page in PAGES for line in shell_lines(page)})

#: All lines that are not run here, each with the reason; every other line is run as it stands.
NOT_RUN = {
    r"^make ": "the targets are run by CI itself, or take minutes: checked against the Makefile",
    r"^pip install ": "needs an index of packages: its extras are checked against pyproject.toml",
    r"^export ": "sets the variables of a cluster",
    r"--executor (ray|slurm)\b": "needs a cluster",
    r"--scale paper\b": "the paper's own scale takes hours",
    r"^inscape reproduce volhejn(?!.*--dry-run)":
        "trains for minutes: tests/contract runs every experiment at smoke",
    r"^inscape reproduce \w+ --dry-run": "needs MNIST: tests/cli/test_reproduce.py makes dry runs",
    r"--verify\b": "reruns cells of minutes from committed records: tests/lab verifies quick ones",
    r"^inscape \w+ .*(\.(py|pt2?|onnx|npz|csv|safetensors)\b|\bckpts/|\bmodule:)":
        "needs files of the reader's own",
    r"^inscape look$": "takes some 40 s: make look and tests/cli/test_example.py run it",
    r"^inscape explore$": "serves a page until it is stopped: tests/explorer asks it",
    r"^inscape data fetch": "downloads",
    r"^inscape look --boolean": "compiles kernels for half a minute: tests/cli/test_boolean.py",
}  # fmt: skip


def reason(line: str) -> str | None:
    """Return why a line is not run, or None if it is."""
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, line)), None)


RUN = [(page, line) for page, line in LINES if reason(line) is None]


def quick() -> float:
    """Return the seconds of a clock by which the budgets of a page are spent in a fifth of them."""
    return 5 * time.process_time()


def execute(page: str, block: Block, names: dict[str, object]) -> None:
    """Run a block of Python in a namespace; of a session, compare what it prints."""
    if block.language == "python":
        source = "\n" * block.line + block.text
        exec(compile(source, str(PAGES[page]), "exec"), names)
        return
    example = doctest.DocTestParser().get_doctest(block.text, names, page, page, block.line)
    complaints: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    failed, tried = runner.run(example, out=complaints.append, clear_globs=False)
    names.update(example.globs)
    assert tried
    assert not failed, "".join(complaints)


@pytest.mark.parametrize("page", PYTHON)
def test_the_python_of_a_page_runs_from_the_top_in_one_namespace(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    with clock(quick):
        for block in blocks(page, "python", "pycon"):
            execute(page, block, names)


def parsed(words: list[str]) -> typer.Context:
    """Return what the real command line reads from some words; nothing is run."""
    command, context = MAIN, None
    while True:
        context = command.make_context(command.name, words, parent=context)
        if not hasattr(command, "commands"):
            return context
        _, command, words = command.resolve_command(
            context, [*context._protected_args, *context.args]
        )


@pytest.mark.parametrize(("page", "line"), LINES)
def test_a_shell_line_is_understood(page, line):
    program, *words = shlex.split(line)
    match program:
        case "inscape":
            parsed(words)
        case "make":
            targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert set(words) <= set(targets)
        case "pip":
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            extras = re.findall(r"inscape\[(\w+)\]", line)
            assert set(extras) <= set(project["optional-dependencies"])
        case _:
            assert program == "export", f"what is {program}?"


@pytest.mark.parametrize(("page", "line"), RUN)
def test_a_quick_shell_line_runs(page, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("INSCAPE_")]:
        monkeypatch.delenv(name)
    with clock(quick):
        done = CliRunner().invoke(app, shlex.split(line)[1:], prog_name="inscape")
    assert done.exit_code == 0, done.output
    assert done.stdout


def inline_commands() -> Iterator[tuple[str, str]]:
    """Yield commands in the text and the tables of pages, but for those with a gap."""
    for page, path in PAGES.items():
        for line in re.findall(r"`(inscape \w[^`]*)`", path.read_text(encoding="utf-8")):
            words = " ".join(line.split())
            if not re.search(r"\.\.\.|\\\||[A-Z]{3}", words):
                yield page, words


@pytest.mark.parametrize(("page", "line"), sorted(set(inline_commands())))
def test_a_command_inside_the_text_is_understood(page, line):
    verb, *words = shlex.split(line)[1:]
    if words:
        parsed([verb, *words])
    else:  # the name of a verb alone may lack what it needs
        assert verb in MAIN.commands


def test_every_exception_is_needed():
    for pattern in NOT_RUN:
        assert any(re.search(pattern, line) for _, line in LINES), pattern


def test_some_lines_are_run():
    lines = [line for _, line in RUN]
    assert "inscape list" in lines
    assert "inscape reproduce sattelberg/figure-5.3 --jobs 1" in lines


@pytest.mark.parametrize("words", ["look --nothing", "reproduce volhejn --scale huge", "lok"])
def test_a_wrong_line_is_seen(words):
    with pytest.raises(typer.TyperException):
        parsed(shlex.split(words))


def test_a_wrong_block_is_seen():
    with pytest.raises(AssertionError, match="Expected"):
        execute("README.md", Block("pycon", 0, ">>> 1 + 1\n3\n"), {})
    with pytest.raises(NameError):
        execute("README.md", Block("python", 0, "model\n"), {})
