"""Cross-sections of image networks: windows, joining on the grid, and the analyses of counts."""

import numpy as np
import pytest
import torch

from inscape.lab import Record
from inscape.papers.sattelberg import _images, _sections, grid_ablation
from inscape.papers.sattelberg import closest_images as _triple
from inscape.papers.sattelberg import cross_sections as figure_6_13
from inscape.papers.sattelberg._sections import by_rows
from inscape.regions.plane_regions import plane_regions


def record(values, **settings) -> Record:
    return Record(
        schema=1,
        experiment="sattelberg/sections",
        scale="smoke",
        key="0",
        settings=settings,
        data="none",
        values=values,
        claims={},
        provenance={},
    )


class Lines(torch.nn.Module):
    """A function as a module."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


def test_equal_labels_are_joined_by_the_row_rule():
    assert by_rows(np.zeros((3, 4), int)) == 1
    assert by_rows(np.arange(9).reshape(3, 3)) == 9
    apart = np.array([[0, 1, 2], [3, 4, 0]])  # the 0 above lies left of the diagonal
    assert by_rows(apart) == 6
    reached = np.array([[3, 1, 0], [0, 4, 5]])  # the row above is seen to its right end
    assert by_rows(reached) == 5


def test_joining_agrees_with_brute_force():
    labels = np.random.default_rng(0).integers(3, size=(5, 6))
    parent = list(range(30))

    def root(k):
        while parent[k] != k:
            k = parent[k]
        return k

    for i in range(5):
        for j in range(6):
            seen = [(i, j - 1)] if j else []
            seen += [(i - 1, k) for k in range(max(0, j - 1), 6)] if i else []
            for a, b in seen:
                if labels[a, b] == labels[i, j]:
                    parent[root(6 * i + j)] = root(6 * a + b)
    assert by_rows(labels) == len({root(k) for k in range(30)})


def test_window_is_a_square_around_a():
    images = torch.zeros(3, 3, 32, 32)
    images[1, 0, 0, 0], images[2, 0, 0, 1] = 4.0, 1.0
    found = _sections.window(images, 0.25)
    torch.testing.assert_close(found.amax(0), torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(found.mean(0), torch.zeros(2, dtype=torch.float64))


def test_window_doubles_until_it_holds_enough_cells():
    images = torch.zeros(3, 3, 32, 32)
    images[1, 0, 0, 0], images[2, 0, 0, 1] = 1.0, 1.0
    kinks = torch.tensor([0.001, 0.003, 0.1])

    def f(x):  # lines u = 0.001, 0.003 and 0.1
        return (x[:, 0, 0, :1] - kinks).relu()

    share, found = _sections.small_window(Lines(f).eval(), images, 3)
    assert share == pytest.approx(0.0032)
    assert found.cells == 3
    share, found = _sections.small_window(
        Lines(f).eval(), images, 50
    )  # never: the whole way is the end
    assert (share >= 1, found.cells) == (True, 4)


def test_lines_through_a_are_told_from_others():
    square = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]).double()

    def f(x):  # two lines through the origin in five parts, one beside it in two
        return x.abs() + (x[:, :1] - 0.5).relu()

    found = plane_regions(f, square, domain=square)
    assert _sections.through_a(found) == pytest.approx(5 / 7)
    assert _sections.through_a(plane_regions(lambda x: x, square, domain=square)) == 0.0


def test_anchors_are_the_closest_images():
    images = _sections.anchors("digits:n=30", None)
    assert images.shape == (3, 3, 32, 32)
    assert len({image.numpy().tobytes() for image in images}) == 3


@pytest.mark.data
def test_known_zeros_are_the_closest(data_dir, monkeypatch):
    monkeypatch.setenv("INSCAPE_DATA_DIR", str(data_dir))
    known = _sections.FOUND[_images.data_hash("mnist:n=60000"), 0]
    assert _triple.triple("mnist:n=60000", 0)["indices"] == known


def test_dense_analysis_compares_copies():
    def one(optimizer, copy, regions):
        return record({"regions": regions}, optimizer=optimizer, copy=copy)

    records = [one("sgd", 1, 1000), one("sgd", 2, 100), one("adamw", 1, 100), one("adamw", 2, 10)]
    found = _sections.dense_analyse(records)
    assert found["regions/sgd"].value == pytest.approx(2.5)
    assert found["sgd over adamw"].value == pytest.approx(np.log(10))
    assert "SGD: 1,000, 100; AdamW: 100, 10." in _sections.dense_conclude(records)[0]


def test_patterns_over_jacobians_is_a_log_ratio():
    records = [record({"pattern": 20, "jacobian": 10}), record({"pattern": 80, "jacobian": 10})]
    found = figure_6_13.analyse_methods(records)["patterns over jacobians"]
    assert found.value == pytest.approx(np.log(4))


def ablated(**found) -> Record:
    rows = [
        {**variant, "found": found.get(str(variant["tolerance"]), 10)}
        for variant in grid_ablation.variants(8)
    ]
    for row in rows:
        if row["method"] == "pattern":
            row["found"] = 20
    values = {"rows": rows, "seen": {"2": 4, "4": 10, "8": 30}, "cells": 40, "complete": True}
    values["regions"] = 25
    return record(values, net="simple", optimizer="sgd", copy=1)


def test_ablation_reads_the_rows_it_names():
    one = ablated(**{"0.1": 5, "1e-06": 15})
    assert grid_ablation.count(one, method="pattern") == 20
    assert grid_ablation.count(one, tolerance=0.1) == 5
    found = grid_ablation.analyse([one, one])
    assert found["patterns over jacobians"].value == pytest.approx(np.log(2))
    assert found["loose over tight"].value == pytest.approx(np.log(5 / 15))
    assert found["missed"].value == pytest.approx(1 - 30 / 40)
    assert found["missed less"].value == pytest.approx(20 / 40)


def test_ablation_says_what_is_missing():
    with pytest.raises(KeyError, match=r"the record has no row with .*'tolerance': 0\.5"):
        grid_ablation.count(ablated(), tolerance=0.5)


def test_sizes_of_grids_never_fall_below_two():
    assert grid_ablation.sizes(64) == [16, 32, 64]
    assert grid_ablation.sizes(4) == [2, 4]
