"""A tiny experiment in a folder of its own, which worker processes can import, and a command."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

TOY = '''"""A toy: products of random matrices."""

import os
import signal
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from inscape.lab import Experiment, Trend, Value

HERE = Path(__file__).parent


def fault(size, seed):
    """Do what a file beside this one says: kill-SEED once, dies-SEED and bad-SEED always."""
    if (once := HERE / f"kill-{seed}").exists():
        once.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if (HERE / f"dies-{seed}").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    if (HERE / f"bad-{seed}").exists():
        raise ZeroDivisionError(f"seed {seed} is bad\\nand more")
    if (HERE / f"warn-{seed}").exists():
        warnings.warn("mind the gap", stacklevel=1)


def cell(size, seed):
    """Multiply; note the process, and take the time that the environment says."""
    with (HERE / "pids.txt").open("a") as file:
        file.write(f"{os.getpid()} {torch.get_num_threads()}\\n")
    time.sleep(float(os.environ.get("TOY_SLEEP", "0")))
    fault(size, seed)
    x = torch.randn(40 * size, 40 * size, generator=torch.Generator().manual_seed(seed))
    careless = torch.rand(()).item() + np.random.random()
    return {
        "sum": float((x @ x).sum()),
        "careless": careless,
        "lost": float("nan") if seed % 2 else None,
        "x": (x @ x)[:3].numpy(),
    }


def data(settings):
    """Count the questions."""
    with (HERE / "asked.txt").open("a") as file:
        file.write("?")
    return f"hash-of-size-{settings['size']}"


EXPERIMENT = Experiment(
    shows="Table 1",
    title="Products",
    cell=cell,
    data=data,
    seconds=lambda settings: 2.0 * settings["size"],
    smoke={"size": [1, 2], "seed": range(3)},
    laptop={"size": [1], "seed": range(int(os.environ.get("TOY_SEEDS", "4")))},
    claims=(
        Value(name="one", says="the sum is one", of="sum", published=1.0, tolerance=0.5),
        Trend(name="up", says="it grows", of="slope", side="above"),
    ),
)
'''

TOGETHER = '''"""Cells that are run together."""

from pathlib import Path

from inscape.lab import Experiment
from table_1 import fault

CALLS = Path(__file__).parent / "calls.txt"


def together(cells):
    """Yield the cells from the last to the first."""
    with CALLS.open("a") as file:
        file.write(f"{len(cells)}\\n")
    for index, settings in reversed(list(enumerate(cells))):
        fault(**settings)
        yield index, {"product": settings["size"] * settings["seed"] / 3}


EXPERIMENT = Experiment(
    shows="Table 2",
    title="Together",
    together=together,
    batch=4,
    alike=lambda settings: settings["size"],
    smoke={"size": [1, 2], "seed": range(6)},
)
'''

SHARED = '''"""Figure 1 draws Table 1."""

from inscape.lab import Experiment, Trend

EXPERIMENT = Experiment(
    shows="Figure 1",
    title="The same records",
    same_as="table-1",
    claims=(Trend(name="down", says="it falls", of="slope", side="below"),),
)
'''

COMMAND = '''"""Run an experiment as the command line does: FILE STORE EXECUTOR SCALE."""

import os
import sys


def main(file, root, name, scale):
    """Plan, say so, run; errors become exit codes."""
    from inscape.cli.errors import exit_code, sentence
    from inscape.lab import Store, executor, plan, run

    store = Store(root)
    try:
        todo = plan(file, scale=scale, store=store)
        print("missing", len(todo.missing), flush=True)
        report = run(todo, store=store, executor=executor(name, 2))
        print("computed", report.computed, *report.notices, flush=True)
    except BaseException as error:
        print(sentence(error), file=sys.stderr)
        return exit_code(error)
    return 0


def serve():
    """Run each line of stdin in a fork: what was imported once need not be imported again."""
    import inscape.lab.runner

    for line in sys.stdin:
        child = os.fork()
        if not child:
            os._exit(main(*line.rstrip("\\n").split("\\t")))
        print("pid", child, flush=True)
        print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if sys.argv[1:] else serve())
'''


@dataclass(frozen=True)
class Toy:
    """The folder ``toys`` of a test and what is in it."""

    folder: Path

    @property
    def table(self) -> str:
        return str(self.folder / "table_1.py")

    @property
    def together(self) -> str:
        return str(self.folder / "table_2_1.py")

    @property
    def figure(self) -> str:
        return str(self.folder / "figure_1.py")

    def mark(self, name: str) -> Path:
        """Put a fault beside the experiment."""
        path = self.folder / name
        path.touch()
        return path

    def edit(self, *changes: tuple[str, str]) -> None:
        """Change the text of ``table_1.py``, and forget what was imported of it."""
        path = Path(self.table)
        text = path.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
        self.forget()

    def forget(self) -> None:
        """Let the experiments be imported anew."""
        for name in [name for name in sys.modules if name == "table_1" or "inscape_own" in name]:
            del sys.modules[name]

    def lines(self, name: str) -> list[str]:
        return (self.folder / name).read_text().splitlines()

    def start(self, *words: object) -> subprocess.Popen[str]:
        """Start the command (STORE EXECUTOR SCALE) as a process, in a group of its own.

        Without words it is one that runs a command for each line of its stdin.
        """
        command = [
            sys.executable,
            self.folder / "command.py",
            *([self.table, *words] if words else []),
        ]
        return subprocess.Popen(
            list(map(str, command)),
            env={**os.environ, "INSCAPE_QUIET": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@pytest.fixture
def toy(tmp_path, monkeypatch) -> Iterator[Toy]:
    """Return a fresh folder of toy experiments."""
    folder = tmp_path / "toys"
    folder.mkdir()
    for name, text in {
        "table_1.py": TOY,
        "table_2_1.py": TOGETHER,
        "figure_1.py": SHARED,
        "command.py": COMMAND,
    }.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path])
    made = Toy(folder)
    yield made
    made.forget()
