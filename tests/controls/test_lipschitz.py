"""What was found is never above what is proved; both are known where the answer is."""

import itertools
from dataclasses import fields

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import inscape
from cases import CASES, dense, points
from inscape.controls import length_scale, lipschitz, release
from inscape.controls._bounds import longest, upper_bounds
from inscape.controls._graph import SLOPES, Graph


def test_exact_for_linear_maps():
    model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 3)).double().eval()
    exact = torch.linalg.matrix_norm(model[1].weight @ model[0].weight, 2).item()
    found = lipschitz(model, points(5, 4))
    assert_close([found.lower, found.upper], [exact, exact])
    assert found.summary().kind == "exact"


def test_a_tent_with_known_slopes():
    model = dense(1, 2, 1)
    weights = ([[1.0], [-1.0]], [0.0, 0.0], [[3.0, -2.0]], [0.0])
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), weights, strict=True):
            parameter.copy_(torch.tensor(value))
    found = lipschitz(model, points(6, 1))
    assert_close(found.lower, 3.0)
    assert_close(found.upper, 5.0)  # both units on at once, which no input does
    assert_close(dict(zip(found.methods, found.bounds, strict=True))["product of norms"], 26**0.5)


@pytest.mark.parametrize("case", CASES)
def test_found_below_proved_and_the_pair_shows_it(case):
    model, x, _ = CASES[case]()
    found = lipschitz(model, x)
    assert 0 < found.lower <= found.upper
    a, b = found.pair
    shown = (model(b[None]) - model(a[None])).norm() / (b - a).norm()
    assert_close(shown.item(), found.lower, rtol=1e-6, atol=0)
    chords = points(400, 2, x.shape[1], seed=3)
    ends = [model(chords[:, k]) for k in (0, 1)]
    ratios = (ends[1] - ends[0]).norm(dim=1) / (chords[:, 1] - chords[:, 0]).norm(dim=1)
    assert ratios.max() <= found.lower * (1 + 1e-6)


@pytest.mark.parametrize("act", [nn.ReLU, nn.Tanh, nn.LeakyReLU, nn.GELU])
def test_hull_and_patterns_are_two_ways_to_one_number(act):
    model, x = dense(2, 7, 1, act=act), points(3, 2)
    found = upper_bounds(Graph(model, x))
    assert_close(found["hull of the gradients"], found["every pattern of slopes"])


def test_patterns_by_hand():
    model, x = dense(3, 4, 2), points(3, 3)
    first, last = model[0].weight.detach(), model[2].weight.detach()
    norms = [
        torch.linalg.matrix_norm(last * torch.tensor(on).double() @ first, 2)
        for on in itertools.product((0, 1), repeat=4)
    ]
    assert_close(upper_bounds(Graph(model, x))["every pattern of slopes"], max(norms).item())


def test_middle_is_never_worse_than_the_product():
    for seed in range(3):
        bounds = upper_bounds(Graph(dense(3, 9, 9, 9, 2, seed=seed), points(3, 3)))
        assert bounds["slopes around their middle"] <= bounds["product of norms"] * (1 + 1e-12)


def test_longest_of_all_signs():
    draw = torch.Generator().manual_seed(0)
    for _ in range(8):
        centre = torch.randn(2, generator=draw, dtype=torch.float64)
        generators = torch.randn(6, 2, generator=draw, dtype=torch.float64)
        signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=6)), dtype=torch.float64)
        expected = (centre + signs @ generators).norm(dim=1).max().item()
        assert_close(longest(centre, generators), expected)


class Residual(nn.Module):
    """A branch and its way around, both scaled."""

    def __init__(self):
        super().__init__()
        self.branch = dense(3, 5, 3)

    def forward(self, x):
        return 2 * x + self.branch(x)


def test_residual_sums():
    model, x = Residual().eval(), points(4, 3)
    found = lipschitz(model, x)
    bounds = dict(zip(found.methods, found.bounds, strict=True))
    norms = [torch.linalg.matrix_norm(model.branch[k].weight, 2).item() for k in (0, 2)]
    assert_close(bounds["product of norms"], 2 + norms[0] * norms[1])
    assert found.lower <= found.upper < bounds["product of norms"]


def test_convolutions_and_pooling():
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.MaxPool2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(18, 2)
    )
    model, x = model.double().eval(), points(4, 1, 6, 6)
    found = lipschitz(model, x)
    columns = [
        model[0](one) - model[0](torch.zeros_like(one))
        for one in torch.eye(36).view(36, 1, 1, 6, 6).double()
    ]
    conv = torch.linalg.matrix_norm(torch.stack([c.flatten() for c in columns]), 2).item()
    last = torch.linalg.matrix_norm(model[4].weight, 2).item()
    assert_close(found.upper, conv * last)
    assert found.lower <= found.upper


def test_large_maps_by_iteration_are_the_same_number(monkeypatch):
    model, x = dense(6, 8, 8, 1), points(4, 6)
    written = upper_bounds(Graph(model, x))["product of norms"]
    monkeypatch.setattr("inscape.controls._graph.SMALL", 0)
    assert_close(upper_bounds(Graph(model, x))["product of norms"], written)


def test_slopes_stay_in_their_intervals():
    z = torch.linspace(-12, 12, 200_001, dtype=torch.float64, requires_grad=True)
    plain = {"softplus", "hardtanh", "relu6", "hardsigmoid", "celu", "gelu", "silu", "softsign"}
    for name, (low, high) in SLOPES.items():
        if name.startswith("clamp"):
            continue
        f = getattr(nn.functional, "logsigmoid" if name == "log_sigmoid" else name, None)
        f = f if name in plain | {"log_sigmoid"} else getattr(torch, name)
        (slope,) = torch.autograd.grad(f(z).sum(), z)
        assert low - 1e-12 <= slope.min() <= low + 0.13, name
        assert high - 1e-3 <= slope.max() <= high + 1e-12, name


@pytest.mark.parametrize("act", [nn.ELU(2.0), nn.SELU(), nn.LeakyReLU(1.5), nn.LeakyReLU(-0.5)])
def test_activations_with_settings(act):
    model = nn.Sequential(*dense(2, 5, 1)[:1], act, *dense(2, 5, 1)[2:]).eval()
    found = lipschitz(model, points(30, 2))
    assert found.lower <= found.upper
    z = torch.linspace(-9, 9, 10_001, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(act(z).sum(), z)
    (one,) = Graph(model, points(2, 2)).activations
    assert_close([one.low, one.high], [slope.min().item(), slope.max().item()], atol=5e-3, rtol=0)


def test_without_known_slopes_only_the_lower_bound():
    model = nn.Sequential(nn.Linear(2, 5), nn.LayerNorm(5), nn.Linear(5, 1)).double().eval()
    found = lipschitz(model, points(6, 2))
    assert found.upper is None
    assert "slopes cannot be bounded: 'layer_norm' in module '1' is neither affine" in found.reason
    assert found.summary().kind == "lower bound"


def test_single_precision_is_measured_in_double():
    model, x = dense(2, 8, 1), points(6, 2)
    exact, rounded = lipschitz(model, x), lipschitz(dense(2, 8, 1).float(), x.float())
    assert rounded.pair.dtype == torch.float32
    assert_close(rounded.upper, exact.upper, rtol=1e-5, atol=0)


def test_a_held_network_is_bounded_as_its_plain_copy():
    x = points(6, 3)
    model = length_scale(dense(3, 8, 1, act=nn.Tanh), 0.5)
    held = lipschitz(model, x)
    assert_close(held.upper, lipschitz(release(model), x).upper)


def test_saved_and_loaded(tmp_path):
    model = nn.Sequential(nn.Linear(2, 5), nn.LayerNorm(5), nn.Linear(5, 1)).double().eval()
    found = lipschitz(model, points(6, 2))
    again = inscape.load(found.save(tmp_path / "found.json"))
    assert again.upper is None
    assert {f.name for f in fields(again)} == {f.name for f in fields(found)}


def test_bad_input():
    with pytest.raises(ValueError, match="points must be at least 1, found 0: raise points"):
        lipschitz(dense(2, 1), points(3, 2), points=0)
