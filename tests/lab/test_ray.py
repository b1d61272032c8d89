"""Ray on this machine: a cluster of our own, and one of two nodes that somebody else started."""

import json
import os
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from inscape.lab import Store, plan, run
from inscape.lab.cluster_ray import RayExecutor
from inscape.lab.executors import SerialExecutor, executor
from inscape.lab.worker import work

# Ray keeps much of its state in the process, hence it runs in processes of its own here.
if find_spec("ray") is None:
    pytest.skip("the extra ray is not installed", allow_module_level=True)

NODES = '''"""Products of random matrices, by cells that note where they ran."""

import os
import signal
import sys
import time
from pathlib import Path

import torch

from inscape.lab import Experiment

HERE = Path(__file__).parent


def where():
    """Return the node, the threads and the folder of data, as a worker sees them."""
    ray = sys.modules.get("ray")
    node = ray.get_runtime_context().get_node_id() if ray and ray.is_initialized() else "here"
    limit = os.environ.get("OMP_NUM_THREADS")
    return f"{node} {torch.get_num_threads()} {limit} {os.environ.get('INSCAPE_DATA_DIR')}"


def cell(seed, size):
    """Note where, wait until both nodes have had their turn, and multiply."""
    with (HERE / "where.txt").open("a") as file:
        file.write(f"{seed} {where()}\\n")
    if (once := HERE / f"kill-{seed}").exists():
        once.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if (HERE / f"dies-{seed}").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)
    x = torch.randn(size, size, generator=torch.Generator().manual_seed(seed))
    return {"sum": float((x @ x).sum()), "x": (x @ x)[:3].numpy()}


EXPERIMENT = Experiment(
    shows="Table 3",
    title="Where",
    cell=cell,
    smoke={"seed": range(6), "size": [50, 200]},
    laptop={"seed": range(2), "size": [50]},
)
'''

CLUSTER = '''"""Start two nodes of one CPU each, say where, and end with the input."""

import sys

from ray.cluster_utils import Cluster

if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False})
    cluster.add_node()
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()
'''


DRIVER = '''"""What a user does on a cluster: FUNCTION FILE ROOT; says what became of it in JSON."""

import json
import sys
from dataclasses import replace

import full

from inscape.lab import RunError, Store, executor, plan, run
from inscape.lab.runner import tasks
from inscape.lab.worker import work

RAY = executor("ray", 2)


def said(error):
    """Return the kind and the text of an error."""
    return f"{type(error).__name__}: {error}"


def whole(file, root):
    """Run all."""
    lost = []
    todo = plan(file, scale="smoke", store=Store(root))
    report = run(
        todo, store=Store(root), executor=RAY, on_done=lambda done: lost.append(done.lost)
    )
    return {"computed": report.computed, "lost": [why for why in lost if why]}


def stopped(file, root):
    """Meet what stops a run: a cell that always dies, a full disk, too few CPUs."""
    store = Store(root)
    todo = plan(file, scale="laptop", store=store)
    made, errors = tasks(todo, store, RAY), []
    for run_it in (
        lambda: run(todo, store=store, executor=RAY),
        lambda: list(RAY.run(made, full.work)),
        lambda: list(RAY.run([replace(made[0], threads=3)], work)),
    ):
        try:
            run_it()
        except (RunError, OSError, RuntimeError) as error:
            errors.append(said(error))
    connected = sys.modules["ray"].is_initialized()
    return {"errors": errors, "written": len(todo.records(store)), "connected": connected}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
'''

FULL = '''"""Work on a full disk, while another task takes long."""

import time


def work(task):
    """Wait or raise."""
    if task.cells[0]["seed"] == 1:
        time.sleep(300)
    raise OSError(28, "No space left on device", task.root)
'''


@pytest.fixture(scope="module")
def two_nodes():
    """Return the environment that leads to a cluster of two nodes, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="two-") as folder:
        script = Path(folder, "cluster.py")
        script.write_text(CLUSTER)
        around = without_ray() | {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": "0123456789abcdef" * 4,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": folder,
        }
        cluster = subprocess.Popen(
            [sys.executable, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=around,
        )
        address = cluster.stdout.readline().strip()
        assert address, "the cluster did not start"
        yield around | {"RAY_ADDRESS": address}
        cluster.communicate()


def without_ray():
    """Return our environment without anything about Ray."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}


def driven(toy, what, *given, around):
    """Run a function of the driver in a process of its own; return what it said."""
    for name, text in {"driver.py": DRIVER, "full.py": FULL}.items():
        (toy.folder / name).write_text(text)
    words = [sys.executable, toy.folder / "driver.py", what, *given]
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, env=around, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.fixture
def nodes(toy) -> str:
    """Return the file of an experiment whose cells note where they ran."""
    file = toy.folder / "table_3.py"
    file.write_text(NODES)
    return str(file)


def numbers(file, store):
    """Return the bits of all values of an experiment."""
    records = plan(file, scale="smoke", store=store).records(store)
    return {record.key: {n: bits(v) for n, v in record.values.items()} for record in records}


def bits(value):
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)


def computed(file, root, where):
    """Run an experiment and return its store."""
    store = Store(root)
    run(plan(file, scale="smoke", store=store), store=store, executor=where)
    return store


def test_two_nodes_give_the_numbers_of_a_serial_run_though_a_worker_is_killed(
    toy, nodes, tmp_path, two_nodes
):
    here = computed(nodes, tmp_path / "here", SerialExecutor())
    (toy.folder / "where.txt").unlink()
    toy.mark("kill-3")
    around = two_nodes | {"INSCAPE_DATA_DIR": "data", "INSCAPE_QUIET": "1"}
    outcome, complained = driven(toy, "whole", nodes, tmp_path / "there", around=around)
    died = "WorkerCrashedError: The worker died unexpectedly while executing this task"
    assert outcome == {"computed": 12, "lost": [died]}
    assert complained == ""
    assert numbers(nodes, Store(tmp_path / "there")) == numbers(nodes, here)
    lines = [line.split(maxsplit=4) for line in toy.lines("where.txt")]
    assert len(lines) == 13  # one cell began twice, the others once
    assert len({line[1] for line in lines}) == 2  # nodes
    assert {tuple(line[2:]) for line in lines} == {("1", "1", str(Path.cwd() / "data"))}


def test_what_stops_a_run_stops_it_on_a_cluster_too(toy, nodes, tmp_path, two_nodes):
    toy.mark("dies-1")
    outcome, _ = driven(toy, "stopped", nodes, tmp_path / "there", around=two_nodes)
    died, full, small = outcome.pop("errors")
    assert re.match(r"RunError: 1 of 2 cells .*seed=1.* said that its worker died 3 times", died)
    assert full == f"OSError: [Errno 28] No space left on device: '{tmp_path / 'there'}'"
    assert re.match(r"RuntimeError: a task needs 3 CPUs on one node, .* has 1: add a node", small)
    assert outcome == {"written": 1, "connected": False}


def test_a_cluster_of_our_own_is_silent_and_leaves_nothing_behind(toy, tmp_path):
    """As a user starts it; neither the home nor the temporary folder keeps a file.

    Ray kills its workers, so that their ledgers stay until the next run tidies them.
    """
    here = computed(toy.table, tmp_path / "here", SerialExecutor())
    home = tmp_path / "home"
    home.mkdir()
    with tempfile.TemporaryDirectory(prefix="own-") as folder:
        around = without_ray() | {"HOME": str(home), "TMPDIR": folder, "INSCAPE_QUIET": "1"}
        said = driven(toy, "whole", toy.table, tmp_path / "there", around=around)
        assert list(Path(folder).iterdir()) == []
    assert said == ({"computed": 6, "lost": []}, "")
    tidied = "from inscape.files.leftovers import tidy; tidy()"
    subprocess.run([sys.executable, "-c", tidied], env=os.environ | around, check=True)
    assert [path for path in home.rglob("*") if not path.is_dir()] == []
    assert numbers(toy.table, Store(tmp_path / "there")) == numbers(toy.table, here)


def test_nobody_at_the_address_is_one_sentence(toy, tmp_path):
    said = r"no Ray cluster at '127.0.0.1:1' \(.*refused.*\): start one there with ray start"
    with pytest.raises(RuntimeError, match=said):
        computed(toy.table, tmp_path / "there", RayExecutor(2, address="127.0.0.1:1"))


def test_ray_not_installed_is_one_sentence(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"'ray' needs .* run pip install 'inscape\[ray\]'"):
        computed(toy.table, tmp_path / "there", executor("ray", 2))


def test_nothing_to_do_starts_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert list(RayExecutor(2).run([], work)) == []
