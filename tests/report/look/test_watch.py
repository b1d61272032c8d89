"""Interruptions of what takes too long, or too much memory."""

import threading

import numpy as np
import pytest
import torch

from inscape.report.look.watch import BudgetWatch, Interrupted, resident


def forever():
    while True:
        pass


def test_what_takes_longer_than_it_may_is_interrupted_between_two_instructions():
    watch = BudgetWatch(3600.0)
    with watch.watching():
        with pytest.raises(Interrupted), watch.limit(0.01):
            forever()
        with pytest.raises(Interrupted), watch.limit(0.01):  # and once more
            forever()


def test_the_end_of_the_budget_is_a_limit_too():
    watch = BudgetWatch(0.0)
    with watch.watching(), pytest.raises(Interrupted), watch.limit(float("inf")):
        forever()


def test_nothing_is_interrupted_outside_of_a_limit():
    watch = BudgetWatch(0.0)
    with watch.watching():
        with pytest.raises(Interrupted), watch.limit(0.0):
            forever()
        for _ in range(10_000):
            resident()


def test_an_interruption_is_no_exception_that_instruments_could_swallow():
    assert not issubclass(Interrupted, Exception)


def test_memory_beyond_the_bound_is_noticed_and_the_peak_is_told():
    watch, held = BudgetWatch(3600.0, memory=50_000_000), []

    def fill():
        held.append(torch.ones(200_000_000, dtype=torch.uint8))
        forever()

    with (
        watch.watching(),
        pytest.raises(
            Interrupted, match="more memory than the 50 MB that --memory allows: raise it"
        ),
        watch.limit(3600.0),
    ):
        fill()
    assert watch.peak > 50_000_000


def test_elsewhere_than_in_the_main_thread_only_the_clock_counts():
    raised = []

    def work():
        watch = BudgetWatch(0.0)
        try:
            with watch.watching(), watch.limit(0.0):
                for _ in range(1000):
                    resident()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert raised == []


def test_the_handler_of_the_caller_is_put_back():
    import signal

    before = signal.getsignal(signal.SIGALRM)
    with BudgetWatch(1.0).watching():
        assert signal.getsignal(signal.SIGALRM) is not before
    assert signal.getsignal(signal.SIGALRM) is before


class Lingering:
    """An object whose deletion takes a while."""

    def __del__(self):
        for _ in range(20_000):
            pass


def test_an_interruption_is_not_lost_where_python_swallows_exceptions():
    watch = BudgetWatch(3600.0)

    def delete():
        while True:
            Lingering()
            for _ in range(20_000):  # as long as a deletion: every other interruption falls here
                pass

    with watch.watching(), pytest.raises(Interrupted), watch.limit(0.01):
        delete()


def test_an_import_is_not_interrupted(tmp_path, monkeypatch):
    (tmp_path / "slow_to_load.py").write_text(
        "from inscape.runtime.deadline import now\n"
        "end = now() + 0.5\n"
        "while now() < end:\n    pass\n"
        "whole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    watch = BudgetWatch(3600.0)

    def load():
        import slow_to_load  # noqa: F401

        forever()

    with watch.watching(), pytest.raises(Interrupted), watch.limit(0.05):
        load()
    import slow_to_load

    assert slow_to_load.whole


def test_a_compilation_is_not_interrupted():
    from numba import njit

    @njit
    def ordered(values):
        return np.sort(values)[::-1].cumsum()

    watch = BudgetWatch(3600.0)

    def compile_and_go_on():
        ordered(np.ones(3))
        forever()

    with watch.watching(), pytest.raises(Interrupted), watch.limit(0.05):
        compile_and_go_on()
    assert ordered.signatures
    assert ordered(np.array([1.0, 3.0])).tolist() == [3.0, 4.0]


def test_an_alarm_of_the_callers_own_is_passed_on():
    import signal

    rung = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    try:
        with BudgetWatch(3600.0).watching():
            signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert rung == [signal.SIGALRM]
