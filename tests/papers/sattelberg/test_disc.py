"""Tables 4.2 and 4.3, figures 4.6 to 4.8: printed numbers, rules and rates against other ways."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from torch import nn

from inscape.lab import catalogue
from inscape.lab.statistics import paired_difference
from inscape.lab.store import Record
from inscape.papers.sattelberg import _disc, figure_4_8
from inscape.papers.sattelberg import circle_and_annulus as figure_4_6
from inscape.papers.sattelberg import enclosing_rates as _rates
from inscape.papers.sattelberg import enclosing_rates as table_4_2
from inscape.papers.sattelberg import enclosing_rates as table_4_3
from inscape.papers.sattelberg._polygons import is_convex, ring_radii
from inscape.regions import expanded_simplex, hyperoctahedron

FACTS = {entry["id"]: entry for entry in catalogue.paper_facts("sattelberg")["entries"]}


def record(values: dict[str, Any], **settings: Any) -> Record:
    return Record(
        experiment="", scale="paper", key="", settings=settings, data="", values=values,
        claims={}, provenance={},
    )  # fmt: skip


def table(count: Any, **choice: str) -> list[Record]:
    """Return records of all rows in which ``count(row)`` of 100 networks succeed."""
    found = []
    for row in _rates.ROWS:
        good = count(row)
        shapes = dict.fromkeys(_disc.SHAPES, 0) | {"hyperoctahedron": good, "open": 100 - good}
        values = {"best": [960] * good + [900] * (100 - good), "end": [949] * 100,
                  "shapes": shapes, "shapes_of_successes": dict.fromkeys(_disc.SHAPES, 0),
                  "diverged": 0}  # fmt: skip
        place = dict(zip(_rates.FACTORS, row, strict=True))
        found.append(record(values, points=1000, **_rates.JUDGED | choice, **place))
    return found


def test_printed_tables_are_those_of_the_dissertation():
    rows = {tuple(row[:4]): row[4] for row in FACTS["table-4.2"]["rows"]}
    assert rows == _rates.PRINTED
    for factor, level, printed in FACTS["table-4.3"]["rows"]:
        assert abs(100 * _rates.printed_mean(factor, level) - printed) <= 0.5


@pytest.mark.parametrize(("k", "n"), [(0, 100), (29, 100), (94, 100), (7, 7)])
def test_intervals_are_wilson_s(k: int, n: int):
    ours, theirs = _rates.wilson(k, n), binomtest(k, n).proportion_ci(method="wilson")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-6)
    assert ours.se > 0


def test_printed_counts_as_records_reproduce_every_claim():
    records = table(lambda row: _rates.PRINTED[row])
    found = _rates.analyse(records)
    for claim in (*table_4_2.TABLE_4_2.claims, *table_4_3.TABLE_4_3.claims):
        ours = found[claim.of]
        if hasattr(claim, "published"):
            assert ours.value == pytest.approx(claim.published)
        else:
            assert ours.value > claim.bound if claim.side == "above" else ours.value < claim.bound
    assert _rates.agreeing(records) == (36, 36)
    assert _rates.agreeing(records, "end")[0] == 0  # 949 of 1000 are not enough
    assert (
        sum("the choice that is judged" in line for line in table_4_2.conclude_rates(records)) == 1
    )


def test_differences_are_those_of_the_means_and_paired_over_settings():
    def count(row):
        return (80 if row[1] == 0.1 else 20) + _rates.ROWS.index(row) % 3

    found = _rates.analyse(table(count))
    step = found["leak 0.1 - 0.0"]
    assert step.value == pytest.approx(found["leak 0.1"].value - found["leak 0.0"].value)
    sides = [[count(row) / 100 for row in _rates.ROWS if row[1] == leak] for leak in (0.1, 0.0)]
    assert step.se == pytest.approx(paired_difference(*sides).se)
    assert found["leak 0.0 - 0.1"].value == pytest.approx(-step.value)


def test_other_choices_do_not_mix_with_the_judged_one():
    records = table(lambda row: 50) + table(lambda row: 0, init="he_normal")
    assert _rates.analyse(records)["loss MSE"].value == pytest.approx(0.5)
    assert _rates.analyse(records, init="he_normal")["loss MSE"].value == 0.0
    assert [c["init"] for c in _rates.choices(records)] == ["pytorch", "he_normal"]
    assert len(table_4_2.conclude_rates(records)) == 6
    assert all("0.0 (" in line for line in table_4_3.conclude_means(records))


def test_labels_and_thresholds():
    y = torch.tensor([[0, 1]])
    assert [_disc.targets(y, one).tolist() for one in _disc.LABELS] == [
        [[0, 1]], [[1, 0]], [[-1, 1]]]  # fmt: skip
    assert [_disc.threshold("MSE", one) for one in _disc.LABELS] == [0.5, 0.5, 0.0]
    assert _disc.threshold("BCE", "annulus") == 0.0
    rows = table_4_2.TABLE_4_2.cells(table_4_2.TABLE_4_2.paper)
    assert len(rows) == 3 * (36 + 36 + 18)


def test_right_is_that_of_the_module():
    (x, inner), test = _disc.drawn([3, 4], n=30, n_test=20, dimension=3, normalise=True)
    assert x.shape == (2, 30, 3)
    assert test[0].shape == (2, 20, 3)
    model = nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(0.2), nn.Linear(4, 1))
    rng = torch.Generator().manual_seed(0)
    rows = torch.randn(2, 21, generator=rng)
    for row, points, label, count in zip(
        rows, x, inner, _disc.right(rows, x, inner, leak=0.2), strict=True
    ):
        nn.utils.vector_to_parameters(row, model.parameters())
        assert ((model(points)[:, 0] > 0) == (label == 1)).sum() == count


def test_shapes_are_read_from_flat_weights():
    rows = []
    for make in (hyperoctahedron, expanded_simplex):
        parameters = make(3).network(leak=0.1).parameters()
        rows.append(nn.utils.parameters_to_vector(parameters).detach().numpy())
    rows.append(np.full(21, np.nan))
    names = _disc.shape_names(np.array(rows), 3, 0.1)
    assert names == ["hyperoctahedron", "expanded simplex", "open"]
    assert _disc.counts(names, [True, False, True])["expanded simplex"] == 0
    assert _disc.shape_names(np.array(rows[:1]), 3, 0.1, cut=2.0) == ["open"]


def test_radii_of_polygons():
    square = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    assert ring_radii(square) == pytest.approx((0.5**0.5, 1.0))
    assert ring_radii(square + np.array([2.0, 0.0]))[0] < 0
    assert is_convex(square)
    assert not is_convex(np.array([[0.0, 0], [2, 0], [0.1, 0.1], [0, 2]]))


def test_quadrilaterals_that_cut_are_counted_and_hexagons_are_not():
    def region(corners, near, far):
        return {"corners": corners, "near": near, "far": far, "ring": None}

    regions = [region(4, 0.5, 0.7), region(4, 0.4, 0.7), region(4, 0.5, 0.8), region(6, 0.1, 3.0)]
    records = [record({"regions": regions, "successes": 4}, batch=10, leak=0.0)]
    assert figure_4_6.cutting(records) == (2, 3)
    assert figure_4_6.analyse_overlap(records)["overlap"].value == pytest.approx(2 / 3)
    assert "3 successful networks enclose a quadrilateral and 1 a hexagon" in (
        figure_4_6.conclude_overlap(records)[0])  # fmt: skip


def test_change_with_dimension_is_last_less_first():
    def at(dimension, good):
        shapes = {"hyperoctahedron": good, "expanded simplex": 0, "between": 0, "open": 10 - good}
        values = {"test": [100] * good + [96] * (10 - good), "shapes": shapes}
        return record(values, **figure_4_8.JUDGED, leak=0.0, dimension=dimension, points=100)

    found = figure_4_8.analyse([at(8, 2), at(2, 9), at(5, 5)])
    assert found["0.9999 with leak 0"].value == pytest.approx(-0.7)
    assert found["0.95 with leak 0"].value == 0.0
    assert found["closed with leak 0"].value == pytest.approx(-0.7)
    assert len(figure_4_8.EXPERIMENT.cells(figure_4_8.EXPERIMENT.paper)) == 3 * 14
