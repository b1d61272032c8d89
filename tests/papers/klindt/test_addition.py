"""What Klindt's experiments are made of: the exact solution, ridges, regions, printed numbers."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from inscape.controls import length_scale, symmetric
from inscape.lab.quantities import Column, LogRatio
from inscape.lab.records import Record, Records
from inscape.papers.klindt import _addition as task
from inscape.papers.klindt._published import PRINTED
from inscape.regions import plane_regions
from inscape.training import decay, fit


@pytest.mark.parametrize("weights", [(1, -1, 1, -1), (0.3, -7, 2, -0.1)])
def test_exact_solution_adds(weights):
    net = task.exact_solution(*weights, units=6)
    x = task.plane(100.0, 20)
    assert_close(net(x)[:, 0], x.sum(1))
    assert net[2].weight.shape == (1, 6)  # a row (K4)


def test_exact_solution_needs_its_signs():
    with pytest.raises(ValueError, match="alpha, gamma > 0 > beta, delta and at least 4 units"):
        task.exact_solution(1, 1, 1, -1)


def test_regions_are_those_of_the_exact_cut():
    net = task.network(12, "relu", normal=True, seed=5).double()
    square = [[-1.5, -1.5], [1.5, -1.5], [1.5, 1.5], [-1.5, 1.5]]
    cut = plane_regions(net, task.plane(1.0, 3), domain=torch.tensor(square, dtype=torch.float64))
    assert task.regions_in_square(net, 1.5) == cut.cells


def test_crossings_of_stripes():
    line = np.linspace(-1.5, 1.5, 601)
    stripes = np.sin(2 * np.pi * 2.0 * line)[:, None] + np.zeros(601)  # 4 a unit, one way of two
    assert task.crossings(stripes, 1.5) == pytest.approx(4 / 2, rel=0.05)
    assert task.crossings(np.ones((9, 9)), 1.5) == 0.0


def test_errors_of_a_known_function():
    data = task.disc_data(16, 0)
    found = task.errors(lambda x: x.sum(1) + 0.5, data, grid=32)
    for name in ("mse_train", "mse_test", "mse_ood", "antidiagonal"):
        assert found[name] == pytest.approx(0.25)
    assert found["crossings"] == 0


def test_training_is_the_papers():
    data = task.disc_data(12, 3)
    ours = task.trained(
        data, width=8, activation="tanh", steps=30, seed=4, inverse_sigma=2.0, symmetric=True
    )
    theirs = length_scale(task.network(8, "tanh", normal=True, seed=4), 0.5, bias="normalised")
    whole = symmetric(theirs)
    fit(whole, data.x, data.y, optimizer="adam", lr=1e-3, schedule=decay(0.9, 500), epochs=30)
    x = task.plane(1.5, 5)
    expected = whole.double()(x)[:, 0].detach()
    assert_close(task.double(ours, symmetric=True)(x), expected, rtol=1e-3, atol=1e-4)


def test_printed_numbers():
    assert len(PRINTED) == 24
    assert PRINTED["relu-64", "test"] == (6.22e-6, 1.1e-6)
    assert PRINTED["gp-0.2", "ood"] == (1.55, 0.0112)


def test_log_ratio_is_of_the_means_of_shared_seeds():
    empty = {"experiment": "", "scale": "laptop", "key": "", "data": "", "claims": {}}
    records = Records(
        Record(settings={"kind": kind, "seed": seed}, values={"mse": mse}, provenance={}, **empty)
        for kind, errors in (("one", {0: 10.0, 1: 30.0}), ("two", {0: 1.0, 1: 3.0, 2: 9.0}))
        for seed, mse in errors.items()
    )
    ratio = LogRatio(Column("mse", kind="one"), Column("mse", kind="two"))
    assert ratio(records).value == pytest.approx(1.0)
    assert ratio(records.where(lambda r: r.settings["seed"] == 2)) is None
