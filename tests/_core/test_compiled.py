import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from types import ModuleType

import numpy as np
from numba import config

from inscape._core.compiled import compiled


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


def test_setting_of_numba_is_given_back():
    total(np.ones(3))
    assert "inscape" not in config.CACHE_DIR


def test_threads_that_need_kernels_at_once_leave_numba_its_setting(monkeypatch):
    seen, theirs = [], config.CACHE_DIR

    def slow(function, **options):
        seen.append(config.CACHE_DIR)
        sleep(0.01)
        assert seen[-1] == config.CACHE_DIR
        return function

    monkeypatch.setattr("numba.njit", slow)
    kernels = [compiled(lambda one, k=k: one + k) for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda kernel: kernel(1), kernels)) == [1, 2, 3, 4]
    assert len(seen) == 4
    assert all("inscape" in one for one in seen)
    assert theirs == config.CACHE_DIR


def test_numba_is_loaded_when_a_kernel_is_first_called():
    code = "import sys, inscape.smoothness; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_cache_lies_in_our_folder(tmp_path):
    code = (
        "import torch; from inscape.smoothness.segments import variation\n"
        "print(variation(torch.tensor([[[0.0], [3.0], [1.0]]]), large=True).item())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "5.0\n"
    assert list((tmp_path / "cache" / "inscape" / "numba").rglob("*.nbi"))


@compiled(reorder=False)
def finite(values):
    """Count what is finite, which a kernel that may reorder takes for granted."""
    return np.isfinite(values).sum()


def test_a_kernel_that_keeps_to_what_is_written_knows_infinity():
    assert finite(np.array([1.0, np.inf, np.nan])) == 1
    assert finite.__doc__.startswith("Count")


def test_a_change_in_code_that_a_kernel_uses_compiles_it_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / name))
    other = ModuleType("other")
    for source in ("one", "two", "one"):
        monkeypatch.setattr("inspect.getsource", lambda module, source=source: source)
        kernel = compiled(finite.__wrapped__, reorder=False, uses=(other,))
        assert kernel(np.ones(2)) == 2
    assert len(list((tmp_path / "inscape" / "numba").iterdir())) == 2
