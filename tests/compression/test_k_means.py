import itertools

import pytest
import torch
from torch.testing import assert_close

from cases import points
from inscape.compression import k_means
from inscape.compression.k_means import nearest


def spread(x, groups):
    """Return the sum of squared distances from the means of groups."""
    return sum(float((x[g] - x[g].mean(0)).square().sum()) for g in groups if len(g))


def test_best_partition_of_few_points_is_found():
    x = torch.cat([points(4, 2), points(5, 2, seed=2) + 9])
    best = min(
        spread(x, [[i for i in range(9) if mask >> i & 1], [i for i in range(9) if ~mask >> i & 1]])
        for mask in range(1, 2**8)
    )
    found = k_means(x, 2)
    assert found.inertia == pytest.approx(best, rel=1e-6)
    assert found.labels[:4].unique().numel() == found.labels[4:].unique().numel() == 1


def test_one_cluster_is_the_mean_and_as_many_as_points_leave_nothing():
    x = points(50, 3) + 1e4
    one = k_means(x, 1)
    assert_close(one.centres[0], x.mean(0))
    assert one.inertia == pytest.approx(float((x - x.mean(0)).square().sum()))
    every = k_means(x, 80)
    assert every.inertia == 0
    assert every.labels.tolist() == list(range(50))


@pytest.mark.parametrize("n", [300, 9000])  # all points, and mini-batches
def test_centres_are_the_means_of_their_points(n):
    x = points(n, 4)
    found = k_means(x, 7)
    assert len(found.centres) == 7
    for label, centre in enumerate(found.centres):
        assert_close(centre, x[found.labels == label].mean(0))
    inertia = float((x - found.centres[found.labels]).square().sum())
    assert found.inertia == pytest.approx(inertia, rel=1e-6)


def test_mini_batches_find_clusters_that_are_far_apart():
    middles = 20 * torch.tensor(list(itertools.product([0.0, 1], repeat=3))).double()
    truth = torch.arange(8000) % 8
    x = middles[truth] + points(8000, 3)
    found = k_means(x, 8, seed=3)
    pairs = {(a, b) for a, b in zip(truth.tolist(), found.labels.tolist(), strict=True)}
    assert len(pairs) == 8


def test_mini_batches_come_near_the_inertia_of_scikit_learn():
    from sklearn.cluster import MiniBatchKMeans

    x = points(6000, 20) * torch.linspace(3, 0.1, 20)
    ours = k_means(x, 12).inertia
    peer = MiniBatchKMeans(12, n_init=3, random_state=0).fit(x.numpy()).inertia_
    assert ours < 1.03 * peer


def test_nearest_is_that_of_all_distances_and_equal_calls_are_equal():
    x, centres = points(40, 3).float(), points(6, 3, seed=2).float()
    labels, squares = nearest(x, centres)
    assert labels.tolist() == torch.cdist(x, centres).argmin(1).tolist()
    assert_close(squares, torch.cdist(x, centres).square().amin(1), atol=1e-5, rtol=1e-5)
    first, again = (k_means(points(5000, 3), 9, seed=4) for _ in range(2))
    assert torch.equal(first.centres, again.centres)


def test_equal_points_make_fewer_clusters(unchecked):
    x = torch.tensor([[1.0], [1.0], [1.0], [5.0]])
    found = k_means(x, 3)
    assert found.inertia == 0
    assert sorted(found.centres.unique().tolist()) == [1, 5]
    with pytest.raises(ValueError, match="k must be at least 1, found 0: raise k"):
        k_means(x, 0)
    with pytest.raises(ValueError, match="x must be finite, found NaN or Inf in 4 of 4"):
        k_means(x / 0, 2)
