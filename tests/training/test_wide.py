"""The compiled loop for wide networks makes the steps of ``fit``, held layers included."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import points
from inscape.controls import length_scale, release, symmetric
from inscape.data import disc
from inscape.models import two_layer
from inscape.training import DivergedError, decay, fit, fit_wide
from inscape.training.shallow import wide_kernels


def pair(activation="relu", d=2, dtype=torch.float64):
    net = two_layer(d, 9, activation=activation, seed=3, dtype=dtype)
    return net, copy.deepcopy(net)


def rules(steps=40):
    return {"lr": 0.01, "schedule": decay(0.9, 7), "betas": (0.8, 0.99), "progress": False}


def same(one, two, **close):
    for p, q in zip(one.parameters(), two.parameters(), strict=True):
        assert_close(p, q, **close)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_steps_are_those_of_fit(activation, d):
    x = points(11, d)
    y = x.square().sum(1, keepdim=True)
    ours, theirs = pair(activation, d)
    found = fit_wide(ours, x, y, steps=40, **rules())
    expected = fit(theirs, x, y, optimizer="adam", epochs=40, **rules())
    same(ours, theirs)
    assert_close(found.losses, expected.losses)
    assert (found.steps, found.stopped, ours.training) == (40, "epochs", False)


def test_single_precision():
    data = disc(n=33)
    ours, theirs = pair("tanh", dtype=torch.float32)
    fit_wide(ours, data.x, data.y, steps=40, **rules())
    fit(theirs, data.x, data.y, optimizer="adam", epochs=40, **rules())
    same(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bias", ["free", "normalised"])
def test_held_layers(bias):
    data = disc(n=10, dtype=torch.float64)
    ours, theirs = pair("tanh")
    fit_wide(ours, data.x, data.y, steps=40, sigma=0.6, bias=bias, **rules())
    length_scale(theirs, 0.6, bias=bias)
    fit(theirs, data.x, data.y, optimizer="adam", epochs=40, **rules())
    same(ours, release(theirs))


def test_views_are_the_symmetric_network():
    data = disc(n=10, dtype=torch.float64)
    ours, theirs = pair("relu")
    fit_wide(ours, data.x, data.y, steps=40, views=((0, 1), (1, 0)), **rules())
    fit(symmetric(theirs), data.x, data.y, optimizer="adam", epochs=40, **rules())
    same(ours, theirs)


def test_fresh_points_at_every_step():
    ours, theirs = pair("relu")
    batches = [points(6, 2, seed=seed) for seed in range(5)]
    draw = lambda step: (batches[step], batches[step].prod(1, keepdim=True))  # noqa: E731
    fit_wide(ours, *draw(0), steps=5, lr=0.01, fresh=draw)
    optimizer = torch.optim.Adam(theirs.parameters(), 0.01)
    for step in range(5):
        x, y = draw(step)
        optimizer.zero_grad()
        nn.functional.mse_loss(theirs(x), y).backward()
        optimizer.step()
    same(ours, theirs)


def test_fraction_for_tanh():
    z = np.linspace(-12, 12, 100_001, dtype=np.float32)
    found = np.clip(z, -9, 9).astype(np.float64)
    u = found**2
    above = np.polyval([getattr(wide_kernels, f"P{k}") for k in range(6, -1, -1)], u)
    below = np.polyval([getattr(wide_kernels, f"Q{k}") for k in range(6, -1, -1)], u)
    assert np.abs(found * above / below - np.tanh(z.astype(float))).max() < 6e-8


def test_divergence_is_said():
    x = points(8, 2).float() * 1e18
    with pytest.raises(DivergedError, match=r"found loss (inf|nan) at step \d+ .*: use a smaller"):
        fit_wide(two_layer(2, 4, dtype=torch.float32), x, x[:, :1] * 1e3, steps=10, lr=1e6)


def test_bad_input():
    x = points(4, 2)
    net, y = two_layer(2, 4, dtype=torch.float64), x[:, :1]
    with pytest.raises(
        ValueError, match=r"fit_wide trains an nn.Sequential of Linear, ReLU or Tan"
    ):
        fit_wide(nn.Linear(2, 1).double(), x, y, steps=1)
    with pytest.raises(ValueError, match="plain weights, biases and one output"):
        fit_wide(length_scale(copy.deepcopy(net), 1.0), x, y, steps=1)
    with pytest.raises(
        ValueError, match=r"sigma must be a finite number above 0, found 0.0: it is"
    ):
        fit_wide(net, x, y, steps=1, sigma=0.0)
    with pytest.raises(ValueError, match=r"an order of the 2 inputs, found \[0, 0\]: name each of"):
        fit_wide(net, x, y, steps=1, views=((0, 0),))
    with pytest.raises(ValueError, match=r"lr must be positive and finite, found -1.0: try 0.01"):
        fit_wide(net, x, y, steps=1, lr=-1.0)
    with pytest.raises(ValueError, match=r"momentum and betas must lie in \[0, 1\), found 0.0 and"):
        fit_wide(net, x, y, steps=1, betas=(0.9, 1.0))
    with pytest.raises(ValueError, match="steps must be at least 1, found 0: raise steps"):
        fit_wide(net, x, y, steps=0)
    with pytest.raises(ValueError, match="bias must be one of 'free', 'normalised'"):
        fit_wide(net, x, y, steps=1, bias="held")
    with pytest.raises(ValueError, match=r"points of shape \(4, 2\) .*, found .* at step 0: draw"):
        fit_wide(net, x, y, steps=1, fresh=lambda step: (x[:3], y[:3]))
    nn.init.zeros_(net[2].weight)
    with pytest.raises(ValueError, match="weights that differ, found 4 of one value: draw them"):
        fit_wide(net, x, y, steps=1, sigma=1.0)
