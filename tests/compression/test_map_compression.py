import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.compression import map_compression
from inscape.functional.jacobians import jacobians
from inscape.similarity import map_transfer


def coefficients(f, x):
    """Return gradient and intercept of each output at each point."""
    slopes = jacobians(f, x).detach()
    constants = f(x).detach() - torch.einsum("ncd,nd->nc", slopes, x)
    return torch.cat([slopes, constants[:, :, None]], 2)


def classified(maps, x):
    ones = torch.ones(len(x), 1, dtype=x.dtype)
    return torch.einsum("ncd,nd->nc", maps, torch.cat([x, ones], 1)).argmax(1)


def test_every_map_its_own_cluster_is_the_nearest_map_of_the_training_points():
    f, x, training = dense(3, 12, 4), points(60, 3), points(40, 3, seed=5)
    result = map_compression(f, x, fit_on=training, clusters=[40])
    own, known = coefficients(f, x), coefficients(f, training)
    chosen = [torch.cdist(own[:, j], known[:, j]).argmin(1) for j in range(4)]
    maps = torch.stack([known[chosen[j], j] for j in range(4)], 1)
    assert result.predicted[0].tolist() == classified(maps, x).tolist()
    assert float(result.within[0]) == 0
    joint = map_compression(f, x, fit_on=training, clusters=[40], joint=True)
    together = torch.cdist(own.flatten(1), known.flatten(1)).argmin(1)
    assert joint.predicted[0].tolist() == classified(known[together], x).tolist()


def test_one_cluster_is_the_mean_map_whatever_is_merged():
    f, x, training = dense(3, 12, 4), points(60, 3), points(40, 3, seed=5)
    mean = coefficients(f, training).mean(0).expand(60, -1, -1)
    for joint in (False, True):
        result = map_compression(f, x, fit_on=training, clusters=[1], joint=joint)
        assert result.predicted[0].tolist() == classified(mean, x).tolist()
        assert float(result.within[0]) == pytest.approx(1)


def test_one_cluster_is_the_transfer_from_a_linear_network():
    f, x, y = dense(3, 12, 4), points(50, 3), points(50, 1, seed=3)[:, 0].gt(0).long()
    linear = nn.Linear(3, 4).double().eval()
    transfer = map_transfer(linear, x, y, other=f)
    compressed = map_compression(f, x, y, clusters=[1])
    assert compressed.predicted[0].tolist() == transfer.transferred.tolist()
    assert compressed.summary().value == transfer.summary().value


def test_training_points_with_a_cluster_each_keep_their_classes():
    f, x = dense(3, 12, 4), points(50, 3)
    result = map_compression(f, x, fit_on=x, clusters=[1, 50])
    assert result.accuracies[1] == 1
    assert result.own.tolist() == f(x).argmax(1).tolist()
    assert result.fitted_on == 50


def test_network_of_few_maps_needs_no_more_clusters():
    def f(z):
        return torch.stack([z[:, 0].abs(), 1.5 - z[:, 0].abs()], 1)

    x = 3 * points(80, 2)
    result = map_compression(f, x, clusters=[1, 2], wanted=1.0)
    assert result.accuracies.tolist()[-1] == 1
    assert result.accuracies[0] < 0.9
    assert result.enough == 2
    assert float(result.within[-1]) < 1e-9


def test_search_ends_next_to_a_number_that_does_not_do():
    f, x = dense(4, 40, 40, 3), points(300, 4)
    result = map_compression(f, x, fit_on=x, clusters=[1], wanted=0.98)
    numbers = result.clusters.tolist()
    assert result.enough in numbers
    k = numbers.index(result.enough)
    assert result.accuracies[k] >= 0.98
    assert (result.accuracies[:k] < 0.98).all()
    assert numbers[k - 1] >= result.enough / 1.05 - 1
    assert map_compression(f, x, clusters=[1], wanted=1.0).enough is None


def test_wilson_intervals_hold_the_accuracy_against_the_labels():
    f, x = dense(3, 12, 4), points(40, 3)
    y = f(x).argmax(1)
    y[:10] = (y[:10] + 1) % 4
    result = map_compression(f, x, y)
    assert result.own_accuracy == 0.75
    assert (result.ends[:, 0] <= result.accuracies).all()
    assert (result.accuracies <= result.ends[:, 1]).all()
    assert result.summary().value == float(result.per_sample().mean())
    assert "network: 0.75" in result.summary().basis
    assert "own classes" in map_compression(f, x, y.double()).summary().basis


def test_projected_maps_cluster_nearly_as_well_and_say_how_far_distances_are_off():
    torch.manual_seed(0)
    centres = 4 * points(4, 400)
    x = centres[torch.arange(80) % 4] + 0.1 * points(80, 400)
    f = dense(400, 30, 3)
    stored = map_compression(f, x, clusters=[1, 4])
    projected = map_compression(f, x, clusters=[1, 4], room=1)
    assert stored.distortion == 0
    assert projected.distortion == pytest.approx((2 / 256) ** 0.5)
    assert projected.predicted[0].tolist() == stored.predicted[0].tolist()  # true maps are averaged
    assert_close(projected.within, stored.within, atol=0.1, rtol=0)
    assert (projected.predicted[1] == stored.predicted[1]).double().mean() > 0.9


def test_size_of_batches_does_not_matter_and_scale_does_not_overflow():
    f, x = dense(3, 12, 4), points(30, 3)
    plain, small = map_compression(f, x), map_compression(f, x, memory=1)
    assert torch.equal(plain.predicted, small.predicted)
    large = map_compression(lambda z: 1e60 * f(z), x)
    assert torch.equal(large.predicted, plain.predicted)


def test_constant_outputs_and_one_output():
    zero = map_compression(lambda z: 0 * z[:, :2], points(8, 2), clusters=[1, 2])
    assert zero.accuracies.tolist() == [1, 1]
    one = map_compression(dense(2, 8, 1), points(30, 2), clusters=[15])
    assert set(one.own.tolist()) == {0, 1}


def test_errors_say_what_does_not_fit(unchecked):
    f, x = dense(3, 8, 2), points(9, 3)
    with pytest.raises(ValueError, match="clusters must hold at least one number, found none"):
        map_compression(f, x, clusters=[])
    with pytest.raises(ValueError, match="clusters must be at least 1, found 0: raise clusters"):
        map_compression(f, x, clusters=[4, 0])
    with pytest.raises(ValueError, match=r"above 0 and up to 1, found 98: write 98% as"):
        map_compression(f, x, wanted=98)
    with pytest.raises(ValueError, match=r"of the shape of x, \(3,\), found \(2,\): pass both"):
        map_compression(f, x, fit_on=points(5, 2))
    with pytest.raises(ValueError, match="class numbers must lie between 0 and 1"):
        map_compression(f, x, torch.full((9,), 5))
    status = map_compression(f, x[:3]).status
    assert status == "not applicable: halves need at least four examples, found 3: pass fit_on"
