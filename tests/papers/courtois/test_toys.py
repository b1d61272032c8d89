"""The tasks of section 5: points, boundaries, neighbours and planes."""

import pytest
import torch
from torch import nn

from inscape.kernels import separability
from inscape.lab import Record
from inscape.papers.courtois import _ball, _plane, _toys
from inscape.papers.courtois import half_plane as figure_5
from inscape.papers.courtois._toys import BASE, CHOICES
from inscape.papers.courtois.ball_and_sphere import FIGURE_1


class Radius(nn.Module):
    """Turns positive at a radius that grows with the angle's cosine."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = x.norm(dim=1, keepdim=True)
        return size - 0.7 - 0.1 * x[:, :1] / size.clamp(min=1e-12)


@pytest.mark.parametrize("choice", CHOICES["ball"])
def test_points_of_the_ball(choice: str):
    for x, y in _toys.points("ball", choice, 64, seed=3):
        assert len(x) == len(y) == 64
        outer = y[:, 0] > 0
        assert int(outer.sum()) == (16 if choice == "few on the sphere" else 32)
        torch.testing.assert_close(x[outer].norm(dim=1), torch.ones(int(outer.sum())))
        assert float(x[~outer].norm(dim=1).max()) <= 0.5


@pytest.mark.parametrize("choice", CHOICES["plane"])
def test_points_of_the_half_plane(choice: str):
    for x, y in _toys.points("plane", choice, 64, seed=3):
        assert ((x.sum(1) >= 0) == (y[:, 0] > 0)).all()
        assert (x.abs().max() > 1) == (choice == "normal points")


def test_initial_laws_differ():
    first, other = (_toys.first_network(choice, 0) for choice in (BASE, "glorot"))
    assert first[0].bias.any()
    assert not other[0].bias.any()


def test_crossings_of_a_known_boundary():
    angles = torch.arange(64, dtype=torch.float64) * (2 * torch.pi / 64)
    expected = 0.7 + 0.1 * angles.cos()
    torch.testing.assert_close(_toys.crossings(Radius()), expected, atol=1e-6, rtol=0)


def test_rays_without_a_crossing_give_none():
    flat = nn.Linear(2, 1, dtype=torch.float64)
    with torch.no_grad():
        flat.weight.copy_(torch.tensor([[1.0, 0.0]]))
        flat.bias.fill_(-0.5)
    found = _toys.crossings(flat)  # x1 = 0.5, met within 1.5 where the cosine exceeds a third
    angles = torch.arange(64, dtype=torch.float64) * (2 * torch.pi / 64)
    torch.testing.assert_close(found, 0.5 / angles.cos()[angles.cos() > 1 / 3])
    with torch.no_grad():
        flat.bias.fill_(0.5)
    assert not len(_toys.crossings(flat))  # positive at the origin already


def test_stretch_of_a_known_cloud():
    turn = torch.linspace(0, 2 * torch.pi, 81, dtype=torch.float64)[:80]
    along, across = 0.5 * turn.cos(), 1.5 * turn.sin()
    x = torch.stack((along + across, along - across), 1) / 2**0.5
    rows = torch.arange(80)[None]
    torch.testing.assert_close(_plane.stretch(x, rows), torch.tensor([3.0], dtype=torch.float64))


def test_decisions_are_those_of_the_plane_that_is_measured():
    (x, y), (more, _) = _toys.points("ball", BASE, 64, seed=0)
    model = _toys.first_network(BASE, 0).double()
    x, more, classes = x.double(), more.double(), (y[:, 0] > 0).long()
    gram, cross = _ball.kernel(model, x), _ball.kernel(model, more, x)
    made = torch.from_numpy(_ball.decisions(gram, classes, cross, 1e3)).long()
    assert 0 < made.double().mean() < 1
    assert separability(gram, classes, test=(cross, made)).test_accuracy == 1.0


def test_a_cell_does_not_depend_on_its_company():
    cells = FIGURE_1.cells({**FIGURE_1.smoke, "seed": [0, 5]})
    both = dict(_ball.together(cells))
    ((_, alone),) = _ball.together(cells[1:])
    assert both[1] == alone
    assert "map" in both[0]
    assert "map" not in alone


def test_means_over_both_lambdas_of_one_size():
    values = {"v": [place**2 + place for place in figure_5.LAMBDAS]}
    one = Record(
        schema=1, experiment="x", scale="paper", key="0", settings={}, data="none", values=values,
        claims={}, provenance={},
    )  # fmt: skip
    assert figure_5.at(one, "v", 0.1) == pytest.approx(0.01)


def test_nearest_points_by_label():
    (x, y), _ = _toys.points("plane", BASE, 200, seed=0)
    model = nn.Sequential(nn.Linear(2, 1, dtype=torch.float64)).eval()
    found = _plane._neighbours(model, x.double(), y.double(), 5, shown=False)
    assert found["same label by distance"][0] == found["same label by distance"][-1] == 1.0
