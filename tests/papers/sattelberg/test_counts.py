"""The law of the number of initialisations, against closed forms and draws."""

import math
from typing import Any

import numpy as np
import pytest

from inscape.lab.store import Record
from inscape.papers.sattelberg import learned_sine as _counts
from inscape.papers.sattelberg import learned_sine as figure_5_5
from inscape.papers.sattelberg import learned_sine as table_5_1
from inscape.papers.sattelberg._sine import POINTS


def record(width: int, depth: int, successes: int, **values: Any) -> Record:
    settings = {"width": width, "depth": depth, "batch": POINTS, "trials": 1000}
    return Record(
        experiment="sattelberg/table-5.1",
        scale="laptop",
        key="",
        settings=settings | {k: values.pop(k) for k in ("batch",) if k in values},
        data="",
        values={
            "successes": successes,
            "failed_constant_at_start": 1000 - successes,
            "failed_constant_at_end": 1000 - successes,
            "fits": [],
            **values,
        },
        claims={},
        provenance={},
    )


def test_printed_table_is_that_of_the_facts():
    from inscape.lab.catalogue import paper_facts

    entries = {entry["id"]: entry for entry in paper_facts("sattelberg")["entries"]}
    rows = entries["table-5.1"]["rows"]
    assert [tuple(row[1:]) for row in rows] == list(map(tuple, _counts.PRINTED))


def test_beyond_is_a_geometric_tail_averaged_over_the_beta_law():
    rng = np.random.default_rng(0)
    p = rng.beta(20.5, 80.5, size=400_000)
    assert _counts.beyond(20, 100, 0) == pytest.approx(1.0)
    assert _counts.beyond(20, 100, 5) == pytest.approx(np.mean((1 - p) ** 5), rel=5e-3)


def test_level_is_the_mean_of_log_counts():
    rng = np.random.default_rng(1)
    drawn = np.log10(np.minimum(rng.geometric(0.02, size=200_000), 1000))
    found = float(_counts.level(np.array([0.02]))[0])
    assert abs(found - drawn.mean()) < 5 * drawn.std() / math.sqrt(drawn.size)
    assert _counts.level(np.array([1.0, 0.0])).tolist() == [0.0, 3.0]


def test_log_of_a_geometric_variable_scatters_as_claimed():
    drawn = np.log10(np.random.default_rng(2).geometric(0.001, size=200_000))
    assert drawn.std() == pytest.approx(table_5_1.SCATTER, rel=0.02)


@pytest.mark.parametrize(
    ("successes", "count", "expected"),
    [
        (1000, 1, True),
        (1000, 3, False),
        (10, 100, True),
        (10, 1, False),
        (10, 900, False),
        (0, None, True),
        (500, None, False),
        (10, None, False),
        (1, None, True),
    ],
)
def test_fits(successes: int, count: int | None, expected: bool):
    assert _counts.fits(successes, 1000, count) is expected


def geometric_world() -> list[Record]:
    """Return records whose probabilities are those of the printed counts, roughly."""
    rows = []
    for width in range(1, 11):
        for depth in range(1, 11):
            p = min(1.0, 0.9 ** (depth - 1) * 10 ** (-0.5 * max(0, depth - 5)) * width**0.4)
            rows.append(record(width, depth, round(1000 * p)))
    return rows


def test_analysis_finds_what_was_put_in():
    found = _counts.analyse(geometric_world())
    assert found["with depth"].high < -0.8
    assert found["with width"].low > 0.7
    assert found["constant"].value == 1.0
    p = [min(1.0, 0.9**7 * 10**-1.5 * w**0.4) for w in range(1, 11)]
    expected = float(np.mean(_counts.level(np.round(np.array(p), 3))))
    assert abs(found["level/8"].value - expected) < 5 * found["level/8"].se
    shallow = [min(1.0, 0.9 ** (d - 1) * w**0.4) for w in range(1, 11) for d in range(1, 6)]
    assert found["shallow"].value == pytest.approx(1 / np.mean(1 / np.array(shallow)), rel=0.01)
    assert {claim.of for claim in table_5_1.TABLE_5_1.claims} <= set(found)


def test_sizes_of_other_batches_are_told_apart():
    rows = [record(1, 1, 900), record(1, 1, 5, batch=32)]
    assert _counts.counted(rows) == {(1, 1): (900, 1000)}
    assert _counts.counted(rows, 32) == {(1, 1): (5, 1000)}
    said = table_5_1.conclude_counts([record(1, 1, 900), record(1, 1, 5, batch=32)])
    assert any("batches of 32, 0%" in line for line in said)


def fit(pieces: int, negative: float = 1.0) -> dict[str, Any]:
    return {"slopes": [0.0] * pieces, "mse_negative": negative, "mse_positive": 1.0}


def test_growth_of_regions_and_the_worse_half():
    rows = [
        record(w, d, 1000, fits=[fit(w * d, 2.0), fit(w * d + 1, 0.5)])
        for w in (8, 9, 10)
        for d in (6, 7, 8)
    ]
    found = figure_5_5.analyse_fits(rows)
    assert found["along width"].value == found["along depth"].value == 1.0
    assert found["negative half"].value == pytest.approx(0.0)
    assert found["negative half"].n == 6
    assert "width 10, depth 8: 80.5" in figure_5_5.conclude_fits(rows)[0]
