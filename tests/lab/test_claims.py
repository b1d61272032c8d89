"""A table of claims is the claims that one would write out; a row that is none is refused."""

import pytest

from inscape.lab.claims import claims
from inscape.lab.experiment import Trend, Value, claim_hash
from inscape.lab.grids import grid
from inscape.lab.published import printed

BOTH = {"source": "section 2", "test": "t interval"}


@pytest.mark.parametrize(
    ("key", "row", "claim"),
    [
        (
            "falls: power/mnist: a - b < -0.5",
            "It falls.",
            Trend(name="falls", says="It falls.", of="power/mnist: a - b", side="below",
                  bound=-0.5, **BOTH),
        ),
        (
            "grows: tau > 0",
            "It grows. | sign test | figure 1",
            Trend(name="grows", says="It grows.", of="tau", side="above", test="sign test",
                  source="figure 1"),
        ),
        (
            "same: shift between -1 and 2.5",
            "It stays. | | figure 1",
            Trend(name="same", says="It stays.", of="shift", side="between", bound=-1, upper=2.5,
                  test="t interval", source="figure 1"),
        ),
        (
            "units: units/20 = 40 ± 0",
            "It has 40 units. | 20 | units",
            Value(name="units", says="It has 40 units.", of="units/20", published=40, tolerance=0,
                  at=("20", "units"), source="section 2"),
        ),
        (
            "tau: tau/GN = 1.5e-2 (0.003), above 0",
            "Tau is 0.015. | GN | tau | table 4",
            Value(name="tau", says="Tau is 0.015.", of="tau/GN", published=0.015,
                  published_se=0.003, side="above", at=("GN", "tau"), source="table 4"),
        ),
        (
            "low: error = 0.51 ± 0.1, below 0.8",
            "It fails. | example | IOU",
            Value(name="low", says="It fails.", of="error", published=0.51, tolerance=0.1,
                  side="below", bound=0.8, at=("example", "IOU"), source="section 2"),
        ),
    ],
)  # fmt: skip
def test_a_row_is_the_claim_that_it_says(key, row, claim):
    (made,) = claims({key: row}, **BOTH)
    assert made == claim
    assert claim_hash(made) == claim_hash(claim)


def test_rows_share_fields_and_single_ones_have_their_own():
    table = {"one: a > 0": "A is positive.", "two: b > 0": "B is positive."}
    one, two = claims(table, scales=("paper",), extra={"two": {"scales": ("laptop",)}})
    assert (one.scales, two.scales) == (("paper",), ("laptop",))
    assert one.test == Trend(name="", says="", of="", side="above").test
    with pytest.raises(ValueError, match="found three without one: correct the name"):
        claims(table, extra={"three": {}})


@pytest.mark.parametrize("key", ["no condition", "name: of >", "name: of = 3", "name: of > big"])
def test_what_is_no_condition_is_refused(key):
    with pytest.raises(ValueError, match=r"a claim must be 'name: quantity > 0\.5'.*found '"):
        claims({key: "It says something."})


def test_a_printed_number_needs_its_place():
    with pytest.raises(ValueError, match=r"'n' of a printed number needs the row and the column"):
        claims({"n: n = 3 ± 0": "It is three."})


def test_a_grid_is_a_base_with_changes_in_the_order_of_the_base():
    base = grid(seed=range(3), lr=0.1, sizes=[[2, 2], [3]])
    assert base == {"seed": range(3), "lr": [0.1], "sizes": [[2, 2], [3]]}
    smoke = grid(base, sizes=[[2]], seed=0)
    assert list(smoke.items()) == [("seed", [0]), ("lr", [0.1]), ("sizes", [[2]])]


def test_printed_tables_are_looked_up():
    (first, *_) = printed("klindt", "table-1")
    assert (first["param"], first["mse_ood"]) == ("N=16", 0.0199)
    with pytest.raises(ValueError, match="of klindt has no table 'figure-1': enter its columns"):
        printed("klindt", "figure-1")
