"""One computation per client and kind: a newer request stops an older one."""

import threading

import pytest

from inscape.explorer.jobs import JOBS, Job, Jobs, OvertakenError, TimeSpentError


def test_a_newer_request_stops_the_older_one_between_two_steps():
    jobs, begun, closed = Jobs(), threading.Event(), threading.Event()

    def endless(job):
        try:
            while True:
                begun.set()
                yield
        finally:
            closed.set()

    def quick(job):
        yield
        return "newer"

    _, older = jobs.start("a", "long", endless, seconds=60)
    assert begun.wait(10)
    _, newer = jobs.start("a", "long", quick, seconds=60)
    assert newer.result(10) == "newer"
    assert closed.is_set()
    with pytest.raises(OvertakenError):
        older.result(10)
    jobs.close()


def test_another_client_does_not_stop_it():
    jobs, go = Jobs(), threading.Event()

    def waits(job):
        go.wait(10)
        yield
        return "mine"

    _, mine = jobs.start("a", "long", waits, seconds=60)
    _, other = jobs.start("b", "long", lambda job: iter_returning("other"), seconds=60)
    go.set()
    assert (mine.result(10), other.result(10)) == ("mine", "other")
    jobs.close()


def iter_returning(value):
    yield
    return value


def test_time_is_bounded():
    def endless(job):
        while True:
            yield

    with pytest.raises(TimeSpentError):
        Job(0.0).run(endless)


def test_only_so_many_jobs_are_remembered():
    jobs = Jobs()
    for k in range(3 * JOBS):
        _, future = jobs.start(f"c{k}", "quick", lambda job: iter_returning(1), seconds=60)
        future.result(10)
    assert len(jobs._latest) == JOBS
    assert jobs.latest("c0") is None
    jobs.close()


def test_an_error_is_that_of_the_request():
    def fails(job):
        yield
        raise ValueError("expected")

    jobs = Jobs()
    job, future = jobs.start("a", "quick", fails, seconds=60)
    with pytest.raises(ValueError, match="expected"):
        future.result(10)
    assert job.finished
    jobs.close()
