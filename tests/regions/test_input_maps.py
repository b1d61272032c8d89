"""Maps of the cells of a plane in the whole input space."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import BudgetError, UnsupportedModelError
from inscape.regions import local_maps, plane_regions


class Loose(nn.Module):
    """A network whose values do not have its gradients, or only those of a sum beside it."""

    def __init__(self, *, beside: bool) -> None:
        super().__init__()
        self.net, self.beside = dense(3, 4, 1), beside

    def forward(self, x):
        loose = self.net(x.detach())
        return loose + x.sum(1, keepdim=True) if self.beside else loose


@pytest.fixture(scope="module")
def images():
    """Return a network of images and its regions in the plane of three of them."""
    net, x = dense(784, 12, 8, 3), points(3, 784)
    return net, plane_regions(net, x)


def test_maps_of_images_are_those_at_the_centroids(images):
    net, result = images
    matrices, constants = result.input_maps(net)
    x = result.frame.at(result.centroids)
    local = local_maps(net, x, points=result.cells)
    assert result.cells > 50
    assert_close(matrices, local.jacobians)
    assert_close(constants, local.intercepts)


def test_maps_give_the_network_and_the_slopes_of_the_plane(images):
    net, result = images
    cells = torch.tensor([5, 0, 17])
    matrices, constants = result.input_maps(net, cells)
    x = result.frame.at(result.centroids[cells])
    assert_close((matrices @ x[:, :, None])[:, :, 0] + constants, net(x).detach())
    assert_close(matrices @ result.axes.T, result.slopes[cells])


def test_pooling_and_clamps_have_maps_in_input_space():
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.ReLU6(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2)
    )
    torch.manual_seed(0)
    net, x = net.double().eval(), points(3, 36).reshape(3, 1, 6, 6)
    result = plane_regions(net, x)
    matrices, constants = result.input_maps(net)
    at = result.frame.at(result.centroids)
    assert_close((matrices @ at.flatten(1)[:, :, None])[:, :, 0] + constants, net(at).detach())
    assert_close(matrices @ result.axes.flatten(1).T, result.slopes)


def test_another_network_is_refused(images):
    _, result = images
    with pytest.raises(
        ValueError, match=r"found one with \(5,\) units and 3 outputs for \(12, 8\)"
    ):
        result.input_maps(dense(784, 5, 3))
    with pytest.raises(ValueError, match="found other values: has it been trained since"):
        result.input_maps(dense(784, 12, 8, 3, seed=7))


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        (False, "must let gradients reach its input"),
        (True, "autograd must return the gradient of the model"),
    ],
)
def test_values_without_gradients_are_refused(beside, words):
    net = Loose(beside=beside).eval()
    with pytest.raises(UnsupportedModelError, match=words):
        plane_regions(net, points(3, 3)).input_maps(net)


def test_what_does_not_fit_is_refused(images):
    net, result = images
    with pytest.raises(BudgetError, match="the maps must take at most 1000 bytes, but those of"):
        result.input_maps(net, memory=1000)
    with pytest.raises(ValueError, match=r"cells must be numbers from 0 to \d+, found -1"):
        result.input_maps(net, torch.tensor([-1]))
