from importlib import import_module

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core.anytime import batches
from inscape.compression import region_sharing
from inscape.compression._fingerprints import distinct_maps
from inscape.regions import local_maps

#: The module, whose name in the package is the instrument.
SOURCE = import_module("inscape.compression.region_sharing")


class Beside(nn.Module):
    """The sum of two networks."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x):
        return self.first(x) + self.second(x)


def test_regions_are_those_of_equal_patterns():
    f, x = dense(2, 6, 6, 3), points(200, 2)
    result, maps = region_sharing(f, x), local_maps(f, x)
    assert result.regions.tolist() == maps.labels.tolist()
    sizes = torch.bincount(maps.labels)
    assert result.summary().value == pytest.approx(float((sizes[maps.labels] > 1).double().mean()))
    assert result.shared.tolist() == (sizes[maps.labels] > 1).tolist()
    assert [row["points_in_region"] for row in result.rows()] == sizes[maps.labels].tolist()


def test_maps_are_those_of_equal_coefficients():
    # the first unit switches at 0 and adds nothing; the others make 3 maps on 4 regions
    first, last = nn.Linear(1, 3).double(), nn.Linear(3, 1).double()
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[1.0], [1.0], [1.0]]))
        first.bias.copy_(torch.tensor([0.0, -1.0, 1.0]))
        last.weight.copy_(torch.tensor([[0.0, 2.0, 3.0]]))
    f = nn.Sequential(first, nn.ReLU(), last).eval()
    x = torch.tensor([[-3.0], [-2], [-0.5], [0.5], [2], [3]], dtype=torch.float64)
    result = region_sharing(f, x)
    assert result.regions.tolist() == [0, 0, 1, 2, 3, 3]
    assert result.maps.tolist() == [0, 0, 1, 1, 2, 2]
    assert result.distinct == (4, 3)
    assert "6 points in 4 regions with 3 maps" in result.summary().basis


def test_maps_agree_with_all_coefficients_side_by_side():
    torch.manual_seed(0)
    f = nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                      nn.Linear(2, 2)).double().eval()  # fmt: skip
    x = points(60, 1, 3, 3)
    result, maps = region_sharing(f, x), local_maps(f, x)
    rows = torch.cat([maps.jacobians.flatten(1), maps.intercepts], 1)
    same = (rows[:, None] - rows).abs().amax(2) < 1e-9
    assert torch.equal(result.maps[:, None] == result.maps, same)
    assert result.distinct[0] > result.distinct[1] > 1


def test_linear_network_has_one_region_and_a_repeated_point_shares_its_own():
    linear = region_sharing(nn.Linear(3, 2).double().eval(), points(9, 3))
    assert linear.summary().value == 1
    assert linear.distinct == (1, 1)
    x = points(5, 40) * 100
    alone, twice = (region_sharing(dense(40, 300, 1), z) for z in (x, torch.cat([x, x[:1]])))
    assert alone.summary().value == 0
    assert_close(torch.tensor(twice.summary().value), torch.tensor(2 / 6))


@pytest.mark.parametrize("far", [0.0, 1e8, 1e17])
def test_maps_are_counted_rightly_however_far_the_points_are(far):
    # beyond 1e5 intercepts are the difference of numbers that are far larger
    first, last = nn.Linear(1, 2).double(), nn.Linear(2, 1).double()
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        first.bias.copy_(torch.tensor([0.3, 0.7]))
        last.weight.copy_(torch.tensor([[1.1, -0.3]]))
        last.bias.fill_(0.123)
    f = nn.Sequential(first, nn.ReLU(), last).eval()
    x = points(9, 1).abs() + far + 1
    for z, maps in ((x, 1), (-x, 1), (torch.cat([x, -x]), 2)):
        assert region_sharing(f, z).distinct == (maps, maps)
    near = torch.tensor([[0.1], [0.2]], dtype=torch.float64)  # a third map, where both are on
    assert region_sharing(f, torch.cat([near, x, -x])).maps.tolist() == [0, 0, *[1] * 9, *[2] * 9]


def test_regions_that_share_a_map_far_away_share_it():
    # units at -1, 0 and 1 that add nothing: four regions, of which the outer have far points alone
    first, last = nn.Linear(1, 3).double(), nn.Linear(3, 2).double()
    with torch.no_grad():
        first.weight.fill_(1.0)
        first.bias.copy_(torch.tensor([-1.0, 0.0, 1.0]))
        last.weight.fill_(0.0)
    f = nn.Sequential(first, nn.ReLU(), last).eval()
    skip = Beside(f, nn.Linear(1, 2).double()).eval()
    x = torch.tensor([[-0.5], [0.5], [-3e9], [-5e9], [7e9]], dtype=torch.float64)
    result = region_sharing(skip, x)
    assert result.regions.tolist() == [0, 1, 2, 2, 3]
    assert result.maps.tolist() == [0] * 5


def test_fraction_is_of_the_points_that_were_drawn():
    result = region_sharing(dense(2, 5, 1), points(90, 2), points=20)
    assert len(result.regions) == 20
    assert result.drawn_from == 90
    assert result.regions[0] == 0
    assert result.units == 5


def test_other_networks_have_no_regions_and_say_so():
    result = region_sharing(dense(2, 5, 1, act=nn.Tanh), points(9, 2))
    assert result.status.startswith("not applicable: the network must be made of affine operations")


def test_steps_of_one_point_count_all_regions_few_times_and_end_with_all(monkeypatch):
    f, x = dense(2, 8, 1), points(300, 2)
    counts = []

    def counted(fingerprints, regions):
        counts.append(len(regions))
        return distinct_maps(fingerprints, regions)

    monkeypatch.setattr(SOURCE, "distinct_maps", counted)
    with batches(1):
        results = list(region_sharing.refine(f, x))
    assert len(results) > 290  # there is a step for each point, after which a look may go on
    assert counts[-1] == 300
    assert len(counts) < 60
    assert_close(results[-1].regions, region_sharing(f, x).regions)
