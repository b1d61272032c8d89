"""The margins, kind by kind: the table of the issue, written out once more by hand."""

import math
from decimal import Decimal

import pytest

from inscape.lab.margins import KINDS, half_unit, margin


@pytest.mark.parametrize(
    ("kind", "published", "expected"),
    [
        ("proportion", 0.9, 0.02),
        ("proportion", 0.001, 0.02),
        ("percentage", 97.4, 2.0),
        ("heavy-tailed", 1e-9, 0.6931471805599453),
        ("decades", -4.0, 0.3010299956639812),
        ("correlation", 0.72, 0.1),
        ("number", 20.0, 2.0),
        ("number", -20.0, 2.0),
        ("number", 0.0, 0.0),
    ],
)
def test_each_kind_has_its_margin(kind, published, expected):
    assert margin(kind, published) == pytest.approx(expected, rel=1e-15)


def test_every_kind_is_in_the_table():
    assert all(margin(kind, 1.0, of=100) > 0 for kind in KINDS)


def test_a_count_is_a_proportion_of_its_runs():
    assert margin("count", 23, of=180) == pytest.approx(180 * margin("proportion", 23 / 180))
    with pytest.raises(ValueError, match=r"needs the number of runs.* found none for 23: give of"):
        margin("count", 23)


def test_a_factor_is_the_same_in_both_logarithms():
    assert margin("heavy-tailed", 1.0) == pytest.approx(margin("decades", 1.0) * math.log(10))


@pytest.mark.parametrize(
    "printed", ["5", "616126", "0.87", "0.50", "-1.15", "1.40", "2.5e-3", "1E4", " 3.0 "]
)
def test_half_a_unit_is_what_decimal_arithmetic_says(printed):
    exponent = Decimal(printed.strip()).as_tuple().exponent
    assert half_unit(printed) == pytest.approx(float(Decimal(10) ** exponent / 2), rel=1e-15)
