"""Steps along segments end in time, with a clock that the test drives and rows of declared cost."""

import pytest
import torch

from inscape._core.anytime import batches, step_within
from inscape.runtime.deadline import clock
from inscape.smoothness import effective_length_scale, gradient_norm, path_length


class Time:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    moment = Time()
    with clock(moment):
        yield moment


def slow(time, row=1.0):
    """Return a function of two inputs whose rows take a declared time."""

    def f(x):
        time.now += row * len(x)
        return torch.sin(3 * x)

    return f


INSTRUMENTS = [effective_length_scale, path_length, gradient_norm]


def longest_step(steps, time):
    """Return the longest time between two steps until there is a result, and the whole time."""
    start = begun = time.now
    longest = 0.0
    for result in steps:
        longest, begun = max(longest, time.now - begun), time.now
        if result is not None:
            return longest, time.now - start
    raise AssertionError("there was no result")


@pytest.mark.parametrize("instrument", INSTRUMENTS[:2], ids=lambda function: function.__name__)
def test_a_first_answer_that_takes_many_rows_pauses_between_them(instrument, time):
    """On MobileNetV2 the first answer took eight seconds, and was lost if interrupted."""
    x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with batches(1):
        patient = longest_step(instrument.refine(slow(time), x), time)
        with step_within(1.5):
            longest, whole = longest_step(instrument.refine(slow(time), x), time)
    assert patient == (whole, whole)
    assert longest <= whole / 2  # the probe of a function, before its first step, is not split


@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda function: function.__name__)
def test_without_a_consumer_that_waits_every_step_has_a_result(instrument, time):
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with batches(1):
        steps = instrument.refine(slow(time), x)
        assert all(next(steps) is not None for _ in range(5))
