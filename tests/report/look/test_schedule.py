"""Time by value, with a clock that the test drives and tasks of declared cost."""

import math

import pytest

from inscape._core.anytime import patience
from inscape.report.look.schedule import LEAST, LookTask, TaskSchedule
from inscape.report.look.watch import BudgetWatch, Interrupted
from inscape.runtime.deadline import clock


class Time:
    """A clock that stands still unless somebody works."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    moment = Time()
    with clock(moment):
        yield moment


class Estimate:
    """An answer whose interval narrows as the root of the steps."""

    def __init__(self, steps, width):
        self.steps, self.width = steps, width / math.sqrt(steps)


def task(time, name, *, cost, steps=math.inf, width=1.0, role="network", **more):
    def start():
        k = 0
        while k < steps:
            k += 1
            time.now += cost
            yield Estimate(k, width)

    return LookTask(
        name=name, role=role, start=start, gain=lambda answer: answer.width if answer else 1, **more
    )


def scheduled(budget, slice=0.5):
    return TaskSchedule(BudgetWatch(budget), slice=slice)


def test_everything_has_an_answer_after_the_first_round(time):
    tasks = [task(time, str(k), cost=0.01 * 2**k) for k in range(6)]
    scheduled(10.0).first(tasks)
    assert [t.answer.steps for t in tasks] == [50, 25, 13, 7, 4, 2]
    assert time.now <= 6 * 0.5 + 0.64


def test_a_step_longer_than_its_slice_is_taken_all_the_same(time):
    tasks = [task(time, "slow", cost=2.0), task(time, "fast", cost=0.1)]
    scheduled(10.0).first(tasks)
    assert [t.taken for t in tasks] == [1, 5]


def test_time_goes_to_the_widest_interval(time):
    wide, narrow = task(time, "wide", cost=0.1), task(time, "narrow", cost=0.1, width=0.01)
    schedule = scheduled(20.0)
    schedule.first([wide, narrow])
    schedule.refine([wide, narrow])
    assert wide.seconds > 5 * narrow.seconds
    assert narrow.seconds >= 0.5
    assert 20.0 <= time.now <= 20.2


def test_a_baseline_counts_less_than_the_network(time):
    own = task(time, "own", cost=0.1)
    other = task(time, "own", cost=0.1, role="linear", weight=0.3)
    schedule = scheduled(20.0)
    schedule.first([own, other])
    schedule.refine([own, other])
    assert own.seconds > 2 * other.seconds > 0


def test_all_ends_where_there_is_nothing_more_to_do(time):
    tasks = [task(time, "a", cost=0.1, steps=30), task(time, "b", cost=0.2, steps=10)]
    schedule = scheduled(60.0)
    schedule.first(tasks)
    schedule.refine(tasks)
    assert [t.taken for t in tasks] == [30, 10]
    assert all(t.complete for t in tasks)
    assert time.now == pytest.approx(5.0)


def test_the_budget_is_overrun_by_one_step_at_most(time):
    tasks = [task(time, str(k), cost=0.5) for k in range(40)]
    schedule = scheduled(10.0)
    schedule.first(tasks)
    schedule.refine(tasks)
    assert time.now <= 10.0 + 0.5
    # The first ones of the order have an answer, the last ones were lost.
    assert [t.answer is not None for t in tasks] == [True] * 20 + [False] * 20


def test_more_time_means_more_answers_of_the_same(time):
    def answers(budget):
        tasks = [task(time, str(k), cost=0.1 * (k + 1)) for k in range(4)]
        schedule = scheduled(budget)
        schedule.first(tasks)
        schedule.refine(tasks)
        return [t.answer.steps for t in tasks]

    short, long = answers(6.0), answers(60.0)
    assert all(a < b for a, b in zip(short, long, strict=True))


def test_a_task_that_fails_is_left_and_the_others_go_on(time):
    def start():
        raise ValueError("no such layer")
        yield

    broken = LookTask(name="broken", role="network", start=start)
    whole = task(time, "whole", cost=0.1, steps=3)
    scheduled(10.0).first([broken, whole])
    assert str(broken.error) == "no such layer"
    assert (broken.ended, broken.complete, whole.answer.steps) == (True, False, 3)


def test_an_answer_that_comes_again_is_no_progress(time):
    """A step that gives up in time yields the answer that there was."""
    waited = []

    def start():
        answer = Estimate(1, 1.0)
        time.now += 0.1
        yield answer
        while True:
            waited.append(patience())
            if patience() >= 4.0:
                time.now += 4.0
                answer = Estimate(4, 1.0)
            yield answer

    windows = LookTask(
        name="windows", role="network", start=start, gain=lambda a: a.width if a else 1
    )
    schedule = scheduled(20.0)
    schedule.first([windows])
    assert windows.taken == 1
    schedule.refine([windows])
    assert windows.taken > 1
    assert waited[0] < 1.0 < max(waited)  # its turns became longer
    assert time.now <= 20.0


def test_a_task_that_no_time_is_enough_for_ends(time):
    def start():
        answer = Estimate(1, 1.0)
        while True:
            yield answer

    stuck = LookTask(name="stuck", role="network", start=start, gain=lambda a: LEAST)
    schedule = scheduled(5.0)
    schedule.first([stuck])
    schedule.refine([stuck])
    assert stuck.ended
    assert not stuck.complete


def test_a_task_without_an_answer_pauses_while_others_have_their_slices(time):
    """The look at MobileNetV2 was like this: those that cut regions came first, and took all."""
    calls = []

    def start():
        for _ in range(30):
            calls.append(time.now)
            time.now += 0.5
            yield None
        yield Estimate(1, 1.0)

    late, quick = LookTask(name="late", role="network", start=start), task(time, "quick", cost=0.25)
    scheduled(100.0).first([late, quick])
    assert calls[:3] == pytest.approx([0.0, 1.0, 1.5])  # its slice, that of the quick one, on
    assert len(calls) == 30  # it went on, and did not begin anew
    assert (quick.taken, late.taken) == (2, 1)


def test_what_answers_soon_answers_first_where_not_everything_can(time):
    def start():
        for _ in range(40):
            time.now += 0.2
            yield None
        yield Estimate(1, 1.0)

    late = [LookTask(name=f"late {k}", role="network", start=start) for k in range(4)]
    quick = [task(time, str(k), cost=0.3) for k in range(12)]
    scheduled(10.0, slice=0.1).first([*late, *quick])
    assert all(t.taken for t in quick)
    assert time.now <= 10.0 + 0.3


def test_those_that_wait_for_a_first_answer_share_what_is_left(time):
    def start():
        while True:
            time.now += 0.5
            yield None

    endless = [LookTask(name=str(k), role="network", start=start) for k in range(3)]
    scheduled(40.0).first(endless)
    times = [t.seconds for t in endless]
    assert sum(times) == pytest.approx(time.now)
    assert 29.5 <= time.now <= 31.5  # a quarter is left for what comes after
    assert max(times) <= 2.2 * min(times)


def test_a_step_of_eight_slices_is_not_lost(time):
    """A step is interrupted much later than the time at which its task would pause."""
    limits = []

    def start():
        limits.append(schedule.watch._until - time.now)
        time.now += 4.0
        yield Estimate(1, 1.0)

    schedule = scheduled(60.0)
    slow = LookTask(name="slow", role="network", start=start)
    schedule.first([slow, task(time, "quick", cost=0.1)])
    assert limits == [pytest.approx(9.0)]  # 2.5 times 6% of the budget
    assert slow.taken == 1


def test_an_interrupted_task_begins_anew_where_there_is_much_more_time(time):
    calls = []

    def start():
        calls.append(time.now)
        time.now += 2.0
        if len(calls) == 1:
            raise Interrupted
        yield Estimate(1, 1.0)

    slow, quick = LookTask(name="slow", role="network", start=start), task(time, "quick", cost=0.1)
    scheduled(30.0).first([slow, quick])
    assert calls == [0.0, pytest.approx(2.5)]
    assert slow.answer.steps == 1
    calls.clear()
    again = LookTask(name="slow", role="network", start=start)
    scheduled(6.0).first([again])
    assert again.answer is None  # 4 s are left, no more than twice what it took


def test_what_takes_too_much_memory_says_so(time):
    def start():
        raise Interrupted("it takes more memory than 1 GB")
        yield

    large = LookTask(name="large", role="network", start=start)
    scheduled(30.0).first([large])
    assert isinstance(large.error, MemoryError)
    assert str(large.error) == "it takes more memory than 1 GB"


def test_repeated_work_takes_the_same_number_of_answers_whatever_the_time(time):
    result = task(time, "some", cost=5.0, most=7)
    none = task(time, "none", cost=5.0, most=0)
    whole = task(time, "whole", cost=5.0, steps=3)
    scheduled(1.0).finish([result, none, whole])
    assert [t.taken for t in (result, none, whole)] == [7, 0, 3]
    assert none.answer is None
