"""Threads: as many as help, and put back afterwards."""

import torch

from inscape.runtime import threads
from inscape.runtime.threads import on_threads, quicker_threads


def test_threads_are_put_back():
    before = torch.get_num_threads()
    with on_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def clocked(monkeypatch, seconds):
    """Let a call take so many seconds by the number of threads; return the call."""
    time = [0.0]
    monkeypatch.setattr(threads, "now", lambda: time[0])

    def run():
        time[0] += seconds[torch.get_num_threads()]

    return run


def test_more_threads_where_they_are_quicker(monkeypatch):
    with on_threads(2):
        assert quicker_threads(clocked(monkeypatch, {1: 1.0, 2: 0.6})) == 2


def test_one_thread_where_others_hold_the_cores(monkeypatch):
    with on_threads(2):
        assert quicker_threads(clocked(monkeypatch, {1: 0.01, 2: 0.05})) == 1
        assert quicker_threads(clocked(monkeypatch, {1: 0.01, 2: 0.0095})) == 1


def test_one_thread_is_not_tried():
    with on_threads(1):
        assert quicker_threads(lambda: 1 / 0) == 1
