"""What the best of a sweep gains, and what it gains where the choice is not its own."""

import numpy as np
import pytest

from inscape.lab.store import Record
from inscape.papers.klindt import figure_10


def record(seed, strength, curve):
    nothing = {"claims": {}, "provenance": {}, "data": "", "key": ""}
    settings = {"seed": seed, "strength": strength, "kind": "relu"}
    return Record(
        experiment="", scale="laptop", settings=settings, values={"fgsm": curve}, **nothing
    )


def sweep(*curves_by_seed):
    return [
        record(seed, strength, curve)
        for seed, curves in enumerate(curves_by_seed)
        for strength, curve in curves.items()
    ]


def test_the_best_for_the_others_can_lose():
    records = sweep(
        {0.0: [0.9, 0.5, 0.1], 0.1: [0.8, 0.6, 0.0]},
        {0.0: [0.9, 0.6, 0.0], 0.1: [0.8, 0.5, 0.3]},
    )
    best = figure_10.gains(records, "fgsm", "relu")
    assert [one.tolist() for one in best] == [[0, pytest.approx(0.1), 0], [0, 0, 0.3]]
    fair = figure_10.fair_gains(records, "fgsm", "relu")
    np.testing.assert_allclose(fair[0], [0, 0, -0.1])  # seed 1 likes 0.1 at the last step only
    np.testing.assert_allclose(fair[1], [0, -0.1, 0], atol=1e-15)
    found = figure_10.analyse(records)["gain fgsm, relu"]
    assert found.value == pytest.approx(-0.05)


def test_one_seed_or_no_baseline_judges_nothing():
    alone = sweep({0.0: [0.9, 0.5], 0.1: [0.8, 0.6]})
    assert figure_10.fair_gains(alone, "fgsm", "relu") == []
    no_base = sweep({0.1: [0.9, 0.5]}, {0.1: [0.9, 0.5]})
    assert figure_10.fair_gains(no_base, "fgsm", "relu") == []
