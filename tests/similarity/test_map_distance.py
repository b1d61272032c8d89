import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.similarity import map_distance
from oracles.local_maps import coefficients


@pytest.mark.parametrize("scale", ["signed", "absolute"])
def test_formula_of_the_dissertation(scale):
    f, g, x = dense(3, 8, 2), dense(3, 5, 5, 2, seed=1), points(9, 3)
    sides = [coefficients(net, x) for net in (f, g)]
    largest = [float((c.abs() if scale == "absolute" else c).max()) for c in sides]
    scaled = [c / a for c, a in zip(sides, largest, strict=True)]
    expected = sum(float((scaled[0][:, j] - scaled[1][:, j]).norm() ** 2) for j in range(2))
    result = map_distance(f, x, other=g, scale=scale)
    assert result.summary().value == pytest.approx(expected / (2 * 9 * 4), rel=1e-12)
    assert_close(result.scales, torch.tensor(largest, dtype=torch.float64))


def test_of_linear_networks_by_hand():
    f, g = nn.Linear(2, 1).double().eval(), nn.Linear(2, 1).double().eval()
    with torch.no_grad():
        for net, weight, bias in ((f, [4.0, 2.0], 0.0), (g, [1.0, 2.0], -2.0)):
            net.weight.copy_(torch.tensor([weight]))
            net.bias.fill_(bias)
    # (1, 1/2, 0) and (1/2, 1, -1): squares 1/4 + 1/4 + 1
    assert map_distance(f, points(5, 2), other=g).summary().value == pytest.approx(0.5)


def test_of_a_network_and_itself_or_a_multiple_is_zero():
    f, x = dense(3, 8, 2), points(9, 3)
    assert map_distance(f, x, other=f).distances.tolist() == [0.0] * 9
    assert float(map_distance(f, x, other=lambda z: 7 * f(z)).distances.max()) < 1e-15


def test_no_positive_coefficient_sets_no_scale():
    f = lambda z: -z  # noqa: E731
    status = map_distance(f, -points(4, 2).abs(), other=f).status
    assert "no coefficient of the first network is positive" in status
    assert status.endswith("try scale='absolute'")


def test_inputs_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match="inputs must be of one size, found 3 and 2: put the"):
        map_distance(dense(3, 4, 1), points(5, 3), other=dense(2, 4, 1), other_x=points(5, 2))
