"""Kernels are compiled before the time of a look runs, or within its budget, never amid a step."""

import subprocess
import sys

import pytest

from inscape.models import mlp
from inscape.report.look import warmup
from inscape.report.look.session import COMPILING, prepare
from inscape.runtime.deadline import clock

#: Prints the kernels that networks need beyond those that were made ready; no compilation can be
#: interrupted, so that one amid a step takes the time of all that come after.
BEYOND = """
import gc
import sys
import torch
from torch import nn
from inscape._core import instruments
from inscape.runtime.progress import silence
from inscape.models import mlp
from inscape.report.look.warmup import compile_ahead

def signatures():
    from numba.core.dispatcher import Dispatcher
    kernels = [kernel for kernel in gc.get_objects() if isinstance(kernel, Dispatcher)]
    return {
        (kernel.py_func.__name__, str(signature))
        for kernel in kernels
        if kernel.py_func.__module__.startswith("inscape.piecewise")
        and type(kernel._cache).__name__ != "NullCache"  # not a part of other kernels
        for signature in kernel.signatures
    }

compile_ahead(["line_regions"])
ready = signatures()
assert len(ready) > 20, ready
torch.manual_seed(0)
images, rows, classes = torch.rand(20, 1, 8, 8), torch.rand(20, 6), torch.arange(20) % 3
pooled = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3),
)
averaged = nn.Sequential(
    nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 3)
)
networks = [(mlp(6, 32, 32, 32, 3), rows), (mlp(6, 8, 3), rows), (pooled, images)]
networks += [(mlp(6, 20, 3).double(), rows.double()), (averaged, images)]
for model, x in networks:
    for name in ("line_regions", "plane_regions", "boundary", "region_at"):
        instrument = instruments()[name]
        with silence(True):
            steps = instrument.refine(model.eval(), x, classes)
            for _, _ in zip(range(6), steps):
                pass
print(sorted(signatures() - ready), file=sys.stderr)
sys.exit(bool(signatures() - ready))
"""


def test_no_kernel_is_compiled_amid_a_look():
    done = subprocess.run(
        [sys.executable, "-c", BEYOND], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


class Time:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(("takes", "counts"), [(0.5, 0.5), (20.0, 20.0), (90.0, 30.0)])
def test_making_kernels_ready_is_part_of_the_budget(takes, counts, monkeypatch, regression):
    """All of it counts, unless that would leave less than half of the budget."""
    time = Time()

    def compiled(names):
        time.now += takes

    monkeypatch.setattr(sys.modules[prepare.__module__], "compile_ahead", compiled)
    with clock(time):
        prepared = prepare(mlp(3, 4, 1).double().eval(), regression, budget=60.0, only="rugosity")
        assert prepared.subject.clock.left == pytest.approx(60.0 - counts)
    assert COMPILING * 60.0 == 30.0


def test_what_needs_no_kernels_waits_for_none(monkeypatch):
    monkeypatch.setattr(warmup, "_run", lambda name: pytest.fail("a kernel was compiled"))
    warmup.compile_ahead(["rugosity", "path_length"])
