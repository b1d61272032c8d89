"""Differences of maxima against the network, the paper's XOR network and other ways to prune."""

import sys

import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core.result import NotApplicable
from inscape.errors import BudgetError
from inscape.regions._maxima import SAME, Maximum, by_programmes, most_terms, pruned
from inscape.regions.tropical import tropical


def xor():
    """Return the network of Sattelberg's Eq. (5.11) with b = (2, 0), as corrected in S9."""
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)).double().eval()
    with torch.no_grad():
        net[0].weight.fill_(1.0)
        net[0].bias.copy_(torch.tensor([2.0, 0.0]))
        net[2].weight.copy_(torch.tensor([[1.0, -2.0]]))
        net[2].bias.fill_(-1.0)
    return net


def prelu(slope):
    return lambda: nn.PReLU(init=slope)


def test_xor_network_s9_s10():
    result = tropical(xor(), points(1, 2))
    assert result.expression() == "max{-1, x1 + x2 + 1} - max{0, 2 x1 + 2 x2}"
    assert result.tropical_expression() == "(-1 ⊕ 1 ⊗ x1 ⊗ x2) ⊘ (0 ⊕ x1^2 ⊗ x2^2)"
    s = torch.tensor([-3.0, -2.0, -1.0, 0.0, 1.0]).double()
    x = torch.stack([s, torch.zeros(5).double()], 1)
    assert result(x).flatten().tolist() == [-1.0, -1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("widths", "act"),
    [
        ((3, 8, 1), nn.ReLU),
        ((2, 6, 6, 3), nn.ReLU),
        ((2, 4, 3, 3, 1), nn.ReLU),
        ((1, 6, 6, 1), nn.ReLU),
        ((2, 5, 4, 2), nn.LeakyReLU),
        ((2, 4, 3, 1), prelu(-0.5)),
        ((2, 4, 3, 1), prelu(1.75)),
        ((2, 4, 3, 1), prelu(1.0)),
        ((1, 5, 5, 1), prelu(-1.0)),
        ((7, 8, 1), nn.ReLU),
    ],
)
def test_difference_of_the_maxima_is_the_network(widths, act):
    net = dense(*widths, act=act)
    if act not in (nn.ReLU, nn.LeakyReLU):  # dense draws the slopes anew
        with torch.no_grad():
            for part in net:
                if isinstance(part, nn.PReLU):
                    part.weight.fill_(act().weight.item())
    result = tropical(net, points(1, widths[0]))
    for scale in (0.1, 1.0, 30.0):
        x = scale * points(2000, widths[0], seed=7)
        assert_close(result.values(x), net(x).detach(), rtol=1e-9, atol=1e-9 * scale)
        assert_close(result(x), result.values(x))


def test_abs_units_and_networks_without_kinks():
    class Tent(nn.Module):
        def forward(self, x):
            return (1 - x.abs().sum(1, keepdim=True)).abs()

    result = tropical(Tent().eval(), points(1, 2))
    x = 2 * points(500, 2)
    assert_close(result(x), Tent()(x))
    net = nn.Linear(2, 2).double().eval()
    affine = tropical(net, points(1, 2))
    assert_close(affine(x), net(x).detach())
    assert affine.summary().value == 4


def test_every_term_is_somewhere_the_largest_alone():
    result = tropical(dense(2, 6, 6, 1), points(1, 2))
    for slopes, constants in result.terms(0):
        far = np.vstack([np.column_stack([slopes, constants]), [0, 0, -1e4]])
        hull = ConvexHull(far)
        upper = np.unique(hull.simplices[hull.equations[:, -2] > 1e-9])
        assert set(range(len(slopes))) <= set(upper.tolist())


def test_terms_are_no_more_than_the_cells_of_the_layers():
    net = dense(2, 6, 1)
    result = tropical(net, points(1, 2))
    signs = (net[2].weight > 0).sum().item()
    (plus, _), (minus, _) = result.terms(0)
    assert len(plus) == most_terms([2] * signs, 2)
    assert len(minus) == most_terms([2] * (6 - signs), 2)


def test_permuted_and_rescaled_units_give_the_same_terms():
    net, other = dense(2, 6, 5, 1), dense(2, 6, 5, 1)
    order, scale = torch.tensor([3, 1, 5, 0, 2, 4]), torch.linspace(0.5, 4, 6).double()
    with torch.no_grad():
        other[0].weight.copy_((net[0].weight * scale[:, None])[order])
        other[0].bias.copy_((net[0].bias * scale)[order])
        other[2].weight.copy_((net[2].weight / scale)[:, order])
    first, second = tropical(net, points(1, 2)), tropical(other, points(1, 2))
    assert_close(first.plus_slopes, second.plus_slopes)
    assert_close(first.minus_constants, second.minus_constants)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_slopes_that_are_nearly_equal_stay_apart(d):
    net = nn.Sequential(nn.Linear(d, d + 1), nn.ReLU(), nn.Linear(d + 1, 1)).double().eval()
    with torch.no_grad():
        net[0].weight.copy_(torch.cat([1e-10 * torch.eye(d)[:1], torch.eye(d)]))
        net[0].bias.copy_(5 * torch.eye(d + 1)[0])
        net[2].weight.fill_(1.0)
        net[2].bias.fill_(0.0)
    for x in (torch.zeros(1, d).double(), points(30, d), 1e6 * points(30, d)):
        assert_close(tropical(net, x)(x), net(x).detach())
    if d == 1:
        assert tropical(net, points(1, 1)).expression() == ("max{0, 1e-10 x1 + 5, x1 + 5} - max{0}")


def test_terms_joined_by_rounding_leave_the_largest_constant():
    near = 0.6 * SAME
    slopes = np.array([[0.0], [near], [2 * near], [1.0]])
    for constants in ([1.0, 9.0, 3.0, 0.0], [9.0, 1.0, 3.0, 0.0], [1.0, 3.0, 9.0, 0.0]):
        assert pruned(Maximum(slopes, np.array(constants))).constants.tolist() == [9.0, 0.0]


def test_close_terms_of_an_envelope_are_kept_where_they_count():
    slopes = np.array([[0.0], [3e-10], [6e-10], [1.0]])
    kept = pruned(Maximum(slopes, np.array([1.0, 1.001, 1.0, 0.0])))
    assert kept(np.array([[0.0]])).tolist() == [1.001]


def test_images_and_several_outputs():
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).double().eval()
    x = points(50, 1, 2, 2)
    result = tropical(net, x)
    assert_close(result(x), net(x).detach())
    assert {row["output"] for row in result.rows()} == {0, 1}
    assert {"part", "constant", "x4"} <= next(iter(result.rows())).keys()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_hull_and_programmes_keep_the_same_terms(d):
    draw = np.random.default_rng(d)
    slopes = draw.standard_normal((60, d))
    constants = -0.5 * (slopes**2).sum(1) + 0.6 * draw.standard_normal(60)
    kept = pruned(Maximum(slopes, constants))
    programmes = by_programmes(slopes, constants)
    assert 2 < len(kept) < 60
    assert sorted(kept.constants.tolist()) == sorted(constants[programmes].tolist())
    x = 3 * draw.standard_normal((500, d))
    np.testing.assert_allclose(kept(x), Maximum(slopes, constants)(x), atol=1e-12)


def test_many_dimensions_are_pruned_by_programmes():
    draw = np.random.default_rng(0)
    corners = np.vstack([np.eye(7), -np.eye(7)])
    inner = 0.3 * draw.dirichlet(np.ones(14), 10) @ corners
    kept = pruned(Maximum(np.vstack([corners, inner]), np.zeros(24)))
    assert len(kept) == 14


def test_doubles_and_parallel_terms_leave_the_largest():
    slopes = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0], [0.5, 1.0]])
    kept = pruned(Maximum(slopes, np.array([0.0, 3.0, 1.0, 2.0])))  # the last lies on the line
    assert kept.constants.tolist() == [1.0, 3.0]
    assert len(pruned(Maximum(np.zeros((3, 2)), np.array([1.0, 5.0, 2.0])))) == 1


def test_bound_on_the_terms_of_sums():
    assert most_terms([2, 2, 2], 2) == 7
    assert most_terms([3, 4], 1) == 1 + 2 + 3
    assert most_terms([3, 4], 5) == 12
    assert most_terms([], 3) == 1


def test_refuses_before_building(monkeypatch):
    monkeypatch.setattr(sys.modules["inscape.regions.tropical"], "_built", None)
    text = r"at most 5000 terms in a maximum, but an output may need 10\^\d.*take a smaller network"
    with pytest.raises(BudgetError, match=text):
        tropical(dense(3, 30, 30, 1), points(1, 3))
    with pytest.raises(BudgetError, match="but a unit of layer 2 may need"):
        tropical(dense(3, 8, 4, 1), points(1, 3), terms=2)


def test_errors_say_what_to_do():
    result = tropical(xor(), points(1, 2))
    with pytest.raises(ValueError, match="output must be one of 1, found 1: choose 0 to 0"):
        result.expression(1)
    with pytest.raises(ValueError, match="terms must be at least 1, found 0"):
        tropical(xor(), points(1, 2), terms=0)


def test_graphs_that_are_no_chain_are_said():
    pool = nn.Sequential(nn.MaxPool1d(2), nn.Flatten()).eval()
    result = tropical(pool, points(2, 1, 4))
    assert isinstance(result, NotApplicable)
    assert "a chain of affine maps" in result.reason
    assert isinstance(tropical(dense(2, 3, 1, act=nn.Tanh), points(2, 2)), NotApplicable)


def test_text_leaves_out_nothing_and_shows_signs():
    net = nn.Sequential(nn.Linear(2, 1), nn.ReLU()).double().eval()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[-1.5, 1.0]]))
        net[0].bias.fill_(-0.25)
    result = tropical(net, points(1, 2))
    assert result.expression() == "max{-1.5 x1 + x2 - 0.25, 0} - max{0}"
    assert result.tropical_expression() == "(-0.25 ⊗ x1^-1.5 ⊗ x2 ⊕ 0) ⊘ (0)"
