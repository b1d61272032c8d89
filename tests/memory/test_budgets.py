"""Functions with a budget of memory keep to it, where they would take more without it."""

import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import inscape
from memory.memory_cases import BUDGET, CASES, FITTING

#: What a process takes beside the budget: buffers of libraries, and pages that are not full.
SLACK = 6 * 2**20

#: Blocks from this size on are given back as soon as they are freed: then the memory of the process
#: is that of its live tensors, whatever holes the heap has.
EXACT = {"MALLOC_MMAP_THRESHOLD_": str(2**16)}

#: Calls whose growth is measured with the usual heap, too, holes included.
WITH_HOLES = (
    "gradient_norm",
    "path_length",
    "gradient_path_length",
    "gradient_deflection",
    "rugosity",
    "effective_length_scale",
    "extrapolation",
    "robustness",
    "lipschitz",
    "fisher_rao_norm",
    "interpolation",
    "local_maps",
    "plane_regions",
    "boundary",
)

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc, which Linux has"
)


def measured(*options, **environment):
    script = Path(__file__).with_name("peaks.py")
    done = subprocess.run(
        [sys.executable, str(script), *options],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def live():
    return measured(**EXACT)


@pytest.fixture(scope="module")
def grown():
    repeats = ("--repeats", "3", "--enough", str(2 * BUDGET + SLACK))
    return measured(*repeats, "--small-only", *WITH_HOLES)


@needs_proc
@pytest.mark.parametrize("name", CASES)
def test_live_memory_stays_within_the_budget(name, live):
    row = live[name]
    assert row["small"] <= BUDGET + SLACK + row["result"]
    assert row["large"] >= 1.5 * row["small"]  # so that it is the budget that keeps it low


@needs_proc
@pytest.mark.parametrize("name", FITTING)
def test_what_is_said_to_fit_does(name, live):
    row = live[name]
    assert row["result"] > 0
    assert row["small"] <= BUDGET + SLACK + row["result"]


@needs_proc
@pytest.mark.parametrize("name", WITH_HOLES)
def test_the_process_grows_by_little_more(name, grown):
    assert grown[name]["small"] <= 2 * BUDGET + SLACK + grown[name]["result"]


def budgeted():
    """Yield the name of every function and method of the families with a ``memory`` argument."""
    for family in {entry.family for entry in inscape.instruments().values()}:
        module = importlib.import_module(f"inscape.{family}")
        for name in module.__all__:
            thing = getattr(module, name)
            own = vars(thing).items() if inspect.isclass(thing) else [("__init__", thing)]
            for method, function in own:
                if (
                    inspect.isfunction(function)
                    and "memory" in inspect.signature(function).parameters
                ):
                    yield name if method == "__init__" else method


def test_every_function_with_a_budget_is_measured():
    public = set(budgeted())
    assert {"gradient_norm", "PathWatch", "input_maps", "tangent_features"} <= public
    assert public - {name.split(",")[0] for name in CASES} == set()
