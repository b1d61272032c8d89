"""Where units of any module switch along a step of its weights, by hand."""

import pytest
import torch
from torch import nn
from torch.nn.functional import max_pool1d
from torch.testing import assert_close

from inscape.kernels.path.module_network import ModuleNetwork
from inscape.kernels.path.quadrature import StepQuadrature
from inscape.kernels.path.weight_segment import breakpoints

QUERY = torch.ones(1, 1, dtype=torch.float64)


class Window(nn.Module):
    """The largest of some weights, each times the input."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size, dtype=torch.float64))

    def forward(self, x):
        return max_pool1d((x * self.weight)[:, None], len(self.weight))[:, 0]


class Bump(nn.Module):
    """A unit whose pre-activation is quadratic along a step, beside some that are linear."""

    def __init__(self, linear):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2 + linear, dtype=torch.float64))

    def forward(self, x):
        first, second, *_ = self.weight
        bump = torch.relu(first * second * x - 0.00249)
        return bump + torch.relu(self.weight[2:] * x).sum(1, keepdim=True)


def breakpoints_of(model, start, step):
    network = ModuleNetwork(model.eval(), ["weight"])
    return breakpoints(network._segment, start, step, QUERY[0])


@pytest.mark.parametrize(
    ("start", "end", "kinks"),
    [
        ([1.0, 0.0], [0.0, 1.0], [0.5]),
        ([1.0, 0.6, 0.0], [0.0, 0.6, 1.0], [0.4, 0.6]),
        ([1.0, 0.51, 0.0], [0.0, 0.51, 1.0], [0.49, 0.51]),
        ([1.0, 0.8, 0.45, 0.0], [0.0, 0.3, 0.75, 1.0], [0.4, 0.4375, 0.6428571428571429]),
    ],
)
def test_a_window_that_makes_other_choices_on_its_path(start, end, kinks):
    first, last = (torch.tensor(own, dtype=torch.float64) for own in (start, end))
    assert_close(breakpoints_of(Window(len(start)), first, last - first), kinks)


@pytest.mark.parametrize("linear", [0, 3, 41])
def test_a_unit_that_switches_twice_unseen_is_cut_where_the_change_is_missed(linear):
    model = Bump(linear).eval()
    shifts = torch.linspace(0.05, 0.95, linear, dtype=torch.float64)
    start = torch.cat([torch.tensor([0.3, -0.2], dtype=torch.float64), -shifts])
    step = torch.cat([torch.tensor([-0.5, 0.5], dtype=torch.float64), torch.ones_like(shifts)])
    network = ModuleNetwork(model, ["weight"])
    assert len(breakpoints_of(model, start, step)) == linear  # the bump is not seen
    values = [network.values(weights, QUERY) for weights in (start, start + step)]
    change = values[1] - values[0]
    average = StepQuadrature(network, QUERY, exact=True, tolerance=4e-15).average(
        start, start + step, change, 1.0
    )
    assert float((average.directional_derivatives() - change).abs().max()) < 1e-12
