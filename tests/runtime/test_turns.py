"""Turns between threads: shares together, alone by itself, and an export while others evaluate."""

import threading

from cases import dense, points
from inscape.explorer.jobs import Jobs
from inscape.piecewise.graph import cache
from inscape.runtime.turns import Turns


def together(*works):
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return not any(thread.is_alive() for thread in threads)


def test_whoever_is_alone_is_alone_and_all_get_their_turn():
    turns, inside, seen = Turns(), [], []

    def share():
        for _ in range(200):
            with turns.shared():
                inside.append(1)
                inside.pop()

    def be_alone():
        for _ in range(50):
            with turns.shared(), turns.alone(), turns.shared(), turns.alone():
                seen.append(len(inside))

    assert together(share, share, be_alone, be_alone)
    assert seen == [0] * 100


def test_two_share_at_the_same_time():
    turns, both = Turns(), threading.Barrier(2, timeout=60)

    def share():
        with turns.shared():
            both.wait()

    assert together(share, share)


def test_no_step_of_a_job_runs_while_a_graph_is_exported(monkeypatch):
    steps, seen, over = [], [], threading.Event()

    def export(f, x, own=cache.exported):
        for _ in range(50):
            over.wait(0.001)  # the other thread's turn, if it had one
            seen.append(len(steps))
        return own(f, x)

    def evaluate(job):
        while not over.is_set():
            steps.append(1)
            over.wait(0.001)
            steps.pop()
            yield

    def cut(job):
        yield
        cache.export(dense(3, 5, 2), points(4, 3))

    monkeypatch.setattr(cache, "exported", export)
    monkeypatch.setattr(cache, "_GRAPHS", type(cache._GRAPHS)())
    jobs = Jobs()
    _, evaluating = jobs.start("a", "b", evaluate, seconds=60, thread="quick")
    _, cutting = jobs.start("a", "c", cut, seconds=60, thread="long")
    cutting.result(60)
    over.set()
    evaluating.result(60)
    jobs.close()
    assert seen
    assert not any(seen)
