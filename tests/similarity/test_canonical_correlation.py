import numpy as np
import pytest
import torch
from scipy.linalg import eigh
from torch.testing import assert_close

from cases import dense, points
from inscape.similarity import canonical_correlation
from oracles.layers import hidden_layers, permuted_copy


def of(x, y, **settings):
    return canonical_correlation(lambda z: z, x, other=lambda z: z, other_x=y, **settings)


def by_covariances(x, y):
    """Return canonical correlations and first directions from the generalised eigenproblem."""
    x, y = ((side - side.mean(0)).numpy() for side in (x, y))
    mixed = x.T @ y @ np.linalg.solve(y.T @ y, y.T @ x)
    squares, directions = eigh(mixed, x.T @ x)
    order = np.argsort(-squares)[: min(x.shape[1], y.shape[1])]
    return np.sqrt(squares[order].clip(0, 1)), x @ directions[:, order], x


def test_correlations_and_weights_are_those_of_the_generalised_eigenproblem():
    x, y = points(30, 4), points(30, 3, seed=2)
    y[:, 0] += x[:, 1]
    correlations, directions, centred = by_covariances(x, y)
    weights = np.abs(centred.T @ directions).sum(0)
    result = of(x, y, variance=1.0)
    assert result.summary().value == pytest.approx(correlations.mean(), rel=1e-10)
    expected = (weights * correlations).sum() / weights.sum()
    assert float(result.weighted) == pytest.approx(expected, rel=1e-10)


def test_directions_of_little_variance_are_left_out():
    x, y = points(30, 3), points(30, 3, seed=2)
    shared = points(30, 1, seed=3)
    noisy = [torch.cat([10 * shared, 0.1 * side], 1) for side in (x, y)]
    result = of(*noisy)
    assert (result.directions, result.other_directions) == ((1,), (1,))
    assert result.summary().value > 0.99
    assert of(*noisy, variance=1.0).summary().value < 0.9


def test_invertible_maps_change_nothing():
    x, y, skew = points(30, 4), points(30, 3, seed=2), points(3, 3, seed=5)
    plain, moved = of(x, y, variance=1.0), of(x, y @ skew + 1, variance=1.0)
    assert_close(moved.values, plain.values)
    assert_close(moved.weighted, plain.weighted)


def test_layers_are_compared_pair_by_pair_and_units_in_any_order():
    f, g, x = dense(3, 6, 2), dense(3, 5, 2, seed=1), points(40, 3)
    result = canonical_correlation(f, x, other=g)
    for i, left in enumerate(hidden_layers(f, x)):
        for j, right in enumerate(hidden_layers(g, x)):
            alone = of(left, right)
            assert_close(result.values[i, j], alone.values[0, 0])
            assert_close(result.weighted[i, j], alone.weighted[0, 0])
    assert_close(canonical_correlation(f, x, other=permuted_copy(g)).values, result.values)
    assert canonical_correlation(f, x, other=f).summary().value == pytest.approx(1)


def test_independent_features_correlate_no_more_than_permuted_ones():
    result = of(points(400, 5), points(400, 5, seed=2))
    assert result.summary().value == pytest.approx(float(result.baseline), abs=0.05)


def test_as_many_directions_as_examples_are_undefined_and_said():
    status = of(points(6, 9), points(6, 2, seed=2), variance=1.0).status
    assert "any two layers correlate perfectly: pass more examples than features" in status
    with pytest.raises(ValueError, match="variance must be a fraction above 0 and at most 1"):
        of(points(6, 2), points(6, 2), variance=1.5)
