import pytest
import torch
from torch import nn

from cases import dense, points
from inscape.piecewise.planes.frame import through
from inscape.similarity import slice_difference

SQUARE = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)


def fine_grid(k):
    """Return the middles of k x k small squares."""
    at = (torch.arange(k, dtype=torch.float64) + 0.5) * 2 / k - 1
    return torch.cartesian_prod(at, at)


@pytest.mark.parametrize("outputs", [1, 3])
def test_area_and_largest_difference_by_a_fine_grid(outputs):
    f, g = dense(2, 8, 6, outputs), dense(2, 7, outputs, seed=1)
    result = slice_difference(f, SQUARE, other=g, domain=SQUARE)
    grid = fine_grid(400)
    first, second = f(grid).detach(), g(grid).detach()
    classes = [(y[:, 0] > 0).long() if outputs == 1 else y.argmax(1) for y in (first, second)]
    differing = float((classes[0] != classes[1]).double().mean())
    assert result.area == pytest.approx(4 * differing, abs=0.01)
    largest = float((first - second).norm(dim=1).max())
    assert largest <= result.largest <= largest * 1.03
    at = result.farthest[None]
    assert float((f(at) - g(at)).detach().norm()) == pytest.approx(result.largest, rel=1e-9)
    assert float(result.areas.sum()) == pytest.approx(4)
    assert result.summary().kind == "exact"


def test_an_output_of_one_number_for_each_example_is_a_column_of_one():
    f, g = dense(2, 8, 1), dense(2, 7, 1, seed=1)
    flat = [nn.Sequential(*net, nn.Flatten(0)).eval() for net in (f, g)]
    expected = slice_difference(f, SQUARE, other=g, domain=SQUARE)
    result = slice_difference(flat[0], SQUARE, other=flat[1], domain=SQUARE)
    assert (result.area, result.largest) == (expected.area, expected.largest)
    assert 0 < result.area < 4


def test_is_symmetric_and_zero_for_equal_functions():
    f, g = dense(2, 8, 3), dense(2, 7, 3, seed=1)
    there = slice_difference(f, SQUARE, other=g, domain=SQUARE)
    back = slice_difference(g, SQUARE, other=f, domain=SQUARE)
    assert there.area == pytest.approx(back.area, rel=1e-12)
    assert there.largest == pytest.approx(back.largest, rel=1e-12)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(0))
    permuted = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3)).double().eval()
    with torch.no_grad():
        permuted[0].weight.copy_(f[0].weight[order])
        permuted[0].bias.copy_(f[0].bias[order])
        permuted[2].weight.copy_(f[2].weight[:, order])
        permuted[2].bias.copy_(f[2].bias)
    same = slice_difference(f, SQUARE, other=permuted, domain=SQUARE)
    assert same.area < 1e-9
    assert same.largest < 1e-12


def test_boundaries_lie_where_the_two_largest_outputs_are_equal():
    f, g = dense(2, 8, 3), dense(2, 8, 3, seed=2)
    result = slice_difference(f, 2 * SQUARE, other=g, domain=2 * SQUARE)
    for which, net in (("first", f), ("second", g)):
        edges = result.edges[result.boundary(which)].long()
        middles = result.vertices[edges].mean(1)
        top = net(middles).detach().topk(2).values
        assert len(edges)
        assert float((top[:, 0] - top[:, 1]).abs().max()) < 1e-9


def test_plane_in_a_larger_input_space():
    f, g, x = dense(5, 8, 2), dense(5, 6, 2, seed=1), points(3, 5)
    result = slice_difference(f, x, other=g, plane=through(x))
    frame = through(x)
    at = frame.at(result.centroids)
    assert f(at).argmax(1).tolist() == result.classes.tolist()
    assert g(at).argmax(1).tolist() == result.other_classes.tolist()


def test_budget_of_cells_gives_an_interval():
    f, g = dense(2, 12, 3), dense(2, 12, 3, seed=1)
    result = slice_difference(f, SQUARE, other=g, domain=SQUARE, regions=10)
    summary = result.summary()
    assert not result.exact
    assert summary.low <= summary.value <= summary.high
    assert "of the window" in summary.basis


def test_smooth_networks_and_missing_ones_do_not_apply():
    f = dense(2, 5, 2, act=nn.Tanh)
    assert "not applicable" in slice_difference(f, SQUARE, other=f).status
    assert "pass other=" in slice_difference(f, SQUARE).status
