"""A budget that ends early leaves out cells; those that are found have their own maps."""

import pytest
import torch
from torch import nn

from inscape.regions import boundary, plane_regions

BOX = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)


class Rivals(nn.Module):
    """Largest (or smallest) of pairs of affine functions, after ReLU or not."""

    def __init__(self, kind, seed=0):
        super().__init__()
        rng = torch.Generator().manual_seed(seed)
        self.kind = kind
        self.first = nn.Parameter(torch.randn(2, 60, generator=rng, dtype=torch.float64))
        self.shift = nn.Parameter(torch.randn(60, generator=rng, dtype=torch.float64) / 5)
        self.last = nn.Parameter(torch.randn(30, 2, generator=rng, dtype=torch.float64))

    def forward(self, x):
        z = x @ self.first + self.shift
        if self.kind == "relu and pool":
            z = z.relu()
        if "pool" in self.kind:
            return nn.functional.max_pool1d(z[:, None], 2)[:, 0] @ self.last
        both = torch.maximum if self.kind == "maximum" else torch.minimum
        return both(z[:, :30], z[:, 30:]) @ self.last


@pytest.mark.parametrize("kind", ["maximum", "minimum", "pool", "relu and pool"])
@pytest.mark.parametrize("regions", [30, 100])
def test_cells_of_a_budget_have_their_own_maps(kind, regions):
    net = Rivals(kind).eval()
    result = plane_regions(net, BOX, domain=BOX, regions=regions)
    assert not result.complete
    assert result.cells <= regions
    at = result.centroids
    torch.testing.assert_close(result.values(torch.arange(result.cells), at), net(at).detach())


class Sum(nn.Module):
    """Adds outputs up."""

    def forward(self, x):
        return x.sum(1, keepdim=True)


def test_boundaries_of_a_budget_lie_where_they_should():
    net = nn.Sequential(Rivals("maximum"), Sum()).eval()
    level = float(net(plane_regions(net, BOX, domain=BOX, regions=60).centroids).detach().median())
    result = boundary(net, BOX, domain=BOX, regions=60, level=level)
    assert not result.complete
    assert len(result.points) > 2
    places = result.origin + result.points @ result.axes
    torch.testing.assert_close(net(places).detach(), torch.full((len(places), 1), level).double())
