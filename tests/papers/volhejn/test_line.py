"""The broken line of a network with one input gives the instruments' own numbers."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from inscape.data import gaussian_process
from inscape.models import two_layer
from inscape.papers.volhejn._line import line, measured, polynomial
from inscape.papers.volhejn._measures import THESIS
from inscape.papers.volhejn._measures import measured as by_instruments


def network(seed: int, scale: float = 3.0) -> torch.nn.Sequential:
    model = two_layer(1, 20, init="glorot", scale=scale, seed=seed, dtype=torch.float64)
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():  # knots at different places
        model[0].bias.copy_(torch.randn(20, generator=rng, dtype=torch.float64))
        model[2].bias.fill_(0.3)
    return model


@pytest.mark.parametrize("seed", range(3))
def test_values_and_slopes_are_the_networks(seed: int):
    model = network(seed)
    x = torch.linspace(-3, 3, 400, dtype=torch.float64)[:, None].requires_grad_()
    y = model(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    values, slopes = line(model)(x.detach().numpy()[:, 0])
    assert_close(torch.from_numpy(values), y[:, 0].detach())
    assert_close(torch.from_numpy(slopes), slope[:, 0])


def test_units_that_do_not_move_count_as_constants():
    model = network(0)
    with torch.no_grad():
        model[0].weight[3] = 0.0
        model[0].bias[3] = 2.0
    x = torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None]
    assert_close(torch.from_numpy(line(model)(x.numpy()[:, 0])[0]), model(x)[:, 0].detach())


def test_measures_are_the_instruments():
    model, data = network(1), gaussian_process(n=5, seed=1, dtype=torch.float64)
    theirs = by_instruments(
        model, data.x_test, data.y_test, measures=list(THESIS.values()), start=model
    )
    ours = measured(model, data.x_test)
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_polynomial_goes_through_its_points():
    data = gaussian_process(n=6, seed=2, dtype=torch.float64)
    model = polynomial(data.x, data.y, data.x_test)
    assert_close(model(data.x), data.y, atol=1e-9, rtol=0)  # degree 5 through 6 points
    heights = model(data.x_test)[:, 0].detach().numpy()
    slopes = np.diff(heights) / np.diff(data.x_test[:, 0].numpy())
    product = abs(slopes[0]) + np.abs(np.diff(slopes)).sum()
    assert measured(model, data.x_test)["WP"] == pytest.approx(product, rel=1e-9)


def test_unknown_measures_are_named():
    model, data = network(1), gaussian_process(n=5, seed=1, dtype=torch.float64)
    with pytest.raises(ValueError, match="measures must be instruments, found roughness"):
        by_instruments(model, data.x_test, data.y_test, measures=["roughness"], start=model)
