"""The total variation of the whole gradient along lines and polylines."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import UnsupportedModelError, draw_pairs
from inscape.functional.jacobians import jacobians
from inscape.regions import line_regions
from inscape.smoothness import gradient_path_length

NET = dense(3, 9, 7, 2)


def half(*normal):
    """Return relu(normal x)."""
    net = dense(len(normal), 1, 1)
    for p, value in zip(net.parameters(), ([normal], [0.0], [[1.0]], [0.0]), strict=True):
        p.data = torch.tensor(value).double()
    return net


def by_sampling(a, b, knots=20_000):
    """Sum the jumps of the Jacobian between many places of a segment."""
    t = (torch.arange(knots, dtype=torch.float64)[:, None] + 0.5) / knots
    return jacobians(NET, torch.lerp(a, b, t)).diff(dim=0).flatten(1).norm(dim=1).sum()


def test_the_gradient_of_an_absolute_value_turns_by_two():
    walk = torch.tensor([[-1.0, 5.0], [1.0, 5.0]]).double()
    result = line_regions(lambda x: x[:, :1].abs() + 3 * x[:, 1:].abs(), walk, gradients=True)
    assert_close(result.gradient_variation, torch.tensor([2.0]).double())
    assert result.vertex_jumps.tolist() == []


def test_variation_across_the_line_counts():
    # the kink x = y is crossed along x: the slope jumps by 1, the gradient by sqrt 2
    walk = torch.tensor([[-1.0, 0.0], [1.0, 0.0]]).double()
    result = line_regions(half(1.0, -1.0), walk, gradients=True)
    assert_close(result.slope_variation, torch.tensor([1.0]).double())
    assert_close(result.gradient_variation, torch.tensor([2.0]).double().sqrt())


def test_a_polyline_against_sampling_with_its_vertices():
    walk = points(4, 3)
    result = line_regions(NET, walk, closed=True, gradients=True)
    sampled = [by_sampling(a, b) for a, b in zip(walk, walk.roll(-1, 0), strict=True)]
    assert_close(result.gradient_variation, torch.stack(sampled))
    assert result.vertex_jumps.tolist() == pytest.approx([0.0] * 4, abs=1e-12)
    assert result.total_gradient_variation() == pytest.approx(float(sum(sampled)))


def test_the_gradient_jumps_at_a_vertex_on_a_kink():
    f = half(1.0, 0.0)
    through, back = ([[-1.0, 0.0], [0.0, 0.0], end] for end in ([1.0, 1.0], [-1.0, 1.0]))
    for walk, jump in ((through, 1.0), (back, 0.0)):
        result = line_regions(f, torch.tensor(walk).double(), gradients=True)
        assert result.vertex_jumps.tolist() == [jump]
        assert result.total_gradient_variation() == jump
    ring = line_regions(f, torch.tensor(through[1:]).double(), closed=True, gradients=True)
    assert ring.vertex_jumps.tolist() == [0.0, 0.0]


def test_a_closed_polyline_jumps_at_its_first_vertex():
    walk = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [-1.0, 1.0]]).double()
    result = line_regions(half(1.0, 0.0), walk, closed=True, gradients=True)
    assert result.vertex_jumps.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert result.gradient_variation.tolist() == [0.0, 0.0, 1.0, 0.0]


def test_chords_have_their_gradient_path_length():
    x = points(30, 3)
    exact = gradient_path_length(NET, x, pairs=40, exact=True)
    a, b = draw_pairs(x, 40, seed=0)
    apart = (a != b).any(1)
    result = line_regions(NET, a[apart], to=b[apart], gradients=True)
    assert_close(result.gradient_variation, exact.lengths[apart])
    assert len(result.vertex_jumps) == 0


def test_memory_does_not_change_it():
    walk = points(5, 3)
    whole, parts = (line_regions(NET, walk, gradients=True, memory=m) for m in (2**20, 2000))
    assert_close(whole.gradient_variation, parts.gradient_variation)
    assert_close(whole.vertex_jumps, parts.vertex_jumps)


def test_it_must_be_asked_for():
    with pytest.raises(ValueError, match="call line_regions with gradients=True"):
        line_regions(NET, points(2, 3)).total_gradient_variation()


def test_gradients_of_other_values_are_refused():
    class Loose(nn.Module):
        def forward(self, x):
            return torch.relu(x.detach())

    with pytest.raises(UnsupportedModelError, match="or leave gradients out"):
        line_regions(Loose().eval(), points(2, 1), gradients=True)
