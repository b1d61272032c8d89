"""Deadlines by a clock that the test drives."""

import time

import pytest

from inscape.runtime.deadline import NEVER, Deadline, clock


def test_a_deadline_comes_when_its_clock_says_so():
    now = [100.0]
    with clock(lambda: now[0]):
        deadline = Deadline.after(8.0)
    assert (deadline.until, deadline.left(), deadline.passed()) == (108.0, 8.0, False)
    assert deadline.part(0.25).until == 102.0
    now[0] = 108.0
    assert (deadline.left(), deadline.passed()) == (0.0, True)
    assert Deadline.after(1.0).clock is time.monotonic  # outside the clock is the machine's again


def test_without_a_time_it_never_comes():
    assert Deadline.after(None).is_never
    assert not NEVER.passed()
    assert NEVER.part(0.5) is NEVER


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_times_that_are_none_are_refused(seconds):
    with pytest.raises(ValueError, match=f"seconds must be above 0, found {seconds}: raise"):
        Deadline.after(seconds)
