"""Seeds of members, training on truth tables, and the hunt for a first success."""

import numpy as np
import pytest

from inscape.papers.sattelberg import _trials, figure_3_5, reachable
from inscape.papers.sattelberg._npn_metrics import PARITY, classes, points, swaps, tables


def test_seeds_are_their_own_and_more_trials_leave_the_first():
    few = _trials.member_seeds([1, 2, 300], range(5), 4, 3, 1, 100)
    many = _trials.member_seeds([2, 300, 1], range(9), 4, 3, 1, 100)
    assert (few == many[[2, 0, 1], :5]).all()
    other = _trials.member_seeds([1, 2, 300], range(5), 4, 1, 3, 100)
    assert len(np.unique(np.concatenate([few.ravel(), other.ravel()]))) == 30
    assert few.min() >= 0
    later = _trials.member_seeds([1, 2, 300], range(3, 5), 4, 3, 1, 100)
    assert (later == few[:, 3:]).all()


def test_seeds_are_splitmix64():
    def mixed(state: int, number: int) -> int:
        whole = 2**64 - 1
        z = ((state ^ number) + 0x9E3779B97F4A7C15) & whole
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & whole
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & whole
        return z ^ z >> 31

    state = 0
    for number in (4, 3, 1, 100, PARITY, 7):
        state = mixed(state, number)
    assert _trials.member_seeds([PARITY], [7], 4, 3, 1, 100).tolist() == [[state >> 1]]


def test_leaks_are_whole_numbers_in_hashes():
    assert (_trials.per_mille(0.0), _trials.per_mille(0.1)) == (0, 100)


def test_training_does_not_depend_on_company():
    place = classes().index(PARITY)
    seeds = _trials.member_seeds([0, PARITY], range(6), 1)
    both = _trials.trained(
        tables()[[0, place]], points(), width=4, depth=1, leak=0.1, seeds=seeds, epochs=60
    )
    alone = _trials.trained(
        tables()[[place]], points(), width=4, depth=1, leak=0.1, seeds=seeds[1:, 2:4], epochs=60
    )
    for name in ("solved", "epochs", "right", "best", "diverged"):
        assert (getattr(both, name)[1:, 2:4] == getattr(alone, name)).all()
    assert both.solved[0].all()  # a constant is learned at once
    assert (both.right[both.solved] == 16).all()
    assert (both.best >= both.right).all()


def test_cell_holds_counts_of_all_classes():
    found = figure_3_5.cell(leak=0.1, width=3, depth=1, trials=3, epochs=40)
    assert len(found["successes"]) == 222
    assert found["successes"][0] == 3
    assert found["successes"].max() == 3
    assert (found["right"] <= 48).all()
    assert found["epochs"][found["successes"] == 0].sum() == 0


def test_reach_and_rounds():
    assert [reachable.reach(size) for size in ("2x3", "6x1")] == [8, 6]
    assert list(reachable.spans(150)) == [(0, 20), (20, 100), (100, 150)]
    assert list(reachable.spans(20)) == [(0, 20)]
    assert list(reachable.spans(40000))[-1] == (30000, 40000)


def test_every_larger_size_contains_one_with_the_same_reach():
    """What is said of the eight sizes: all sizes but the smallest contain one of them."""
    known = [reachable._numbers(size) for size in reachable.SIZES]
    most = int(swaps().max())
    for width in range(2, 11):
        for depth in range(1, 6):
            asked = min(width**depth - 1, most)
            inside = [w**d - 1 for w, d in known if w <= width and d <= depth]
            assert max(inside) >= asked, (width, depth)


def test_hunt_finds_the_first_success_whatever_the_rounds(monkeypatch: pytest.MonkeyPatch):
    whole = reachable.cell(leak=0.1, size="2x1", hunt=24, beyond=9, epochs=60)
    seeds = _trials.member_seeds(classes(), range(24), 4, 2, 1, 100)
    found = _trials.trained(
        tables(), points(), width=2, depth=1, leak=0.1, seeds=seeds, epochs=60
    ).solved
    most = np.where(swaps() < 2, 24, 9)
    found &= np.arange(24) < most[:, None]
    assert whole["first"].tolist() == np.where(found.any(1), 1 + found.argmax(1), 0).tolist()
    assert (whole["first"] > 0).any()
    assert (whole["first"] == 0).any()
    monkeypatch.setattr(reachable, "ROUNDS", (2, 7))
    monkeypatch.setattr(reachable, "TOGETHER", 100)
    again = reachable.cell(leak=0.1, size="2x1", hunt=24, beyond=9, epochs=60)
    assert (again["first"] == whole["first"]).all()
