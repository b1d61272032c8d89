"""Running the command line inside the test process, and real processes where that matters."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from inscape.cli import app

Run = Callable[..., Result]
Process = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs ``inscape`` with some words in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("INSCAPE_DEBUG", "INSCAPE_QUIET", "INSCAPE_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)

    def runs(*words: object) -> Result:
        return CliRunner().invoke(app, [str(word) for word in words], prog_name="inscape")

    return runs


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Return a function that runs ``python -m inscape`` as a process of its own."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("INSCAPE")}

    def runs(*words: object, python: tuple[str, ...] = ("-m", "inscape"), **more: str):
        return subprocess.run(
            [sys.executable, *python, *map(str, words)],
            cwd=tmp_path,
            env=environment | {"OMP_NUM_THREADS": "1"} | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=1200,
        )

    return runs
