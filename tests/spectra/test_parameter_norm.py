"""Parameter and path norms: by enumeration of paths, and by what rescaling leaves as it is."""

import copy
import itertools
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import NotApplicable
from inscape.models import conv_net, densenet40, resnet9, resnet18, resnet20_fixup
from inscape.spectra import parameter_norm
from inscape.training import fit


def paths(net, order):
    """Return the path norm of a dense chain, path by path."""
    layers = [m for m in net if isinstance(m, nn.Linear)]
    widths = [layers[0].in_features, *(layer.out_features for layer in layers)]
    total = 0.0
    for start in range(len(layers) + 1):  # at an input, or at a bias of layer start - 1
        for units in itertools.product(*map(range, widths[start:])):
            product = 1.0 if start == 0 else float(layers[start - 1].bias[units[0]].detach())
            for layer, (a, b) in zip(layers[start:], itertools.pairwise(units), strict=True):
                product *= float(layer.weight[b, a].detach())
            total += abs(product) ** order
    return total ** (1 / order)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("widths", [(2, 3), (2, 3, 2), (2, 3, 2, 1)])
def test_path_norm_is_the_sum_over_all_paths(widths, order):
    net = dense(*widths)
    result = parameter_norm(net, points(2, widths[0]), order=order)
    assert float(result.path_norms[0]) == pytest.approx(paths(net, order))


def test_norms_are_those_of_the_tensors_of_each_layer():
    net = dense(3, 4, 2)
    result = parameter_norm(net, points(2, 3))
    assert result.layers == ("0", "2")
    expected = [
        torch.cat([m.weight.detach().flatten(), m.bias.detach()]).norm() for m in (net[0], net[2])
    ]
    assert_close(result.norms[0], torch.stack(expected))
    flat = nn.utils.parameters_to_vector(net.parameters()).detach()
    assert result.summary().value == pytest.approx(float(flat.norm()))


def convolutional():
    net = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(3, 2, 3, stride=2, padding=1), nn.LeakyReLU(0.2), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(2, 2),
    ).double().eval()  # fmt: skip
    net[1].running_var.copy_(torch.tensor([0.5, 2.0, 1.0]))
    net[1].running_mean += 0.3
    return net


@pytest.mark.parametrize("order", [1, 2])
def test_rescaling_units_changes_the_norm_and_not_the_path_norm(order):
    net, x = convolutional(), points(2, 1, 8, 8)
    before = parameter_norm(net, x, order=order)
    net[0].weight.data *= 4
    net[0].bias.data *= 4
    net[1].running_mean *= 4
    net[1].running_var *= 16
    net[1].eps *= 16
    net[1].weight.data *= 8
    net[1].bias.data *= 8
    net[4].weight.data /= 8
    net[4].bias.data *= 3
    net[4].weight.data *= 3
    net[8].weight.data /= 3
    after = parameter_norm(net, x, order=order)
    assert_close(after.path_norms, before.path_norms)
    assert after.summary().value > 2 * before.summary().value


def test_path_norm_bounds_the_function_on_the_unit_cube():
    net, x = convolutional(), points(50, 1, 8, 8).clamp(-1, 1)
    bound = float(parameter_norm(net, x, order=1).path_norms[0])
    assert float(net(x).detach().abs().sum(1).max()) <= bound


def test_pools_means_and_sums_of_branches_count_their_paths():
    ones = points(1, 1, 4, 4)
    mean = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(1, 1, 1)).double().eval()
    nn.init.ones_(mean[1].weight)
    nn.init.zeros_(mean[1].bias)
    # 16 paths, each with a quarter
    assert float(parameter_norm(mean, ones, order=1).path_norms[0]) == pytest.approx(4.0)
    assert float(parameter_norm(mean, ones, order=2).path_norms[0]) == pytest.approx(1.0)

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = nn.Parameter(torch.tensor([-3.0]).double())

        def forward(self, x):
            return (x + torch.relu(x) * self.gain).flatten(1).mean(1, keepdim=True) / 2

    # at each of 16 places a path of 1 / 32 and one of 3 / 32
    net = Twice().eval()
    assert float(parameter_norm(net, ones, order=1).path_norms[0]) == pytest.approx(2.0)
    squares = 16 * (1 + 9) / 32**2
    assert float(parameter_norm(net, ones, order=2).path_norms[0]) == pytest.approx(squares**0.5)


def test_networks_of_the_papers_have_path_norms():
    x = points(1, 3, 32, 32).float()
    for net in (conv_net(width=2), densenet40(growth=1), resnet18(width=1), resnet9(width=1)):
        assert 0 < float(parameter_norm(net, x).path_norms[0]) < math.inf
    assert float(parameter_norm(resnet20_fixup(width=1), x).path_norms[0]) == 0.0  # its head is 0


def test_over_training_there_is_one_row_for_each_step():
    net, x = dense(2, 4, 1), points(8, 2)
    run = fit(net, x, x[:, :1], lr=0.05, epochs=4, record=1, progress=False)
    result = parameter_norm(net, x, trajectory=run.trajectory, steps=3)
    assert result.steps.tolist() == [0, 2, 4]
    body = copy.deepcopy(net)
    for k, step in enumerate((0, 2, 4)):
        body.load_state_dict(run.trajectory.at(step))
        flat = nn.utils.parameters_to_vector(body.parameters()).detach()
        assert float(result.totals[k]) == pytest.approx(float(flat.norm()))
        assert float(result.path_norms[k]) == pytest.approx(paths(body, 2))
    assert [row["step"] for row in result.rows()] == [0, 0, 2, 2, 4, 4]


def test_other_activations_have_no_path_norm_and_the_reason():
    result = parameter_norm(dense(2, 3, 1, act=nn.Tanh), points(2, 2))
    assert result.path_norms.tolist() == []
    assert result.reason == "'tanh' is neither linear nor positively homogeneous"
    assert "path norm" not in result.summary().basis


class Hidden(nn.Module):
    """Uses its weight in a way that no operation on tensors shows."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([-3.0]).double())

    def forward(self, x):
        return x * self.weight.item()


def test_weights_that_are_not_seen_give_no_number():
    result = parameter_norm(Hidden().eval(), points(2, 2))
    assert result.path_norms.tolist() == []
    assert result.reason


def test_what_does_not_apply_and_what_is_refused():
    bare = nn.Sequential(nn.Flatten()).eval()
    result = parameter_norm(bare, points(2, 3))
    assert isinstance(result, NotApplicable)
    assert "has no parameters" in result.status
    with pytest.raises(ValueError, match="order must be one of '1', '2', found '3'"):
        parameter_norm(dense(2, 1), points(2, 2), order=3)
