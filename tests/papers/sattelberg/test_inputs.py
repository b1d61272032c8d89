"""Functions of five to ten inputs: the families, their groups, and what changes with n."""

from typing import Any

import numpy as np
import pytest

from inscape.lab.store import Record
from inscape.papers.sattelberg import _families as families
from inscape.papers.sattelberg import _inputs as inputs
from inscape.papers.sattelberg import figure_3_7, figure_3_8, figure_3_9
from inscape.papers.sattelberg._npn_metrics import PARITY, classes


def test_chosen_functions_are_spread_over_the_classes():
    assert families.chosen("xor", 222, 0) == list(range(222))
    few = families.chosen("xor", 5, 0)
    assert (few[0], few[-1], len(few)) == (0, 221, 5)
    assert families.chosen("random", 0, 3) == [0, 1, 2]
    assert families.chosen("parity", 9, 9) == [0]


def test_xored_functions_are_what_they_are_said_to_be():
    place = classes().index(PARITY)
    constant, parity = families.tables("xor", (0, place), 6)
    whole = families.tables("parity", (0,), 6)[0]
    assert (constant == whole).all()
    index = np.arange(64)
    assert parity.tolist() == [bin(i & 0b11).count("1") % 2 for i in index]
    found = families.metrics("xor", (0, place), 6)
    assert found["degree"].tolist() == [6, 2]
    assert found["influence"].tolist() == [6, 2]


def test_random_functions_differ_between_seeds_and_numbers_of_inputs():
    rows = families.tables("random", (0, 1, 2), 7)
    assert len(np.unique(rows, axis=0)) == 3
    assert 0.3 < rows.mean() < 0.7
    assert families.metrics("random", (0, 1, 2), 7)["influence"] == pytest.approx([3.5] * 3, abs=1)


def record(n: int, kind: str, successes: Any, *, size: str = "5x2", block: int = 0) -> Record:
    counts = np.asarray(successes)
    measured = {name: np.full(len(counts), float(n)) for name in inputs.FOURIER}
    return Record(
        experiment="sattelberg/figure-3.9",
        scale="laptop",
        key="",
        settings={"n": n, "kind": kind, "size": size, "block": block, "trials": 10},
        data="",
        values={
            "successes": counts,
            "right": counts * 2**n,
            "best": counts * 2**n,
            **(measured if block == 0 else {}),
        },
        claims={},
        provenance={},
    )


def test_groups_are_means_over_blocks_and_sizes():
    records = [
        record(5, "random", [10, 0]),
        record(5, "random", [0, 0], block=1),
        record(5, "random", [10, 10], size="10x2"),
        record(5, "random", [10, 10], size="10x2", block=1),
    ]
    group = inputs.dimension_groups(records)[5, "random"]
    assert group["success"].tolist() == [0.75, 0.5]
    assert group["right"].tolist() == [0.75, 0.5]
    assert group["degree"].tolist() == [1, 1]
    assert group["networks"].tolist() == [40]
    alone = inputs.dimension_groups(records, "5x2")[5, "random"]
    assert alone["success"].tolist() == [0.5, 0]


def test_changes_and_extra_changes():
    records = [
        record(5, "random", [10, 4, 10]),
        record(10, "random", [0, 4, 2]),
        record(5, "parity", [10]),
        record(10, "parity", [10]),
        record(5, "xor", [10, 10]),
        record(10, "xor", [7, 7]),
    ]
    found = figure_3_9.analyse(records)
    assert found["success/random"].value == pytest.approx(-0.6)
    assert found["success/random"].se == pytest.approx(np.sqrt((0.12 + 0.04) / 3))
    assert found["faster than parity"].value == pytest.approx(0.6)
    assert found["success/parity"].value == 0
    assert found["success/parity"].low < 0  # ten equal trials are no certainty
    assert found["success/xor"].se > 0.05  # nor are functions that are equal
    assert found["entropy/parity"].exact
    assert not found["success/parity"].exact
    assert found["entropy of or"].value == pytest.approx(0.0759, abs=1e-3)
    assert found["faster than xor"].value == pytest.approx(0.3)
    assert "faster than xor" not in figure_3_9.analyse(records[:4])


def test_high_influence_and_degree_are_picked():
    names = ("right", *inputs.FOURIER)
    values = {
        "right": [0.9, 0.8, 0.7],
        "influence": [0.4, 0.39, 0.9],
        "degree": [0.8, 1.0, 0.7],
        "entropy": [0.5, 0.5, 0.5],
    }
    group = {name: np.array(values[name]) for name in names}
    assert figure_3_8.pooled({"xor": group}, "xor")["right"].tolist() == [0.9]


def ten(kind: str, width: int, depth: int, successes: list[int]) -> Record:
    settings = {"kind": kind, "width": width, "depth": depth, "trials": 100}
    values = {"successes": successes, "right": [512 + 5 * count for count in successes]}
    return Record(
        experiment="sattelberg/figure-3.7",
        scale="laptop",
        key="",
        settings=settings,
        data="",
        values=values,
        claims={},
        provenance={},
    )


def test_prediction_for_ten_parity():
    sizes = [(w, d) for w in range(2, 11) for d in range(1, 6)]
    fit = [size for size in sizes if figure_3_7.predicted(size)]
    assert (10, 1) in fit
    assert (9, 1) not in fit
    assert figure_3_7.smallest(sizes) == [(2, 5), (2, 4), (3, 3), (4, 2), (10, 1)]
    records = [ten("parity", w, d, [min(100, w**d) * ((w, d) in fit)]) for w, d in sizes]
    records += [ten("random", w, d, [0, 2]) for w, d in sizes]
    found = figure_3_7.analyse(records)
    assert found["agreement"].value == 1
    assert found["minimal"].value == pytest.approx(np.mean([10, 16, 27, 32, 16]) / 100)
    assert found["grows"].value > 0.5
    assert found["harder"].value > 0.3
    records[0] = ten("parity", 2, 1, [1])
    assert figure_3_7.analyse(records)["agreement"].value == pytest.approx(44 / 45)
    assert "2x1" in figure_3_7.conclude(records)[0]
