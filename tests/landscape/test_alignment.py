import copy
from itertools import permutations

import pytest
import torch
from torch import nn

from cases import dense, points
from inscape._core import UnsupportedModelError
from inscape.landscape import aligned


def product(one, two):
    return sum(float((one[name] * two[name]).sum()) for name in one)


def test_one_hidden_layer_is_aligned_as_well_as_can_be():
    for seed in range(2):
        net, other = dense(2, 5, 1, seed=seed), dense(2, 5, 1, seed=seed + 50)
        start, stop = net.state_dict(), other.state_dict()
        state, found = aligned(net, start, stop)
        best = -1e9
        for order in map(list, permutations(range(5))):
            moved = {
                "0.weight": stop["0.weight"][order],
                "0.bias": stop["0.bias"][order],
                "2.weight": stop["2.weight"][:, order],
                "2.bias": stop["2.bias"],
            }
            best = max(best, product(start, moved))
        assert product(start, state) == pytest.approx(best)
        assert found.before <= found.similarity


def test_the_function_stays_the_same_and_the_orders_say_how():
    net, other, x = dense(2, 6, 7, 2), dense(2, 6, 7, 2, seed=1), points(9, 2)
    state, found = aligned(net, net.state_dict(), other.state_dict())
    moved = copy.deepcopy(other)
    moved.load_state_dict(state)
    torch.testing.assert_close(moved(x), other(x))
    assert [sorted(order.tolist()) for order in found.orders] == [list(range(6)), list(range(7))]
    assert torch.equal(state["0.weight"], other[0].weight[found.orders[0]])
    assert found.summary().value == found.similarity > found.before
    assert [row["units"] for row in found.rows()] == [6, 7]


def test_batch_norm_goes_with_its_units_and_nested_chains_are_followed():
    def make():
        inner = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout())
        return nn.Sequential(nn.Flatten(), inner, nn.Linear(8, 2, bias=False)).double().eval()

    net, x = make(), points(5, 3)
    with torch.no_grad():
        for name, value in net.state_dict().items():
            if value.is_floating_point():
                value.copy_(points(value.numel(), 1, seed=len(name)).reshape(value.shape).abs())
    other = copy.deepcopy(net)
    order = torch.tensor([3, 1, 4, 0, 5, 2, 7, 6])
    state = {
        k: v[order] if k.startswith("1.") and v.ndim else v for k, v in net.state_dict().items()
    }
    state["2.weight"] = net.state_dict()["2.weight"][:, order]
    other.load_state_dict(state)
    torch.testing.assert_close(other(x), net(x))
    back, found = aligned(net, net.state_dict(), other.state_dict())
    assert all(torch.equal(back[k], v) for k, v in net.state_dict().items())
    assert torch.equal(order[found.orders[0]], torch.arange(8))


def test_other_architectures_are_refused():
    conv = nn.Sequential(nn.Conv1d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(2, 1))
    with pytest.raises(UnsupportedModelError, match="found Conv1d at '0': use align=False"):
        aligned(conv, conv.state_dict(), conv.state_dict())
    with pytest.raises(UnsupportedModelError, match="needs a hidden layer, found 1 linear layers"):
        aligned(nn.Linear(2, 1), {}, {})


class Own(nn.Module):
    """Linear layers in the style of a user, and what may come between them."""

    def __init__(self, seed, between=torch.tanh, residual=False, norm=None):
        super().__init__()
        first, _, middle, _, last = dense(2, 6, 6, 1, seed=seed)
        self.last, self.norm, self.middle, self.first = last, norm, middle, first
        self.between, self.residual = between, residual
        self.double().eval()

    def forward(self, x):
        hidden = self.between(self.first(x))
        middle = self.between(self.middle(hidden))
        middle = self.norm(middle) if self.norm is not None else middle
        return self.last(middle + hidden if self.residual else middle)


def test_a_module_of_ones_own_is_aligned_as_the_chain_that_it_is():
    one, two, x = Own(0), Own(1), points(8, 2)
    chains = [nn.Sequential(n.first, nn.Tanh(), n.middle, nn.Tanh(), n.last) for n in (one, two)]
    _, expected = aligned(chains[0], *(chain.state_dict() for chain in chains))
    state, found = aligned(one, one.state_dict(), two.state_dict(), x=x)
    assert all(map(torch.equal, found.orders, expected.orders))
    before = two(x)
    two.load_state_dict(state)
    torch.testing.assert_close(two(x), before)
    normed = [Own(seed, norm=nn.BatchNorm1d(6)) for seed in range(2)]
    normed[1].norm.running_mean.copy_(torch.arange(6))
    state, _ = aligned(normed[0], *(net.state_dict() for net in normed), x=x)
    before = normed[1](x)
    normed[1].load_state_dict(state)
    torch.testing.assert_close(normed[1](x), before)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"residual": True}, "found that hidden units may not change places: use align=False"),
        ({"between": lambda z: z.cumsum(1)}, "found that hidden units may not change places"),
        (
            {"between": lambda z: nn.functional.group_norm(z, 3).tanh()},
            "found that hidden units may not change places",
        ),
        ({"norm": nn.LayerNorm(6)}, "found LayerNorm at 'norm': use align=False"),
    ],
    ids=["residual", "sums", "groups", "norm"],
)
def test_modules_whose_units_have_a_place_are_refused(settings, says):
    one, two = (Own(seed, **settings) for seed in range(2))
    with pytest.raises(UnsupportedModelError, match=says):
        aligned(one, one.state_dict(), two.state_dict(), x=points(8, 2))
