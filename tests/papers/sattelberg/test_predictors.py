"""Correlations and predictions, against SciPy and laws that are known."""

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from inscape.papers.sattelberg import _correlation as correlation
from inscape.papers.sattelberg import _regression as regression
from inscape.papers.sattelberg import predictors
from inscape.papers.sattelberg._difficulty import Counts

DICE = np.random.default_rng(0)
X = DICE.integers(0, 6, 80).astype(float)
Y = X + DICE.normal(size=80)


def test_spearman_is_scipys_with_ties_and_along_rows():
    assert float(correlation.spearman(X, Y)) == pytest.approx(spearmanr(X, Y).statistic)
    rolls = correlation.rolls(80, draws=3)
    many = correlation.spearman(X[rolls], Y[rolls])
    assert many == pytest.approx([spearmanr(X[r], Y[r]).statistic for r in rolls])
    assert np.isnan(correlation.spearman(np.ones(5), np.arange(5.0)))


def test_intervals_hold_the_value():
    for found in (correlation.rank_correlation(X, Y), correlation.kendall_correlation(X, Y)):
        assert found is not None
        assert found.low < found.value < found.high < 1
    assert found.value == pytest.approx(kendalltau(X, Y).statistic)
    assert correlation.rank_correlation(np.ones(80), Y) is None


def test_best_explanation_is_ahead_and_the_others_behind():
    metrics = {"good": Y + 0.1 * X, "bad": DICE.normal(size=80), "opposite": -X}
    ahead = correlation.explaining_best("good", metrics, Y)
    behind = correlation.explaining_best("bad", metrics, Y)
    assert ahead is not None
    assert behind is not None
    assert ahead.low > 0 > behind.high


def test_prediction_is_that_of_least_squares_fold_by_fold():
    x, folds = regression.columns([X, Y]), np.arange(80) % regression.FOLDS
    target = np.sin(Y) + X
    errors = np.empty(80)
    for fold in range(regression.FOLDS):
        out = folds == fold
        errors[out] = target[out] - x[out] @ np.linalg.lstsq(x[~out], target[~out])[0]
    share = 1 - (errors**2).sum() / ((target - target.mean()) ** 2).sum()
    assert regression.explained(x, target, folds) == pytest.approx(share, rel=1e-6)


def test_a_quadratic_law_is_predicted_and_noise_is_not():
    drawn = correlation.rolls(80, draws=20)
    whole, parts = regression.shares_explained(regression.columns([X]), X**2 - X, drawn)
    assert whole == pytest.approx(1)
    assert parts == pytest.approx(np.ones(20))
    noise = DICE.normal(size=80)
    nothing, parts = regression.shares_explained(np.eye(80), noise, drawn)
    assert nothing < 0.1
    assert parts.max() < 0.1  # copies in other folds would have been predicted
    ahead = regression.lead((whole, np.ones(20)), [(nothing, parts)])
    assert ahead.low > 0.5


def test_log_odds_count_half_a_trial():
    counts = Counts(
        sizes=((2, 1), (3, 1)), successes=np.array([[0, 50, 100], [0, 50, 100]]), trials=100
    )
    found = predictors.log_odds(counts)
    assert found == pytest.approx([-np.log(401), 0, np.log(401)])
