"""Neighbours against sorting by hand, and scikit-learn's search on written-out features."""

import sys

import pytest
import torch
from scipy.stats import spearmanr
from sklearn.neighbors import NearestNeighbors
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import NotApplicable
from inscape.kernels import neighbours, tangent_features
from inscape.kernels.tangent_kernel import MEMORY

MODEL, X, QUERIES = dense(3, 7, 2), points(20, 3), points(6, 3, seed=4)


def unit(features):
    return features / features.norm(dim=1, keepdim=True)


@pytest.mark.parametrize("queries", [None, QUERIES], ids=["among themselves", "queries"])
def test_agrees_with_a_search_among_features(queries):
    found = neighbours(MODEL, X, queries=queries, count=4)
    asked = X if queries is None else queries
    for space, ours in ((lambda x: unit(tangent_features(MODEL, x)), found.by_kernel),
                        (lambda x: x, found.by_distance)):  # fmt: skip
        search = NearestNeighbors(n_neighbors=4, algorithm="brute").fit(space(X).numpy())
        theirs = search.kneighbors(
            None if queries is None else space(asked).numpy(), return_distance=False
        )
        assert torch.equal(ours, torch.from_numpy(theirs))
    rows = torch.arange(len(asked))[:, None]
    inner = unit(tangent_features(MODEL, asked)) @ unit(tangent_features(MODEL, X)).T
    assert_close(found.cosines, inner[rows, found.by_kernel])
    assert_close(found.distances, (asked[:, None] - X[found.by_distance]).norm(dim=2))


def test_agreement_and_correlation_are_what_counting_gives():
    found = neighbours(MODEL, X, queries=QUERIES, count=5)
    inner = unit(tangent_features(MODEL, QUERIES)) @ unit(tangent_features(MODEL, X)).T
    apart = (QUERIES[:, None] - X).norm(dim=2)
    for q in range(6):
        both = set(found.by_kernel[q].tolist()) & set(found.by_distance[q].tolist())
        assert float(found.agreement[q]) == len(both) / 5
        expected = spearmanr(-inner[q].numpy(), apart[q].numpy()).statistic
        assert float(found.correlation[q]) == pytest.approx(expected, abs=1e-12)
    assert found.summary().value == float(found.agreement.mean())
    assert found.chance == 0.25


def test_a_points_own_rank_does_not_count():
    found = neighbours(MODEL, X, count=3)
    features = unit(tangent_features(MODEL, X))
    rest = torch.arange(20) != 4
    expected = spearmanr(
        -(features[rest] @ features[4]).numpy(), (X[rest] - X[4]).norm(dim=1).numpy()
    ).statistic
    assert float(found.correlation[4]) == pytest.approx(expected, abs=1e-12)
    assert not (found.by_kernel == torch.arange(20)[:, None]).any()
    assert found.chance == 3 / 19


def test_a_linear_map_without_bias_takes_angles_between_inputs():
    model = nn.Linear(3, 1, bias=False).double().eval()
    on_a_sphere = X / X.norm(dim=1, keepdim=True)
    found = neighbours(model, on_a_sphere, count=19)
    assert torch.equal(found.by_kernel, found.by_distance)
    assert_close(found.correlation, torch.ones(20).double())
    assert found.summary().value == 1.0


def test_of_equal_points_the_first_comes_first():
    x = X[:3].repeat(3, 1)
    found = neighbours(MODEL, x, queries=X[:1], count=3)
    assert found.by_distance.tolist() == [[0, 3, 6]]


def test_one_constant_order_has_no_correlation():
    x = X[:1].repeat(5, 1)
    found = neighbours(MODEL, x, count=2)
    assert_close(found.correlation, torch.zeros(5).double())


def test_refusals_and_what_does_not_apply():
    with pytest.raises(ValueError, match=r"at most the 19 points .* beside it, found 20: lower"):
        neighbours(MODEL, X, count=20)
    with pytest.raises(ValueError, match=r"count must be at least 1, found 0: raise count"):
        neighbours(MODEL, X, count=0)
    with pytest.raises(ValueError, match=r"at most the 0 points .*, found 5: lower count or pass"):
        neighbours(MODEL, X[:1])
    frozen = nn.Linear(3, 1).double().requires_grad_(False).eval()
    found = neighbours(frozen, X)
    assert isinstance(found, NotApplicable)
    assert found.status == "not applicable: the model has no trainable parameters"


@pytest.mark.parametrize("queries", [None, QUERIES], ids=["among themselves", "queries"])
def test_queries_ranked_a_few_at_a_time_have_the_same_neighbours(queries, monkeypatch):
    whole = neighbours(MODEL, X, queries=queries, count=4)
    module = sys.modules["inscape.kernels.neighbours"]
    monkeypatch.setattr(module, "SORTED", MEMORY // (3 * len(X)))
    parts = neighbours(MODEL, X, queries=queries, count=4)
    assert parts.chance == whole.chance
    assert parts.points == whole.points
    assert torch.equal(parts.by_kernel, whole.by_kernel)
    assert torch.equal(parts.by_distance, whole.by_distance)
    for name in ("cosines", "distances", "agreement", "correlation"):
        assert_close(getattr(parts, name), getattr(whole, name))
