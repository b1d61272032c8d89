"""The order of inputs does not matter to a symmetric network."""

from itertools import permutations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.controls import symmetric
from inscape.training import fit


def test_a_swap_is_the_papers_formula():
    f, x = dense(2, 5, 1), points(7, 2)
    assert_close(symmetric(f)(x), (f(x) + f(x.flip(1))) / 2)


def test_two_generators_make_the_whole_group():
    f, x = dense(4, 5, 2), points(6, 4)
    g = symmetric(f, [(1, 0, 2, 3), (1, 2, 3, 0)])
    assert len(g.orders) == 24
    assert_close(
        g(x), torch.stack([f(x[:, list(order)]) for order in permutations(range(4))]).mean(0)
    )
    assert_close(g(x), g(x[:, [2, 0, 3, 1]]))


def test_images_are_taken_flat():
    f = nn.Sequential(nn.Flatten(), dense(4, 1)).eval()
    x = points(3, 1, 2, 2)
    mirrored = symmetric(f, [(1, 0, 3, 2)])
    assert_close(mirrored(x), (f(x) + f(x.flip(3))) / 2)


def test_training_goes_through_to_the_network():
    f, x = dense(2, 6, 1), points(20, 2)
    g = symmetric(f)
    run = fit(g, x, x.sum(1, keepdim=True), lr=0.05, epochs=30)
    assert run.losses[-1] < run.losses[0] / 2
    assert_close(g(x), g(x.flip(1)))
    assert not f.training


@pytest.mark.parametrize("orders", [[(0, 2)], [(0, 1), (0, 1, 2)], [(0, 0)], []])
def test_orders_must_be_orders(orders):
    with pytest.raises(ValueError, match="permutations must be orders of one number of inputs"):
        symmetric(dense(2, 1), orders)


def test_a_group_may_be_too_large():
    swap, turn = (1, 0, *range(2, 8)), (*range(1, 8), 0)
    with pytest.raises(ValueError, match="a group of at most 5040 orders, found more: use fewer"):
        symmetric(dense(8, 1), [swap, turn])


def test_points_must_have_as_many_inputs_as_the_orders():
    with pytest.raises(ValueError, match=r"numbers, 2, found 3 in shape \(4, 3\): pass permutat"):
        symmetric(dense(3, 1), [(1, 0)])(points(4, 3))
