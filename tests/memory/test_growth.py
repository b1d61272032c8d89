"""A process does not grow with the number of calls."""

import json
import linecache
import subprocess
import sys
from pathlib import Path

import pytest
from torch.fx import graph_module

from cases import dense, points
from inscape.ensembles import fit_many
from inscape.pruning import structure

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="memory is read from /proc, which Linux has"
)


@pytest.fixture(scope="module")
def grown():
    script = Path(__file__).with_name("growth.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_calls_on_one_model_leave_nothing(grown):
    assert grown["calls"] < 2**20  # of 200 calls; an export that is kept takes 70 kB, 14 MB in all


def test_models_that_differ_leave_little(grown):
    assert grown["models"] < 60 * 60_000  # of 60 exports; a graph that is kept takes 70 to 200 kB


def test_sources_of_traced_graphs_are_dropped():
    before = set(graph_module._loader.eval_cache)
    structure(dense(2, 3, 1), points(4, 2))
    assert set(graph_module._loader.eval_cache) == before


def test_sources_of_stacked_trainings_are_dropped():
    before, lines = set(graph_module._loader.eval_cache), set(linecache.cache)
    models = [dense(2, 3, 1) for _ in range(3)]
    runs = fit_many(models, points(4, 2), points(4, 1), epochs=2, backend="stacks", progress=False)
    assert len(list(runs)) == 3
    assert set(graph_module._loader.eval_cache) == before
    assert not [name for name in set(linecache.cache) - lines if "eval_with_key" in name]
