"""Gradients summed over many weights at once, against one after the other."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.kernels.path.module_network import ModuleNetwork
from inscape.kernels.path.weight_batch import supports_weight_batch


class Twice(nn.Module):
    """A map at several places, used again at one, without a bias."""

    def __init__(self):
        super().__init__()
        self.first, self.map = nn.Linear(2, 3), nn.Linear(3, 3, bias=False)

    def forward(self, x):
        y = self.map(self.first(x.view(len(x), 4, 2)).tanh())
        return self.map(y.mean(1)).relu()


IMAGES = nn.Sequential(
    nn.Conv2d(1, 3, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)), nn.ReLU(),
    nn.MaxPool2d(2), nn.Conv2d(3, 2, 2, bias=False), nn.Flatten(), nn.Linear(4, 3),
)  # fmt: skip
SIGNALS = nn.Sequential(nn.Conv1d(2, 3, 3, 2, 1), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2))
CASES = {"images": (IMAGES, (1, 8, 8)), "signals": (SIGNALS, (2, 8)), "twice": (Twice(), (8,))}


def case(model, shape):
    torch.manual_seed(0)
    names = [name for name, _ in model.named_parameters()]
    network = ModuleNetwork(model, names)
    start, step = 0.3 * torch.randn(2, network.parameters, dtype=torch.float64)
    return network, start, step, torch.randn(2, *shape, dtype=torch.float64)


@pytest.mark.parametrize("name", CASES)
def test_sums_over_places_are_those_of_gradients_one_by_one(name):
    network, start, step, x = case(*CASES[name])
    t, shares = torch.rand(2, 5, dtype=torch.float64)
    segment = network._segment
    assert supports_weight_batch(network._model, x[:1])
    assert network._supports_weight_batch(start, step, x)
    each = torch.cat(list(segment.gradients(start, step, x[:1].expand(5, *x.shape[1:]), t)))
    expected = (shares[:, None, None] * each).sum(0)
    assert_close(segment.total(start, step, x[0], t, shares), expected)


def test_places_go_through_the_module_in_several_batches_where_there_are_many(monkeypatch):
    network, start, step, x = case(*CASES["images"])
    t, shares = torch.rand(2, 5, dtype=torch.float64)
    whole = network._segment.total(start, step, x[0], t, shares)
    monkeypatch.setattr("inscape.kernels.path.weight_segment.VMAP_BYTES", 1)
    assert_close(network._segment.total(start, step, x[0], t, shares), whole)


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4)),
        nn.Sequential(nn.Unflatten(1, (4, 2)), nn.Conv1d(4, 4, 1, groups=2), nn.Flatten()),
    ],
)
def test_other_parameters_are_left_to_others(model):
    network, start, step, x = case(model, (8,))
    assert not network._supports_weight_batch(start, step, x)
