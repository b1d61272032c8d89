"""Killed, interrupted and restarted runs end in the records of an undisturbed one."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from inscape.lab import Store, plan, run

pytestmark = pytest.mark.slow

SEEDS = 160
KILLS = 20


def values(store: Store, keys) -> dict[str, tuple[float, float, bytes]]:
    return {
        r.key: (r.values["sum"], r.values["careless"], r.values["x"].tobytes())
        for r in store.records("own-toys/table-1", "laptop", keys)
    }


def gone(pid: int, *, within: float = 15.0) -> bool:
    """Tell whether a process ends in time."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":  # ended, and nobody asked for its exit code
            return True
        time.sleep(0.1)
    return False


def written(folder: Path, records: int) -> None:
    """Wait until there are so many records, however slow the machine is; at most a minute."""
    until = time.monotonic() + 60
    while len(list(folder.glob("*.json"))) < records and time.monotonic() < until:
        time.sleep(0.01)


def workers(toy, since: int) -> set[int]:
    return {int(line.split()[0]) for line in toy.lines("pids.txt")[since:]}


def killed_with_its_workers(toy, root: Path, moment: float) -> set[int]:
    """Kill a joblib run some time after its workers have begun, and return those."""
    since = len(toy.lines("pids.txt"))
    process = toy.start(root, "joblib", "laptop")
    until = time.monotonic() + 60
    while len(toy.lines("pids.txt")) == since and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(moment)
    process.kill()
    process.communicate()  # ends when the workers do: they hold its pipes
    assert process.returncode == -signal.SIGKILL
    return workers(toy, since)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_twenty_kills_and_restarts_give_the_records_of_one_run(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_SEEDS", str(SEEDS))
    calm, rough = Store(tmp_path / "calm"), Store(tmp_path / "rough")
    todo = plan(toy.table, scale="laptop", store=calm)
    run(todo, store=calm)
    moments = random.Random(0)
    pids: set[int] = set()
    counts = []
    monkeypatch.setenv("TOY_SLEEP", "0.02")
    folder = rough.folder("own-toys/table-1", "laptop")
    served = toy.start()
    for kill in range(KILLS):
        if kill % 10 == 4:
            pids |= killed_with_its_workers(toy, rough.root, moments.uniform(0.0, 0.2))
            continue
        served.stdin.write(f"{toy.table}\t{rough.root}\tserial\tlaptop\n")
        served.stdin.flush()
        said = dict(sorted(served.stdout.readline().split() for _ in range(2)))
        counts.append(int(said["missing"]))
        written(folder, SEEDS - counts[-1] + moments.randrange(3))
        time.sleep(moments.uniform(0.0, 0.03))
        os.kill(int(said["pid"]), signal.SIGKILL)
        assert served.stdout.readline() == f"ended {-signal.SIGKILL}\n"
    served.communicate()
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == SEEDS
    assert 0 < counts[-1] < SEEDS - KILLS // 2  # something was done, and something left to do
    last = toy.start(rough.root, "serial", "laptop")
    out, err = last.communicate(timeout=120)
    assert last.returncode == 0, err
    assert "corrupt" not in out
    assert values(rough, todo.keys) == values(calm, todo.keys)
    assert rough.notices == []
    assert all(gone(pid) for pid in pids)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("name", ["serial", "joblib"])
def test_ctrl_c_exits_with_130_and_leaves_whole_files(toy, tmp_path, monkeypatch, name):
    monkeypatch.setenv("TOY_SEEDS", "2000")
    monkeypatch.setenv("TOY_SLEEP", "0.01")
    store = Store(tmp_path / "results")
    process = toy.start(store.root, name, "laptop")
    folder = store.folder("own-toys/table-1", "laptop")
    written(folder, 5)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers, too
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err == "interrupted: nothing was left half written.\n"
    assert "computed" not in out
    assert all(gone(pid) for pid in workers(toy, 0))
    assert len(store.records("own-toys/table-1", "laptop")) >= 5
    assert store.notices == []
