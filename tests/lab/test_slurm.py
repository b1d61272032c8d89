"""Slurm without a Slurm: submitit's own stand-ins, and small scripts in place of its commands."""

import itertools
import os
import re
import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from inscape.lab import Store, plan, run
from inscape.lab.cluster_slurm import SlurmExecutor
from inscape.lab.executors import SerialExecutor, executor
from inscape.lab.runner import tasks as tasks_of
from inscape.lab.slurm_options import SlurmOptions, slurm_options
from inscape.lab.worker import work

pytest.importorskip("submitit", reason="the extra slurm is not installed")

# Jobs get other numbers in each test, since submitit remembers how a job ended.
FIRST = itertools.count(1000, 100)

SCRIPTS = {
    "sbatch": """
n=$(($(cat FAKE/count) + 1)); echo $n >FAKE/count
cp "$1" FAKE/$n.sh
[ -e FAKE/refuses ] && { echo "sbatch: error: invalid partition specified: gold" >&2; exit 1; }
last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\)%.*/\\1/p' "$1")
if [ -n "$last" ]; then ids=$(seq -f "${n}_%.0f" 0 $last); else ids=$n; fi
for id in $ids; do echo PENDING >FAKE/state-$id; done
(for id in $ids; do
    [ -e FAKE/cancelled-$n ] && continue
    [ -e FAKE/never ] && { echo FAILED >FAKE/state-$id; continue; }
    echo RUNNING >FAKE/state-$id
    case $id in *_*) export SLURM_ARRAY_JOB_ID=$n SLURM_ARRAY_TASK_ID=${id#*_};; esac
    export SLURM_JOB_ID=$n SLURM_PROCID=0
    if bash FAKE/$n.sh; then echo COMPLETED >FAKE/state-$id; else echo FAILED >FAKE/state-$id; fi
done) >/dev/null 2>&1 </dev/null &
echo "Submitted batch job $n"
""",
    "srun": """
while true; do case $1 in
    --unbuffered) shift;;
    --output) shift 2;;
    --error) log=$(echo "$2" | sed "s/%A_%a/${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID/
        s/%j/$SLURM_JOB_ID/; s/%t/0/"); shift 2;;
    *) break;;
esac; done
"$@" 2>"$log" & echo $! >FAKE/pid-$SLURM_JOB_ID; wait $!
""",
    "sacct": """
[ -e FAKE/no-accounting ] && { echo "accounting storage is disabled" >&2; exit 1; }
echo "JobID|State|NodeList"
for file in FAKE/state-*; do echo "${file#*/state-}|$(cat $file)|here"; done
""",
    "squeue": "cd FAKE && grep -l -E 'PENDING|RUNNING' state-* | sed 's/state-//'; true\n",
    "scancel": """
for n in "$@"; do touch FAKE/cancelled-$n; kill $(cat FAKE/pid-$n); done
""",
}


@pytest.fixture
def fake(tmp_path, monkeypatch) -> Path:
    """Put a Slurm of shell scripts on the path; its folder keeps what was submitted."""
    folder = tmp_path / "fake"
    (folder / "bin").mkdir(parents=True)
    (folder / "count").write_text(f"{next(FIRST)}\n")
    for name, text in SCRIPTS.items():
        path = folder / "bin" / name
        path.write_text("#!/bin/bash\n" + text.replace("FAKE", str(folder)))
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    return folder


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in [name for name in os.environ if name.startswith("INSCAPE_SLURM_")]:
        monkeypatch.delenv(name)


def numbers(file, store, scale="smoke"):
    """Return the bits of all values of an experiment."""
    records = plan(file, scale=scale, store=store).records(store)
    return {record.key: {n: bits(v) for n, v in record.values.items()} for record in records}


def bits(value):
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)


def computed(file, root, where, scale="smoke"):
    """Run an experiment and return its store and report."""
    store = Store(root)
    return store, run(plan(file, scale=scale, store=store), store=store, executor=where)


def planned(file, root):
    """Return the tasks of an experiment."""
    store = Store(root)
    return tasks_of(plan(file, scale="smoke", store=store), store, slurm())


def slurm(jobs=2, **settings):
    return SlurmExecutor(jobs, **{"pause": 0.1, **settings})


def test_processes_of_submitit_give_the_numbers_of_a_serial_run(toy, tmp_path):
    here, _ = computed(toy.table, tmp_path / "here", SerialExecutor())
    there, report = computed(toy.table, tmp_path / "there", slurm(cluster="local"))
    assert report.computed == 6
    assert numbers(toy.table, there) == numbers(toy.table, here)
    assert [path.name for path in (tmp_path / "there" / ".slurm").iterdir()] == [".gitignore"]


def test_an_array_is_submitted_and_gives_the_numbers_of_a_serial_run(
    toy, tmp_path, fake, monkeypatch
):
    """Neither accounting nor the queue answers: the files alone say what is done."""
    (fake / "no-accounting").touch()
    (fake / "bin" / "squeue").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("INSCAPE_DATA_DIR", "some where")
    monkeypatch.setenv("INSCAPE_SLURM_PARTITION", "gold")
    monkeypatch.setenv("INSCAPE_SLURM_MEM", "1.5")
    here, _ = computed(toy.table, tmp_path / "here", SerialExecutor())
    where = slurm(slurm={"setup": "module() { :; }; module load python", "gpus": 0})
    there, report = computed(toy.table, tmp_path / "there", where)
    assert report.computed == 6
    assert numbers(toy.table, there) == numbers(toy.table, here)
    (script,) = fake.glob("*.sh")
    lines = script.read_text().splitlines()
    assert {
        "#SBATCH --array=0-1%2",
        "#SBATCH --partition=gold",
        "#SBATCH --mem=1536MB",
        "#SBATCH --cpus-per-task=1",
        "#SBATCH --time=60",
        "#SBATCH --job-name=inscape",
        "module() { :; }; module load python",
        "export OMP_NUM_THREADS=1",
        "export INSCAPE_QUIET=1",
        f"export INSCAPE_DATA_DIR='{Path.cwd() / 'some where'}'",
    } <= set(lines)
    assert not any("INSCAPE_SLURM" in line for line in lines)
    assert [path.name for path in (tmp_path / "there" / ".slurm").iterdir()] == [".gitignore"]


def test_a_killed_job_costs_its_cell_alone(toy, tmp_path, fake):
    here, _ = computed(toy.table, tmp_path / "here", SerialExecutor())
    before = len(toy.lines("pids.txt"))
    toy.mark("kill-1")
    lost = []
    store = Store(tmp_path / "there")
    report = run(
        plan(toy.table, scale="smoke", store=store),
        store=store,
        executor=slurm(jobs=1),
        on_done=lambda done: lost.extend([done.lost] if done.lost else []),
    )
    assert report.computed == 6
    assert numbers(toy.table, store) == numbers(toy.table, here)
    assert len(toy.lines("pids.txt")) - before == 7  # one cell began twice, the others once
    (why,) = lost
    log = re.fullmatch(r"Slurm job \d+ ended as FAILED, see (.*)", why)
    assert log is not None
    assert Path(log[1]).exists()  # for who wants to know why


def test_without_accounting_the_queue_tells_that_jobs_died(toy, tmp_path, fake):
    for name in ("no-accounting", "never"):
        (fake / name).touch()
    todo = planned(toy.table, tmp_path / "there")
    assert all("ended as UNKNOWN" in done.lost for done in slurm().run(todo, work))


def test_a_job_out_of_time_leaves_what_it_wrote(toy, tmp_path, fake):
    """SIGUSR2 is what Slurm sends some time before the end."""
    (toy.folder / "table_3.py").write_text(OUT_OF_TIME)
    file = str(toy.folder / "table_3.py")
    lost = []
    store = Store(tmp_path / "there")
    report = run(
        plan(file, scale="smoke", store=store),
        store=store,
        executor=slurm(jobs=1),
        on_done=lambda done: lost.extend([done.lost] if done.lost else []),
    )
    assert report.computed == 3
    assert lost == ["its job ran out of time or was preempted"]
    assert toy.lines("began.txt") == ["0", "1", "2", "1"]


OUT_OF_TIME = '''"""A cell that is told to stop, once."""

import os
import signal
import time
from pathlib import Path

from inscape.lab import Experiment

BEGAN = Path(__file__).parent / "began.txt"


def cell(seed):
    """Note the start."""
    with BEGAN.open("a") as file:
        file.write(f"{seed}\\n")
    if seed == 1 and BEGAN.read_text().count("1") == 1:
        os.kill(os.getpid(), signal.SIGUSR2)
        time.sleep(10)
    return {"twice": 2 * seed}


EXPERIMENT = Experiment(shows="Table 3", title="Stops", cell=cell, smoke={"seed": range(3)})
'''


def test_jobs_that_never_start_lose_all_their_cells(toy, tmp_path, fake):
    (fake / "never").touch()
    todo = planned(toy.table, tmp_path / "there")
    outcomes = list(slurm().run(todo, work))
    assert len(outcomes) == 6
    assert all("ended as FAILED" in done.lost for done in outcomes)


def test_an_error_of_the_disk_ends_the_run_as_it_does_here(toy, tmp_path, fake, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(toy.folder))
    monkeypatch.syspath_prepend(toy.folder)
    (toy.folder / "full.py").write_text(
        "def work(task):\n    raise OSError(28, 'No space left on device', task.root)\n"
    )
    todo = planned(toy.table, tmp_path / "there")
    with pytest.raises(OSError, match="No space left") as caught:
        list(slurm().run(todo, import_module("full").work))
    assert caught.value.errno == 28
    assert list(fake.glob("cancelled-*"))


def test_an_interrupt_cancels_the_jobs(toy, tmp_path, fake, monkeypatch):
    monkeypatch.setenv("TOY_SLEEP", "60")
    pause = time.sleep

    def interrupted(seconds):
        if (toy.folder / "pids.txt").exists():
            raise KeyboardInterrupt
        pause(seconds)

    monkeypatch.setattr(time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        computed(toy.table, tmp_path / "there", slurm())
    (cancelled,) = fake.glob("cancelled-*")
    (script,) = fake.glob("*.sh")
    assert cancelled.name == f"cancelled-{script.stem}"


def test_a_refused_submission_is_one_sentence(toy, tmp_path, fake):
    (fake / "refuses").touch()
    with pytest.raises(RuntimeError, match=r"sbatch refused the jobs \(.*partition.*\): check "):
        computed(toy.table, tmp_path / "there", slurm())


def test_no_slurm_is_one_sentence(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="needs the command sbatch, found none: run it on a log"):
        computed(toy.table, tmp_path / "there", executor("slurm", 2))


def test_submitit_not_installed_is_one_sentence(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(ImportError, match=r"'slurm' needs .* run pip install 'inscape\[slurm\]'"):
        computed(toy.table, tmp_path / "there", executor("slurm", 2))


def test_fewer_cpus_than_threads_are_refused(toy, tmp_path):
    todo = planned(toy.table, tmp_path / "there")
    wide = [replace(task, threads=2) for task in todo]
    with pytest.raises(ValueError, match=r"'cpus' must be at least 2, .* found 1: raise it"):
        list(slurm(slurm={"cpus": 1}).run(wide, work))


def test_many_short_tasks_share_jobs(toy, tmp_path, fake):
    """18 seconds of work are one job, 18 hours are one for each task."""
    (fake / "never").touch()
    todo = planned(toy.table, tmp_path / "there")
    list(slurm(1).run(todo, work))
    list(slurm(1).run([replace(task, seconds=3 * 3600) for task in todo], work))
    first, second = (path.read_text() for path in sorted(fake.glob("*.sh")))
    assert "--array" not in first
    assert "#SBATCH --array=0-5%1" in second
    assert "#SBATCH --time=540" in second


def test_nothing_to_do_submits_nothing(fake):
    assert list(slurm().run([], work)) == []
    assert list(fake.glob("*.sh")) == []


def test_options_of_the_call_win_over_the_environment_over_the_file(tmp_path, monkeypatch):
    config = tmp_path / "slurm.toml"
    config.write_text('[slurm]\npartition = "a"\ntime = 30\nmem = 8\nsetup = ["x", "y"]\n')
    monkeypatch.setenv("INSCAPE_SLURM_CONFIG", str(config))
    monkeypatch.setenv("INSCAPE_SLURM_TIME", "40")
    monkeypatch.setenv("INSCAPE_SLURM_PARTITION", "b")
    assert slurm_options({"partition": "c", "gpus": 1}) == SlurmOptions(
        partition="c", time=40, gpus=1, mem=8.0, setup=("x", "y")
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TIMES", "3", r"the environment names a Slurm option 'times' that is not known: choose f"),
        ("TIME", "1:00:00", r"'time' in the environment must be an integer of minutes, at lea"),
        ("CPUS", "0", r"'cpus' in the environment must be an integer, at least 1, found '0'"),
        ("CPUS", "1.5", r"'cpus' in the environment must be an integer, at least 1, found"),
        ("MEM", "8G", r"'mem' in the environment must be a number of GB, at least 0.001, found"),
    ],
)
def test_bad_options_of_the_environment_are_named(monkeypatch, name, value, said):
    monkeypatch.setenv(f"INSCAPE_SLURM_{name}", value)
    with pytest.raises(ValueError, match=said):
        slurm_options()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[slurm]\npartition = 3\n", "'partition' in the file in .* must be text, found 3: put it"),
        ("[slurm]\nsetup = [1]\n", r"'setup' in the file in .* must be text, found \[1\]: put it"),
        ("[slurm]\nnodes = 3\n", "the file in INSCAPE_SLURM_CONFIG names a Slurm option 'nodes'"),
        ("[slrm]\n", r"must hold a table \[slurm\], found slrm: add it"),
        ("", r"must hold a table \[slurm\], found nothing: add it"),
        ("[slurm", "must be a TOML file, found an error: .*: fix it"),
        (None, "INSCAPE_SLURM_CONFIG must name a TOML file, found no file .*: correct or unset"),
    ],
)
def test_bad_files_are_named(tmp_path, monkeypatch, text, said):
    config = tmp_path / "slurm.toml"
    if text is not None:
        config.write_text(text)
    monkeypatch.setenv("INSCAPE_SLURM_CONFIG", str(config))
    with pytest.raises(ValueError, match=said):
        slurm_options()
