"""Counts of successes: the rules of table 3.3 and figures 3.5 and 3.6, with counts made by hand."""

from typing import Any

import numpy as np
import pytest

from inscape.lab.store import Record
from inscape.papers.sattelberg import _difficulty as difficulty
from inscape.papers.sattelberg import figure_3_5, figure_3_6, table_3_3
from inscape.papers.sattelberg._npn_metrics import PARITY, classes, metrics, tables

PLACE = classes().index(PARITY)


def record(width: int, depth: int, successes: Any, leak: float = 0.1) -> Record:
    counts = np.asarray(successes)
    return Record(
        experiment="sattelberg/figure-3.5",
        scale="laptop",
        key="",
        settings={"leak": leak, "width": width, "depth": depth, "trials": 100, "epochs": 4000},
        data="",
        values={
            "successes": counts,
            "epochs": counts * 7,
            "right": counts,
            "best": counts,
            "diverged": 0,
        },
        claims={},
        provenance={},
    )


def of_all(value: int, **others: int) -> np.ndarray[Any, Any]:
    """Return one count for all 222 classes, with others by number."""
    counts = np.full(222, value)
    for name, count in others.items():
        counts[classes().index(int(name[1:]))] = count
    return counts


def test_counts_are_sorted_by_size_whatever_the_order_of_records():
    rows = {(3, 1): of_all(5), (2, 2): of_all(2), (2, 1): of_all(1)}
    counts = difficulty.counted([record(*size, row) for size, row in rows.items()])[0.1]
    assert counts.sizes == ((2, 1), (2, 2), (3, 1))
    assert counts.successes[:, 0].tolist() == [1, 2, 5]
    assert counts.at((3, 1), (9, 9))[0, 0] == 0.05
    assert len(counts.at((9, 9))) == 0


def test_hardest_counts_within_one_point_and_leaves_out_sizes_that_tell_nothing():
    successes = np.array(
        [
            [0, 1, 2, 50],  # the first two are within one point of the lowest
            [90, 7, 8, 9],  # the second and the third
            [99, 100, 99, 100],  # all of them: tells nothing
            [40, 40, 40, 39],  # all of them again
        ]
    )
    assert difficulty.hardest(successes, 100).tolist() == [1, 2, 1, 0]
    assert difficulty.hardest(successes, 100, within=0.02).tolist() == [1, 2, 2, 1]


def test_hardest_measures_points_in_percent_of_the_trials():
    successes = np.array([[0, 10, 11, 500]])
    assert difficulty.hardest(successes, 1000).tolist() == [1, 1, 0, 0]


def test_rules_work_on_many_tables_at_once():
    rng = np.random.default_rng(0)
    many = rng.integers(0, 101, size=(5, 4, 12))
    sizes = ((2, 1), (2, 2), (3, 1), (4, 1))
    one_by_one = [difficulty.hardest(one, 100) for one in many]
    assert (difficulty.hardest(many, 100) == one_by_one).all()
    firsts = [float(difficulty.first_width(one, sizes)) for one in many]
    assert difficulty.first_width(many, sizes).tolist() == firsts
    assert difficulty.rank(np.array([[3, 5, 5], [3, 1, 1]]), 0).tolist() == [3, 1]


def test_first_width_is_the_first_that_solves_everything():
    sizes = ((2, 1), (3, 1), (3, 2), (4, 1))
    successes = np.array([[1, 0], [0, 9], [1, 1], [1, 1]])
    assert difficulty.first_width(successes, sizes) == 4
    assert difficulty.first_width(successes, sizes, depth=2) == 3
    assert difficulty.first_width(successes[:2], sizes[:2]) == np.inf


def test_smallest_width_looks_at_one_hidden_layer():
    counts = difficulty.Counts(
        sizes=((2, 1), (2, 2), (3, 1), (4, 1)),
        successes=np.array([[0, 5, 0], [9, 9, 9], [1, 0, 0], [7, 7, 0]]),
        trials=100,
    )
    assert difficulty.smallest_width(counts).tolist() == [3, 2, 0]


def test_ranking_breaks_ties_by_mean_success():
    counts, rates = np.array([2, 7, 2]), np.array([[0.5, 0.1, 0.4], [0.5, 0.1, 0.5]])
    assert difficulty.ranked(counts, rates).tolist() == [1, 2, 0]


def test_redrawn_counts_have_the_mean_and_the_spread_of_trials():
    row = np.array([[0, 30, 100]])
    counts = difficulty.Counts(sizes=((2, 1),), successes=row, trials=100)
    drawn = counts.redrawn[:, 0]
    assert drawn.min() >= 0
    assert drawn.max() <= 100
    assert abs(drawn[:, 1].mean() - 30) < 2
    assert 5 < drawn[:, 1].std() < 8  # 4.6 of the trials and as much of the probability
    assert drawn[:, 0].mean() < 2 < 98 < drawn[:, 2].mean()
    found = difficulty.redrawing(counts, lambda s: (s > 0).sum((-1, -2)))
    assert (found.value, found.high) == (2, 3)


@pytest.fixture
def records() -> list[Record]:
    """Parity hard everywhere; ReLU also finds unbalanced 278 and balanced 7905 hard."""
    made = []
    for width in (2, 3, 4):
        for depth in (1, 2):
            made.append(record(width, depth, of_all(90, n27030=width)))
            relu = of_all(20 * width, n27030=0, n278=0, n7905=width - 2)
            made.append(record(width, depth, relu, leak=0.0))
    return made


def test_table_finds_parity_first_and_who_vanishes_with_a_leak(records: list[Record]):
    found = table_3_3.analyse(records)
    assert found["rank of parity/relu"].value == 1
    assert found["count of parity/leaky"].value == 6
    assert found["second/leaky"].value == 0
    assert found["second/relu"].value == 1
    counts = difficulty.counted(records)
    hard = [classes()[k] for k in table_3_3.ten(counts[0.0])]
    assert sorted(hard) == [278, 7905, 27030]
    assert table_3_3.vanishing(counts) == [278]  # 7905 is balanced
    assert found["shared/relu"].value == 2  # parity and 278; 7905 is printed for leaky ReLU


def test_list_of_ten_needs_a_count():
    counts = np.zeros(222, int)
    counts[[3, 5]] = 4
    assert table_3_3.at_least_tenth(counts) == [3, 5]
    counts[:12] = 4
    assert len(table_3_3.at_least_tenth(counts)) == 12


def test_printed_list_is_that_of_the_facts():
    from inscape.lab.catalogue import paper_facts

    entries = {entry["id"]: entry for entry in paper_facts("sattelberg")["entries"]}
    for name, leak in (("ReLU", 0.0), ("leaky", 0.1)):
        rows = [row for row in entries["table-3.3"]["rows"] if row[0] == name]
        assert {row[1]: row[3] for row in rows} == table_3_3.PRINTED[leak]
        for _, number, binary, _ in rows:
            bits = "".join(map(str, tables()[classes().index(number)]))
            assert bits == binary.replace(" ", "")


def test_figure_says_who_solves_everything(records: list[Record]):
    found = figure_3_5.analyse(records)
    assert found["first width/relu"].value == np.inf
    assert found["first width/leaky"].value == 2
    assert found["solved/3x2/relu"].value == 220
    assert found["solved/3x1/leaky"].value == 222
    assert found["width two/leaky"].value == 2
    assert found["width two/relu"].value == 0
    assert found["leak"].value > 0.2
    share = (219 * (0.4 + 0.6) + 0.01) / 222 / 2
    assert found["rare/relu"].value == pytest.approx(share)
    assert found["node/3x1/leaky"].value == pytest.approx(0.01 / 222)
    assert found["layer/relu"].value == 0


def test_metrics_of_parity_and_of_a_constant():
    found = metrics()
    constant = classes().index(0)
    assert [found[name][PLACE] for name in ("swaps", "degree", "influence", "entropy")] == [
        4,
        4,
        4,
        0,
    ]
    assert all(found[name][constant] == 0 for name in ("swaps", "degree", "influence", "entropy"))
    assert found["imbalance"][[PLACE, constant]].tolist() == [0, 8]


def test_high_values_look_at_the_hardest_and_at_the_easier_half():
    mean = np.arange(222.0)
    swaps = np.where(mean < 11, 4, 1)
    degree = np.where(mean >= 111 + 37, 3, 2)
    found = figure_3_6.high_values(mean, {"swaps": swaps, "degree": degree})
    assert found["hard/swaps"].value == 0.5
    assert found["easy/swaps"].value == 0
    assert found["hard/degree"].value == 0
    assert found["easy/degree"].value == pytest.approx(2 / 3)


def test_measures_are_percent_of_sizes(records: list[Record]):
    found = figure_3_6.measures(difficulty.counted(records)[0.1])
    assert found["2x2"][PLACE] == pytest.approx(2)
    assert found["mean"][PLACE] == pytest.approx(3)
    assert found["3x1"][0] == pytest.approx(90)
