"""Every allowed operator survives hostile arguments: it answers or raises, and ends no process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inscape.loaders.operators import OPERATORS

#: Calls of each operator; ``HOSTILE_DRAWS=1000`` for a long search.
DRAWS = int(os.environ.get("HOSTILE_DRAWS", "8"))
PARTS = 2
ADDRESSES = 3_000_000_000
SCRIPT = Path(__file__).with_name("operator_calls.py")


@pytest.mark.parametrize("part", range(PARTS))
def test_no_allowed_operator_ends_the_process(part):
    words = ["-W", "ignore", str(SCRIPT), str(DRAWS), str(part), str(PARTS), str(ADDRESSES)]
    process = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(SCRIPT.parents[1]), *sys.path]),
        },
        check=False,
    )
    last = process.stderr[-500:]
    assert process.returncode == 0, f"ended by {process.returncode} after: {last}"
    counts = json.loads(process.stdout)
    assert counts.keys() == set(sorted(OPERATORS)[part::PARTS])
    answered = sum(counts.values()) / (DRAWS * len(counts))
    assert answered > 0.35, "too few calls get as far as an operator's kernel"
