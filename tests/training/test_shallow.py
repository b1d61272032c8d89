"""Hand-written gradients against autograd: the plain loop is the oracle."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from inscape import smoothness
from inscape.models import two_layer
from inscape.training import DivergedError, fit
from inscape.training.shallow import fit_shallow

PENALTIES = {
    "gradient_norm": (0.3, smoothness.gradient_norm_penalty),
    "path_length": (0.02, partial(smoothness.path_length_penalty, reduction="sum")),
    "gradient_path_length": (
        0.02,
        partial(smoothness.gradient_path_length_penalty, reduction="sum"),
    ),
    "weights_product": (0.01, smoothness.weights_product_penalty),
}


def network(d: int = 9) -> nn.Sequential:
    return two_layer(d, 12, init="glorot", scale=0.7, seed=3, dtype=torch.float64)


def data(n: int = 21, d: int = 9, rank: int = 5) -> tuple[Tensor, Tensor]:
    """Return points in a subspace, so that the span is smaller than the space."""
    rng = torch.Generator().manual_seed(1)
    x = torch.randn(n, rank, generator=rng, dtype=torch.float64)
    x = x @ torch.randn(rank, d, generator=rng, dtype=torch.float64)
    return x / 3, torch.sin(3 * x[:, :1])


@pytest.mark.parametrize("batch", [None, 8, 6])
def test_equals_the_plain_loop(batch: int | None):
    x, y = data()
    plain = fit(network(), x, y, lr=0.05, batch=batch, epochs=40, seed=5)
    ours = fit_shallow(network(), x, y, lr=0.05, batch=batch, epochs=40, seed=5)
    assert_close(ours.model.state_dict(), plain.model.state_dict())
    assert_close(ours.losses, plain.losses)
    assert ours.steps == plain.steps


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties_equal_those_of_the_plain_loop(name: str):
    x, y = data()
    coefficient, penalty = PENALTIES[name]
    settings = {"lr": 0.05, "batch": 8, "epochs": 30, "seed": 5}
    plain = fit(network(), x, y, penalties=[(coefficient, penalty)], **settings)
    ours = fit_shallow(network(), x, y, penalty=name, coefficient=coefficient, **settings)
    assert_close(ours.model.state_dict(), plain.model.state_dict())
    assert_close(ours.losses, plain.losses)
    assert_close(ours.penalties, plain.penalties)
    without = fit_shallow(network(), x, y, **settings)
    assert (without.losses - ours.losses).abs().max() > 1e-6


def test_float32_stays_near_float64():
    x, y = data()
    exact = fit_shallow(network(), x, y, lr=0.05, batch=8, epochs=30)
    rough = fit_shallow(network().float(), x.float(), y.float(), lr=0.05, batch=8, epochs=30)
    assert_close(rough.losses, exact.losses, rtol=1e-4, atol=0)  # 24 bits and 90 steps
    assert rough.model[0].weight.dtype == torch.float32


def test_stops_when_the_plain_loop_stops():
    x, y = data()
    settings = {"lr": 0.1, "batch": 8, "epochs": 5000, "stop_loss": 0.05}
    plain, ours = fit(network(), x, y, **settings), fit_shallow(network(), x, y, **settings)
    assert (ours.epochs, ours.stopped) == (plain.epochs, plain.stopped) == (plain.epochs, "loss")


def test_same_seed_same_bits():
    x, y = data()
    runs = [fit_shallow(network().float(), x.float(), y.float(), batch=8) for _ in range(2)]
    assert torch.equal(runs[0].model[0].weight, runs[1].model[0].weight)


def test_refuses_other_networks():
    with pytest.raises(ValueError, match=r"Linear, ReLU and Linear with biases.*found Linear"):
        fit_shallow(nn.Linear(9, 1).double(), *data())


def test_refuses_unknown_penalties():
    with pytest.raises(ValueError, match="penalty"):
        fit_shallow(network(), *data(), penalty="roughness")


def test_says_where_it_diverged():
    with pytest.raises(DivergedError, match=r"found loss .* in epoch \d+.*smaller lr"):
        fit_shallow(network(), *data(), lr=100.0, batch=8)
