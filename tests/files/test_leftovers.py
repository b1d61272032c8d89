"""What killed processes leave is deleted; what anybody else has is not, whatever its name."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inscape.files import leftovers
from inscape.files.atomic import written
from inscape.files.leftovers import noted, semaphore_prefix, temporary_path, tidy

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="knows processes from /proc"
)

KILLED = """
import os, pathlib, signal, sys
from inscape.files.atomic import written
with written(pathlib.Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.{signal})
"""


@pytest.fixture(autouse=True)
def ledgers(tmp_path, monkeypatch) -> Path:
    """Keep the ledgers of a test, and of the processes that it starts, in a folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(leftovers, "_ledgers", {})
    return tmp_path / "cache" / "inscape" / "running"


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "there"
    made.mkdir()
    return made


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def killed(path: Path, with_signal: str = "SIGKILL") -> subprocess.Popen[bytes]:
    code = KILLED.format(signal=with_signal)
    return subprocess.Popen([sys.executable, "-c", code, str(path)])


def ledger(of: str, *lines: object) -> Path:
    """Write a ledger as a process would."""
    path = leftovers._folder() / of
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def of_a_dead_process() -> str:
    """Return the name of the ledger of a process that has ended: a PID of ours, used again."""
    return f"{leftovers._host()}~{os.getpid()}~1.jsonl"


def test_what_a_killed_process_wrote_is_deleted_by_the_next_that_writes(folder, ledgers):
    (folder / "page.html").write_text("old")
    assert killed(folder / "page.html").wait() == -signal.SIGKILL
    (temporary,) = [name for name in names(folder) if name.endswith(".tmp")]
    assert len(names(ledgers)) == 1
    with written(folder / "other.html") as file:
        file.write(b"whole")
        assert temporary not in names(folder)
    assert names(folder) == ["other.html", "page.html"]
    assert (folder / "page.html").read_text() == "old"


def test_what_a_running_process_writes_stays(folder, ledgers):
    process = killed(folder / "page.html", "SIGSTOP")
    try:
        until = time.monotonic() + 120
        while not names(folder) and time.monotonic() < until:
            time.sleep(0.05)
        tidy()
        assert len(names(folder)) == 1
        assert len(names(ledgers)) == 1
    finally:
        process.kill()
    process.wait()
    tidy()
    assert names(folder) == []
    assert names(ledgers) == []


FOREIGN = [
    ".page.html.1.tmp",
    ".page.html.0123456789abcdef0123456789abcdef.tmp",
    f".inscape-{'0' * 32}.tmp",
    "inscape.tmp",
    "0123456789abcdef.0123456789ab.npz",
]


def test_files_that_nobody_noted_stay_however_old_and_whatever_their_name(folder):
    for name in FOREIGN:
        (folder / name).write_text("mine")
        os.utime(folder / name, (0, 0))
    dead = ledger(of_a_dead_process())
    tidy()
    assert names(folder) == sorted(FOREIGN)
    assert not dead.exists()


def test_a_pid_that_is_used_again_is_another_process(folder):
    ours = temporary_path(folder / "a")
    ours.touch()
    ledger(of_a_dead_process(), {"file": str(ours)})
    tidy()
    assert names(folder) == []


@pytest.mark.parametrize(
    "name",
    [
        f"another-boot.1~{2**22 + 1}~1.jsonl",
        "{host}~{pid}~{start}.jsonl",
        "notes.jsonl",
        "{host}~x~1.jsonl",
    ],
)
def test_notes_of_another_machine_or_of_a_living_process_are_not_touched(folder, name):
    ours = temporary_path(folder / "a")
    ours.touch()
    start = leftovers._start(os.getpid())
    path = ledger(
        name.format(host=leftovers._host(), pid=os.getpid(), start=start), {"file": str(ours)}
    )
    tidy()
    assert names(folder) == [ours.name]
    assert path.exists()


def test_a_ledger_deletes_only_files_of_the_kinds_that_we_note(folder):
    ours, link, inner = (temporary_path(folder / "a") for _ in range(3))
    precious = folder / "precious.txt"
    precious.write_text("mine")
    link.symlink_to(precious)
    inner.mkdir()
    ours.touch()
    (folder / "kept.npz").touch()
    (folder / "kept.json").write_text('{"npz": {"file": "kept.npz"}}')
    ledger(
        of_a_dead_process(),
        {"file": str(precious)},
        {"file": str(folder)},
        {"file": str(link)},
        {"file": str(inner)},
        {"file": "relative"},
        {"file": str(precious), "unless_named_in": str(folder / "nothing")},
        {"file": str(folder / "kept.npz"), "unless_named_in": str(folder / "kept.json")},
        {"file": str(folder / "kept.npz"), "unless_named_in": str(folder)},
        {"file": 3},
        ["file"],
        "[" * 100_000,
        {"file": str(ours)},
    )
    tidy()
    assert names(folder) == sorted([link.name, inner.name, "precious.txt", "kept.npz", "kept.json"])


def test_a_line_that_was_cut_off_is_passed_over(folder):
    ours = temporary_path(folder / "a")
    ours.touch()
    path = ledger(of_a_dead_process(), {"file": str(ours)})
    path.write_text(path.read_text() + '{"file": "/tmp/.insc')
    tidy()
    assert names(folder) == []


def test_a_file_of_no_use_without_another_is_deleted_unless_that_names_it(folder):
    npz = folder / "key.0123456789ab.npz"
    npz.touch()
    ledger(of_a_dead_process(), {"file": str(npz), "unless_named_in": str(folder / "key.json")})
    tidy()
    assert names(folder) == []


def test_semaphores_of_the_dead_are_deleted_and_those_of_others_stay(folder, monkeypatch):
    monkeypatch.setattr(leftovers, "SEMAPHORES", folder)
    dead = ledger(of_a_dead_process())
    theirs = leftovers._prefix(dead.name)
    mine = semaphore_prefix()  # the first use of this process tidies up
    assert not dead.exists()
    ledger(dead.name)
    foreign = ["sem.loky-1-abc", "sem.mp-abc", f"sem.{theirs}", f"sem.{mine}-a", "sem.inscape-x"]
    for name in (*foreign, f"sem.{theirs}-a", f"sem.{theirs}-b"):
        (folder / name).touch()
    tidy()
    assert names(folder) == sorted(foreign)


def test_a_ledger_is_empty_when_all_is_done_and_gone_at_the_end(folder, ledgers):
    with noted(temporary_path(folder / "a")), noted(temporary_path(folder / "b")):
        (path,) = ledgers.iterdir()
        assert len(path.read_text().split()) == 4
    assert path.read_text() == ""
    leftovers._ledger().close()
    assert names(ledgers) == []


def test_without_a_place_for_ledgers_files_are_written_all_the_same(folder, monkeypatch):
    (folder / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "file"))
    with written(folder / "a") as file:
        file.write(b"whole")
    assert names(folder) == ["a", "file"]


def test_a_fork_keeps_a_ledger_of_its_own(folder, ledgers):
    with noted(temporary_path(folder / "a")):
        child = os.fork()
        if not child:
            with noted(temporary_path(folder / "b")):
                os._exit(len(names(ledgers)))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
        tidy()
        (own,) = ledgers.iterdir()
        assert f"~{os.getpid()}~" in own.name
        assert own.read_text()
