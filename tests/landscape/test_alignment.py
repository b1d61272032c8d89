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
        assert found.before <= found.likeness


def test_the_function_stays_the_same_and_the_orders_say_how():
    net, other, x = dense(2, 6, 7, 2), dense(2, 6, 7, 2, seed=1), points(9, 2)
    state, found = aligned(net, net.state_dict(), other.state_dict())
    moved = copy.deepcopy(other)
    moved.load_state_dict(state)
    torch.testing.assert_close(moved(x), other(x))
    assert [sorted(order.tolist()) for order in found.orders] == [list(range(6)), list(range(7))]
    assert torch.equal(state["0.weight"], other[0].weight[found.orders[0]])
    assert found.summary().value == found.likeness > found.before
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
