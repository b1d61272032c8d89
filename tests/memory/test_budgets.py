"""Instruments with a budget of memory stay near it, where they would take more without it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: Bytes that each of them is given, as in ``peaks.py``.
BUDGET = 16 * 2**20

#: What a process takes beside the budget: buffers of libraries, and pages that are not full.
SLACK = 6 * 2**20

CALLS = (
    "gradient_norm",
    "path_length",
    "gradient_path_length",
    "gradient_deflection",
    "rugosity",
    "local_maps",
    "extrapolation",
    "robustness",
    "fisher_rao_norm",
    "interpolation",
    "plane_regions",
    "boundary",
)

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc, which Linux has"
)


@pytest.fixture(scope="module")
def peaks():
    script = Path(__file__).with_name("peaks.py")
    done = subprocess.run(
        [sys.executable, str(script), *CALLS], capture_output=True, text=True, check=True
    )
    rows = map(json.loads, done.stdout.splitlines())
    return {row["name"]: row for row in rows}


@pytest.mark.parametrize("name", CALLS)
def test_the_peak_stays_near_the_budget(name, peaks):
    row = peaks[name]
    assert row["small"] <= 2 * BUDGET + SLACK + row["result"]
    assert row["large"] >= 1.5 * row["small"]  # so that it is the budget that keeps it low
