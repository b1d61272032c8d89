import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import CASES, dense, points
from inscape.landscape import stationarity
from oracles.curvature import loss_of


@pytest.mark.parametrize("case", ["two-layer, three outputs", "deep relu", "tanh"])
def test_norms_are_those_of_autograd_layer_by_layer(case):
    model, x, y = CASES[case]()
    result = stationarity(model, x, y)
    loss, flat = loss_of(model, x, y, "mse")
    (gradient,) = torch.autograd.grad(loss(flat.requires_grad_()), flat)
    assert result.total == pytest.approx(float(gradient.norm()))
    parts = gradient.split([p.numel() for p in model.parameters()])
    assert_close(result.norms, torch.stack([part.norm() for part in parts]))
    assert result.names == tuple(name for name, _ in model.named_parameters())
    assert result.value == pytest.approx(float(loss(flat.detach())))


def test_gradient_of_a_homogeneous_network_obeys_euler():
    model, x = dense(3, 5, 1), points(9, 3)
    with torch.no_grad():
        model[0].bias.zero_()
        model[2].bias.zero_()
    y = torch.zeros(9, 1, dtype=torch.float64)
    tensors = [model[0].weight, model[2].weight]
    loss = model(x).square().mean()
    radial = sum(
        (p * g).sum() for p, g in zip(tensors, torch.autograd.grad(loss, tensors), strict=True)
    )
    assert_close(radial, 4 * loss)  # degree 2 in two layers, squared
    least = abs(float(radial.detach())) / float(
        torch.cat([p.detach().flatten() for p in tensors]).norm()
    )
    assert stationarity(model, x, y).total >= least


def test_regulariser_adds_the_decayed_parameters():
    model, x, y = CASES["tanh"]()
    bare, decayed = stationarity(model, x, y), stationarity(model, x, y, weight_decay=0.3)
    assert decayed.without_regulariser == pytest.approx(bare.total)
    assert decayed.total != pytest.approx(bare.total)
    flat = nn.utils.parameters_to_vector(model.parameters()).detach()
    assert decayed.value == pytest.approx(bare.value + 0.15 * float(flat @ flat))


def test_movement_of_the_outputs_is_that_of_a_step():
    model, x, y = CASES["tanh"]()
    result = stationarity(model, x, y, lr=0.05)
    before = model(x).detach()
    nn.functional.mse_loss(model(x), y).backward()
    torch.optim.SGD(model.parameters(), lr=0.05).step()
    moved = (model(x).detach() - before).square().sum(1).mean().sqrt()
    assert result.moved == pytest.approx(float(moved))


def test_least_squares_are_stationary():
    x, y = points(20, 3), points(20, 2, seed=3)
    model = nn.Linear(3, 2).double().eval()
    solution = torch.linalg.lstsq(torch.cat([x, torch.ones(20, 1).double()], 1), y).solution
    with torch.no_grad():
        model.weight.copy_(solution[:3].T)
        model.bias.copy_(solution[3])
    result = stationarity(model, x, y)
    assert result.total < 1e-14
    assert result.moved < 1e-14
