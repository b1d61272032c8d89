import os
import subprocess
import sys

import numpy as np
from numba import config

from inscape.runtime.compilation import compiled


@compiled
def total(values):
    """Sum in a loop."""
    result = 0.0
    for value in values:
        result += value
    return result


def test_kernel_gives_what_the_function_would():
    assert total(np.arange(10.0)) == 45.0
    assert total.__wrapped__(np.arange(10.0)) == 45.0
    assert total.__doc__ == "Sum in a loop."


def test_setting_of_numba_is_left_alone():
    before = config.CACHE_DIR
    total(np.ones(3))
    assert before == config.CACHE_DIR


def test_numba_is_loaded_when_a_kernel_is_first_called():
    code = "import sys, inscape.smoothness; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_cache_lies_in_our_folder(tmp_path):
    code = (
        "import torch; from inscape.smoothness.chords import variation\n"
        "print(variation(torch.tensor([[[0.0], [3.0], [1.0]]]), large=True).item())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "5.0\n"
    assert list((tmp_path / "cache" / "inscape" / "kernels").rglob("*.nbi"))


@compiled(reorder=False)
def finite(values):
    """Count what is finite, which a kernel that may reorder takes for granted."""
    return np.isfinite(values).sum()


def test_a_kernel_that_keeps_to_what_is_written_knows_infinity():
    assert finite(np.array([1.0, np.inf, np.nan])) == 1
    assert finite.__doc__.startswith("Count")
