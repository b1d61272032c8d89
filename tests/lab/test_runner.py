"""A run computes what is missing, the same numbers everywhere, and tells what went wrong."""

import errno
import os
import random
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from inscape.cli.errors import exit_code
from inscape.files import atomic
from inscape.lab import RunError, Store, executor, plan, run, runner, worker
from inscape.lab.executors import NAMES, SerialExecutor, TaskOutcome, lost_task
from inscape.lab.runner import ATTEMPTS, tasks
from inscape.lab.worker import work
from inscape.runtime import progress


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")


def numbers(records) -> dict[str, tuple[float, float, bytes]]:
    """Return what must be the same bit for bit."""
    return {
        r.key: (r.values["sum"], r.values["careless"], r.values["x"].tobytes()) for r in records
    }


def test_a_run_writes_what_is_missing_and_nothing_else(toy, store):
    first = run(plan(toy.table, scale="smoke", seeds=2, store=store), store=store)
    assert (first.computed, first.reused, first.failures, first.notices) == (4, 0, (), ())
    done: list[TaskOutcome] = []
    todo = plan(toy.table, scale="smoke", store=store)
    second = run(todo, store=store, on_done=done.append)
    assert (second.computed, second.reused) == (2, 4)
    assert [len(item.keys) for item in done] == [1, 1]
    third = run(plan(toy.table, scale="smoke", store=store), store=store)
    assert (third.computed, third.reused) == (0, 6)
    assert len(toy.lines("pids.txt")) == 6
    again = run(plan(toy.table, scale="smoke", store=store, fresh=True), store=store)
    assert (again.computed, again.reused) == (6, 0)
    assert len(toy.lines("pids.txt")) == 12


def test_values_are_those_of_the_cell(toy, store):
    todo = plan(toy.table, scale="smoke", store=store)
    run(todo, store=store)
    for record, cell in zip(todo.records(store), todo.cells, strict=True):
        n = 40 * cell["size"]
        x = torch.randn(n, n, generator=torch.Generator().manual_seed(cell["seed"]))
        assert record.settings == cell
        np.testing.assert_allclose(record.values["x"], (x @ x)[:3].numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ['"float64"', "str(x.dtype)"])
def test_provenance_says_the_dtype_that_an_outcome_says(toy, store, dtype):
    toy.edit(('"careless": careless,', f'"dtype": {dtype},'))
    todo = plan(toy.table, scale="smoke", overrides={"size": [1]}, seeds=1, store=store)
    run(todo, store=store)
    (record,) = todo.records(store)
    assert record.provenance["dtype"] == ("float64" if "64" in dtype else "float32")


def test_a_failed_cell_with_long_settings_is_cut(toy, store):
    toy.edit(('"size": [1, 2]', '"size": [[1, 2]]'), ('2.0 * settings["size"]', "2.0"))
    todo = plan(toy.table, scale="smoke", overrides={"size": [[7] * 99]}, seeds=1, store=store)
    with pytest.raises(
        RunError, match=r"the cell size=\[7, 7, [7, ]{60,70}\.\.\. said TypeError: "
    ):
        run(todo, store=store)


def test_provenance_says_how_and_not_where(toy, store):
    toy.mark("warn-1")
    todo = plan(toy.table, scale="smoke", seeds=2, store=store)
    run(todo, store=store)
    quiet, loud, *_ = todo.records(store)
    about = quiet.provenance
    assert about["torch"] == torch.__version__
    assert (about["device"], about["threads"]) == ("cpu", 1)
    assert about["dtype"] == "float32"  # the default of PyTorch, where the cell says nothing
    assert about["executor"] == "serial"
    assert about["started"].endswith("+00:00")
    assert 0 < about["seconds"] < 60
    assert about["warnings"] == []
    assert loud.provenance["warnings"] == ["UserWarning: mind the gap"]
    text = store.path(quiet.experiment, quiet.scale, quiet.key).read_text()
    assert str(Path.home()) not in text
    assert str(toy.folder) not in text
    assert os.uname().nodename not in text
    assert set(quiet.claims) == {"one", "up", "figure-1/down"}


def test_a_run_leaves_threads_and_random_generators_alone(toy, store):
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    run(plan(toy.table, scale="smoke", store=store), store=store)
    after = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)
    assert torch.equal(before[0], after[0])
    assert before[1] == after[1]
    assert {line.split()[1] for line in toy.lines("pids.txt")} == {"1"}


def test_a_cell_gets_the_threads_that_its_experiment_asks_for(toy, store):
    toy.edit(("    cell=cell,", "    cell=cell,\n    threads=2,"))
    todo = plan(toy.table, scale="smoke", seeds=1, store=store)
    run(todo, store=store)
    assert {line.split()[1] for line in toy.lines("pids.txt")} == {"2"}
    assert {record.provenance["threads"] for record in todo.records(store)} == {2}


def test_careless_cells_draw_the_same_in_any_order():
    draws = []
    before = random.getstate()
    for key in ("ff", "aa", "ff"):
        with worker._seeded(key):
            draws.append((random.random(), torch.rand(()).item(), np.random.random()))  # noqa: NPY002
    assert random.getstate() == before
    assert draws[0] == draws[2]
    assert not set(draws[0]) & set(draws[1])


@pytest.mark.parametrize("jobs", [1, 3])
def test_joblib_gives_the_bits_of_serial(toy, tmp_path, jobs):
    here, there = Store(tmp_path / "serial"), Store(tmp_path / "joblib")
    one, other = (plan(toy.table, scale="smoke", store=s) for s in (here, there))
    run(one, store=here)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    report = run(other, store=there, executor=executor("joblib", jobs))
    torch.set_num_threads(threads)
    assert report.computed == 6
    assert numbers(one.records(here)) == numbers(other.records(there))
    assert {r.provenance["executor"] for r in other.records(there)} == {"joblib"}
    assert all(r.provenance["threads"] == 1 for r in other.records(there))
    processes = {line.split()[0] for line in toy.lines("pids.txt")[6:]}
    assert str(os.getpid()) not in processes


def test_cells_that_run_together_are_grouped_by_what_is_alike(toy, store):
    todo = plan(toy.together, scale="smoke", store=store)
    groups = [
        {(cell["size"], cell["seed"]) for cell in task.cells}
        for task in tasks(todo, store, SerialExecutor())
    ]
    assert sorted(map(sorted, groups)) == [
        [(1, 0), (1, 1), (1, 2), (1, 3)],
        [(1, 4), (1, 5)],
        [(2, 0), (2, 1), (2, 2), (2, 3)],
        [(2, 4), (2, 5)],
    ]
    assert len(tasks(todo, store, SerialExecutor(jobs=12))) == 12
    run(todo, store=store)
    result = [r.values["product"] for r in todo.records(store)]
    assert result == [cell["size"] * cell["seed"] / 3 for cell in todo.cells]
    assert sorted(toy.lines("calls.txt")) == ["2", "2", "4", "4"]


def test_the_longest_tasks_come_first(toy, store):
    todo = plan(toy.table, scale="smoke", store=store)
    sizes = [task.cells[0]["size"] for task in tasks(todo, store, SerialExecutor())]
    assert sizes == [2, 2, 2, 1, 1, 1]


@pytest.mark.parametrize("name", ["serial", "joblib"])
def test_a_cell_that_raises_does_not_stop_the_others(toy, store, name):
    toy.mark("bad-1")
    todo = plan(toy.table, scale="smoke", store=store)
    with pytest.raises(RunError) as caught:
        run(todo, store=store, executor=executor(name, 2))
    report = caught.value.report
    assert report.computed == 4
    assert [failure.settings["seed"] for failure in report.failures] == [1, 1]
    said = str(caught.value)
    assert said.startswith(f"2 of 6 cells of {toy.table} failed; the cell size=")
    assert "seed=1 said ZeroDivisionError: seed 1 is bad (table_1.py, line " in said
    assert said.endswith(
        "and 1 more failed: fix it and run the same command again, which computes only what is "
        "missing."
    )
    assert "\n" not in said
    assert exit_code(caught.value) == 1
    (toy.folder / "bad-1").unlink()
    again = run(plan(toy.table, scale="smoke", store=store), store=store)
    assert (again.computed, again.reused) == (2, 4)


def test_of_cells_that_run_together_the_one_at_fault_is_found(toy, store):
    toy.mark("bad-2")
    todo = plan(toy.together, scale="smoke", overrides={"size": [1]}, store=store)
    with pytest.raises(
        RunError, match=r"1 of 6 cells .* size=1, seed=2 said ZeroDivision"
    ) as caught:
        run(todo, store=store)
    assert caught.value.report.computed == 5


def test_cells_that_get_no_outcome_are_failures(toy, store):
    path = Path(toy.together)
    path.write_text(path.read_text().replace("yield index", "if index: yield index"))
    todo = plan(toy.together, scale="smoke", overrides={"size": [1]}, store=store)
    with pytest.raises(RunError, match="RuntimeError: together yielded no outcome for 1 of its"):
        run(todo, store=store)


def test_a_value_that_cannot_be_stored_is_the_fault_of_its_cell(toy, store):
    toy.edit(('"careless": careless', '"careless": {1, 2}'))
    with pytest.raises(RunError, match=r"TypeError: careless must be made of numbers.* found set"):
        run(plan(toy.table, scale="smoke", seeds=1, store=store), store=store)


FULL = """import errno
import os

from inscape.files import atomic as files


def full(path, content):
    raise OSError(errno.ENOSPC, "No space left on device", str(path))

"""


@pytest.mark.parametrize("name", ["serial", "joblib"])
def test_a_full_disk_ends_the_run(toy, store, name, monkeypatch):
    folder = store.folder("own-toys/table-1", "smoke")
    folder.mkdir(parents=True)
    toy.edit(("import os\n", FULL), ("time.sleep", "files.write = full\n    time.sleep"))
    monkeypatch.setattr(atomic, "write", atomic.write)  # put back after the test
    todo = plan(toy.table, scale="smoke", store=store)
    with pytest.raises(OSError, match="No space left") as caught:
        run(todo, store=store, executor=executor(name, 2))
    assert caught.value.errno == errno.ENOSPC
    assert Path(caught.value.filename).parent == folder
    assert exit_code(caught.value) == 1
    assert list(folder.iterdir()) == []


def test_a_damaged_record_is_computed_anew_and_said(toy, store):
    todo = plan(toy.table, scale="smoke", store=store)
    run(todo, store=store)
    before = numbers(todo.records(store))
    path = store.path(todo.name, "smoke", todo.keys[3])
    path.write_text(path.read_text()[:100])
    report = run(plan(toy.table, scale="smoke", store=store), store=store)
    assert (report.computed, report.reused) == (1, 5)
    assert len(report.notices) == 1
    assert "set aside" in report.notices[0]
    assert numbers(todo.records(store)) == before


def test_a_worker_that_dies_once_costs_nothing_but_time(toy, tmp_path):
    here, there = Store(tmp_path / "serial"), Store(tmp_path / "joblib")
    result = plan(toy.table, scale="smoke", store=here)
    run(result, store=here)
    toy.mark("kill-1")
    other = plan(toy.table, scale="smoke", store=there)
    report = run(other, store=there, executor=executor("joblib", 2))
    assert not (toy.folder / "kill-1").exists()
    assert report.computed == 6
    assert numbers(result.records(here)) == numbers(other.records(there))


def test_a_cell_that_always_kills_its_worker_is_named(toy, store):
    toy.mark("dies-1")
    todo = plan(toy.table, scale="smoke", overrides={"size": [1]}, store=store)
    with pytest.raises(
        RunError, match=rf"size=1, seed=1 said that its worker died {ATTEMPTS} times"
    ):
        run(todo, store=store, executor=executor("joblib", 2))
    assert [r.settings["seed"] for r in todo.records(store)] == [0, 2]


class Mortal:
    """Runs tasks here, and claims that the worker died after the first ``lives`` cells."""

    name = "mortal"
    jobs = 1

    def __init__(self, deadly: set[int]) -> None:
        self.deadly = deadly
        self.sizes: list[int] = []

    def run(self, tasks, work):
        for task in tasks:
            self.sizes.append(len(task.cells))
            if any(cell["seed"] in self.deadly for cell in task.cells):
                yield lost_task(task, "out of memory")
            else:
                yield work(task)


def test_a_lost_batch_is_halved_until_the_deadly_cell_is_alone(toy, store):
    todo = plan(toy.together, scale="smoke", overrides={"size": [1]}, store=store)
    mortal = Mortal({2})
    said = r"seed=2 said that its worker died 3 times \(out of memory\)"
    with pytest.raises(RunError, match=said) as caught:
        run(todo, store=store, executor=mortal)
    assert caught.value.report.computed == 5
    assert mortal.sizes == [4, 2, 2, 2, 1, 1, 1, 1]


def test_what_a_dying_worker_wrote_is_not_run_again(toy, store):
    class Late(Mortal):
        def run(self, tasks, work):
            for task in tasks:
                self.sizes.append(len(task.cells))
                done = work(task)
                yield lost_task(task, "late") if task.attempt == 1 and len(task.cells) > 1 else done

    late = Late(set())
    todo = plan(toy.together, scale="smoke", store=store, fresh=True)
    assert run(todo, store=store, executor=late).computed == 12
    assert late.sizes == [4, 4, 2, 2]
    again = plan(toy.together, scale="smoke", store=store, fresh=True)
    assert run(again, store=store, executor=Late(set())).computed == 12


def test_lost_cells_over_old_records_are_run_again(toy, store):
    todo = plan(toy.together, scale="smoke", overrides={"size": [1]}, store=store)
    run(todo, store=store)
    again = plan(toy.together, scale="smoke", overrides={"size": [1]}, store=store, fresh=True)
    with pytest.raises(RunError) as caught:
        run(again, store=store, executor=Mortal({2}))
    assert caught.value.report.computed == 5


def test_an_error_of_the_caller_stops_the_executor(toy, store):
    closed = []

    class Closing(SerialExecutor):
        def run(self, tasks, work):
            try:
                yield from super().run(tasks, work)
            finally:
                closed.append(True)

    def interrupt(done):
        raise KeyboardInterrupt

    todo = plan(toy.table, scale="smoke", store=store)
    with pytest.raises(KeyboardInterrupt):
        run(todo, store=store, executor=Closing(), on_done=interrupt)
    assert closed == [True]
    assert len(todo.records(store)) == 1


def test_progress_counts_cells_of_a_task_under_way(toy, store, capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress._Lines, "pause", 0.0)
    monkeypatch.setattr(runner, "_LOOK", 0.01)
    monkeypatch.setenv("TOY_SLEEP", "0.05")
    run(plan(toy.table, scale="smoke", seeds=1, store=store), store=store, quiet=False)
    run(plan(toy.table, scale="smoke", store=store), store=store, quiet=False)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("own-toys/table-1 3/6 (50%), 0:00 left") for line in lines)
    assert lines[-1].startswith("own-toys/table-1 6/6 (100%) in ")
    assert threading.active_count() < 10


def test_two_drivers_at_once_do_not_harm_each_other(toy, tmp_path):
    here, both = Store(tmp_path / "one"), Store(tmp_path / "both")
    result = plan(toy.table, scale="smoke", store=here)
    run(result, store=here)
    processes = [toy.start(both.root, "serial", "smoke") for _ in range(2)]
    said = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    assert numbers(result.records(both)) == numbers(result.records(here))
    assert both.notices == []
    left = [
        p.name for p in both.root.rglob("*") if p.is_file() and p.suffix not in (".json", ".npz")
    ]
    assert left == ["index.sqlite"]
    assert both.rebuild_index() == 6


def test_executors_are_known_by_name():
    assert executor("serial").jobs == 1
    assert (executor("joblib", 3).name, executor("joblib", 3).jobs) == ("joblib", 3)
    assert NAMES == ("serial", "joblib", "ray", "slurm")
    with pytest.raises(ValueError, match=r"executor must be one of 'serial', 'joblib', .* 'dask'"):
        executor("dask")
    with pytest.raises(ValueError, match="jobs must be at least 1, found 0"):
        executor("joblib", 0)


def test_work_is_importable_where_workers_are():
    assert (work.__module__, work.__qualname__) == ("inscape.lab.worker", "work")
