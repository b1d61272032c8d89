"""Threads with ranges of work: all of it is done once, in order, and errors come back."""

import threading

import numpy as np
import pytest

from inscape.piecewise.planes.threads import RANGES, Workers


@pytest.fixture(params=[1, 2, 3])
def workers(request):
    pool = Workers(request.param)
    yield pool
    pool.close()


@pytest.mark.parametrize("size", [0, 1, 511, 512, 5000, 100_003])
def test_ranges_make_up_the_work_in_order(workers, size):
    seen = np.zeros(size, int)

    def work(a, b):
        seen[a:b] += 1
        return a, b

    result = workers.over(size, work, 512)
    assert (seen == 1).all()
    assert [a for a, _ in result] == [0, *[b for _, b in result][:-1]]
    assert result[-1][1] == size
    most = 1 if workers.threads == 1 else RANGES * workers.threads
    assert len(result) == max(1, min(most, size // 512))


def test_tasks_run_beside_each_other_and_answer_in_order():
    workers = Workers(2)
    both = threading.Barrier(2, timeout=300)  # for a failure; nobody waits
    assert workers.each([both.wait, both.wait]) in ([0, 1], [1, 0])
    assert workers.each([lambda k=k: k for k in range(50)]) == list(range(50))
    workers.close()


def test_an_error_comes_back_and_no_further_task_begins(workers):
    begun = []

    def fail():
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        workers.each([fail, *(lambda k=k: begun.append(k) for k in range(100_000))])
    assert len(begun) < 100_000
    assert workers.each([lambda: 1, lambda: 2]) == [1, 2]
