from concurrent.futures import ThreadPoolExecutor

import pytest

from inscape.piecewise.planes.two_phase import BlockQueue
from inscape.runtime.deadline import NEVER, Deadline


def in_threads(turns, first, second, threads=2):
    with ThreadPoolExecutor(threads) as pool:
        for run in [pool.submit(turns.run, first, second) for _ in range(threads)]:
            run.result(timeout=300)  # only where they wait for each other


def test_the_second_step_comes_after_the_first_of_all_blocks_before():
    turns, marked = BlockQueue(1000, 7, NEVER), set()

    def second(faces, room):
        assert marked >= set(range(int(faces[-1]) + 1))
        return faces.tolist()

    in_threads(turns, lambda faces, room: marked.update(faces.tolist()), second)
    assert [f for k in range(turns.blocks) for f in turns.results[k]] == list(range(1000))


def test_without_time_the_first_block_alone_is_done():
    turns = BlockQueue(1000, 7, Deadline(0.0))
    in_threads(turns, lambda faces, room: None, lambda faces, room: len(faces))
    assert turns.results == {0: 7}


def test_nobody_waits_for_a_thread_that_failed():
    def first(faces, room):
        if faces[0] == 21:
            raise ArithmeticError("broken")

    with pytest.raises(ArithmeticError, match="broken"):
        in_threads(BlockQueue(1000, 7, NEVER), first, lambda faces, room: None)
