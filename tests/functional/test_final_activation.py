import pytest
import torch
from torch import nn

from cases import dense, points
from inscape.functional.final_activation import ends_in_probability, lie_between_0_and_1

X = points(4, 3)


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (nn.Sigmoid(), True),
        (nn.Softmax(dim=1), True),
        (nn.Hardsigmoid(), True),
        (nn.Sequential(nn.Sigmoid(), nn.Flatten(0)), True),
        (nn.Sequential(nn.Sigmoid(), nn.Unflatten(1, (2, 1)), nn.Flatten()), True),
        (nn.Identity(), False),
        (nn.Tanh(), False),
        (nn.Sequential(nn.Sigmoid(), nn.Linear(2, 2).double()), False),
        (nn.LogSoftmax(dim=1), False),
    ],
)
def test_the_last_step_is_seen(ending, expected):
    with torch.no_grad():
        assert ends_in_probability(nn.Sequential(dense(3, 5, 2), ending).eval(), X) is expected


def test_views_and_columns_of_probabilities_are_probabilities():
    net = dense(3, 5, 2)
    assert ends_in_probability(lambda x: net(x).softmax(1)[:, 1:], X)
    assert ends_in_probability(lambda x: net(x).sigmoid()[:, 0].unsqueeze(1).clone(), X)
    assert not ends_in_probability(lambda x: 1 - net(x).sigmoid(), X)  # it may be anything
    assert not ends_in_probability(lambda x: torch.ones(len(x), 1), X)
    assert not ends_in_probability(lambda x: x, X)


def test_weights_without_gradients_tell_nothing():
    with torch.inference_mode():
        net = nn.Sequential(nn.Linear(3, 1).double(), nn.Sigmoid())
    assert not ends_in_probability(net, X)


def test_outputs_that_look_like_probabilities():
    y = torch.tensor([0, 1, 1])
    assert lie_between_0_and_1(torch.tensor([0.0, 0.3, 1.0]), y)
    assert not lie_between_0_and_1(torch.tensor([0.0, 0.3, 1.1]), y)
    assert not lie_between_0_and_1(torch.tensor([-0.1, 0.3, 1.0]), y)
    assert not lie_between_0_and_1(torch.tensor([0.1, 0.3, 1.0]), torch.ones(3))
