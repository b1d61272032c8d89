"""What was found is never above what is proved; both are known where the answer is."""

import itertools
import sys
from dataclasses import fields, replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import inscape
from cases import CASES, dense, points
from inscape._core import UnsupportedModelError
from inscape._core.anytime import batches
from inscape.controls import _steepest_chord, length_scale, lipschitz, release
from inscape.controls._activation_slopes import SLOPES
from inscape.controls._linear_maps import Graph
from inscape.controls._lipschitz_bounds import longest, upper_bounds
from inscape.controls._steepest_chord import Chord
from repeated import repeated


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
    monkeypatch.setattr("inscape.controls._linear_maps.SMALL", 0)
    assert_close(upper_bounds(Graph(model, x))["product of norms"], written)


def test_slopes_stay_in_their_intervals():
    z = torch.linspace(-12, 12, 200_001, dtype=torch.float64, requires_grad=True)
    plain = {"softplus", "hardtanh", "relu6", "hardsigmoid", "celu", "gelu", "silu"}
    plain |= {"hardswish", "mish", "softshrink"}
    for name, (low, high) in SLOPES.items():
        if name.startswith("clamp"):
            continue
        f = getattr(nn.functional, "logsigmoid" if name == "log_sigmoid" else name, None)
        f = f if name in plain | {"log_sigmoid"} else getattr(torch, name)
        (slope,) = torch.autograd.grad(f(z).sum(), z)
        assert low - 1e-12 <= slope.min() <= low + 0.13, name
        assert high - 1e-3 <= slope.max() <= high + 1e-12, name


@pytest.mark.parametrize(
    "act",
    [
        *(nn.ELU(2.0), nn.SELU(), nn.LeakyReLU(1.5), nn.LeakyReLU(-0.5), nn.Softsign()),
        nn.PReLU(init=1.7).double(),
    ],
    ids=str,
)
def test_activations_with_settings(act):
    model = nn.Sequential(*dense(2, 5, 1)[:1], act, *dense(2, 5, 1)[2:]).eval()
    found = lipschitz(model, points(30, 2))
    assert found.lower <= found.upper
    z = torch.linspace(-30, 30, 30_001, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(act(z).sum(), z)
    (one,) = Graph(model, points(2, 2)).activations
    assert_close([one.low, one.high], [slope.min().item(), slope.max().item()], atol=5e-3, rtol=0)


class Split(nn.Module):
    """Softsign, and its absolute value elsewhere."""

    def forward(self, x):
        size = x.abs()
        return x / (1 + size) + 3 * size


def test_an_absolute_value_that_bends_something_else_still_counts():
    found = Graph(Split(), points(3, 1)).activations
    assert [one.node.name for one in found] == ["abs_1", "div"]
    assert lipschitz(Split().eval(), points(9, 1)).upper >= 4 - 1e-9
    assert len(Graph(nn.Softsign(), points(3, 1)).activations) == 1


@pytest.mark.parametrize(
    ("module", "shape", "expected"),
    [
        (nn.Softmax(1), (5,), 0.5),
        (nn.LogSoftmax(1), (5,), 5**0.5),
        (nn.MaxPool1d(3, 1), (1, 9), 3**0.5),
        (nn.MaxPool1d(2), (1, 9), 1.0),
        (nn.MaxPool2d(3, 2), (1, 7, 7), 2.0),
        (nn.MaxPool2d((3, 2), (1, 2), dilation=(2, 1)), (1, 9, 9), 3**0.5),
        (nn.MaxPool3d(2, 1), (1, 3, 3, 3), 8**0.5),
    ],
    ids=str,
)
def test_stretch_of_operations_on_several_numbers(module, shape, expected):
    """The bound holds for the worst of many Jacobians, and some input comes close to it."""
    (one,) = Graph(module, points(2, *shape)).activations
    assert_close([one.high, one.low, one.elementwise], [expected, -expected, False])
    x = torch.cat([s * points(60, *shape, seed=3) for s in (0.1, 3.0, 30.0)])
    if "Max" in str(module):  # one number above all others is in as many windows as can be
        peaks = torch.eye(x[0].numel()).double().view(-1, *shape)
        x = torch.cat([x, 100 * peaks])
    else:  # two classes that share all, against one that has all
        x = torch.cat([x, torch.eye(5).double() * 50, torch.eye(5).double()[:1] * 50])
        x[-1, 1] = 50
    jacobian = torch.func.vmap(torch.func.jacrev(lambda z: module(z[None])[0].flatten()))(x)
    found = torch.linalg.matrix_norm(jacobian.flatten(2), 2).max().item()
    assert found <= expected * (1 + 1e-9)
    assert found >= expected * (1 - 1e-9)


@pytest.mark.parametrize("reduce", [torch.amax, torch.logsumexp])
def test_reductions_over_units_but_not_over_rows(reduce):
    class Reduced(nn.Module):
        def __init__(self, dims):
            super().__init__()
            self.dims = dims

        def forward(self, x):
            return x + reduce(x, self.dims, keepdim=True)

    assert_close(lipschitz(Reduced([1]).eval(), points(9, 3)).upper, 1 + 3**0.5)
    with pytest.raises(UnsupportedModelError, match=r"moves the batch|neither affine nor an activ"):
        Graph(Reduced([0]), points(9, 3))


@pytest.mark.parametrize("size", [1.0, 1e-12])
def test_rounding_is_not_taken_for_a_slope(size):
    """Old: lower .5784604 above upper .5784599, and .714 above .655, both called exact."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 1), torch.randn(20, 4) * size
    model.bias.data.fill_(1e8 if size == 1 else 0.5)
    found = lipschitz(model.eval(), x)
    exact = model.weight.double().norm().item()
    assert found.lower <= found.upper
    assert_close([found.lower, found.upper], [exact, exact], rtol=1e-7, atol=0)


def test_where_differences_drown_the_jacobian_is_what_was_found():
    model, x = dense(3, 8, 1), points(40, 3)
    plain = lipschitz(model, x)
    model[2].bias.data.fill_(1e10)
    found = lipschitz(model, x)
    assert found.lower <= found.upper
    assert abs(found.lower / plain.lower - 1) < 1e-3
    chord = Chord(slope=2.0, pair=points(2, 3), rounding=1e-3, jacobian=1.0)
    assert (chord.value, replace(chord, rounding=1e-9).value) == (1.0, 2.0)


@pytest.mark.parametrize("size", [1e12, 1e25, 1e100])
def test_points_between_which_nothing_fits_have_their_jacobian(size):
    model, x = dense(3, 8, 2), size * points(4, 3)
    steepest = max(
        torch.linalg.matrix_norm(torch.func.jacrev(model)(point).detach(), 2).item() for point in x
    )
    found = lipschitz(model, x)
    assert steepest * (1 - 1e-9) <= found.lower <= found.upper


def test_a_bound_below_what_was_found_ends_it(monkeypatch):
    chord = Chord(slope=2.0, pair=points(2, 3), rounding=0.0, jacobian=0.5)
    module = sys.modules["inscape.controls.lipschitz"]  # its name is that of the function
    monkeypatch.setattr(module, "steepest_chords", lambda *_, **__: iter([chord]))
    found = lipschitz(dense(3, 1), points(4, 3))
    assert found.lower == min(0.5, found.upper)
    assert found.summary().kind == ("exact" if found.lower == found.upper else "upper bound")


def test_many_outputs_are_searched_by_few_mixtures(monkeypatch):
    model, x = dense(6, 9, 40), points(60, 6)
    seen = []
    whole = _steepest_chord.jacobians
    monkeypatch.setattr(
        _steepest_chord,
        "jacobians",
        lambda f, z: seen.append((len(z), f(z).shape[1])) or whole(f, z),
    )
    found = lipschitz(model, x)
    assert sum(n for n, c in seen if c == 40) == _steepest_chord.SHORTLIST + _steepest_chord.PAIRS
    norms = torch.linalg.matrix_norm(whole(model, x), 2)
    assert norms.max() * (1 - 1e-6) <= found.lower <= found.upper


@pytest.mark.parametrize("shape", [(4, 3, 5), (4, 5, 3)])
def test_leading_is_the_decomposition(shape):
    matrices = points(*shape)
    values, right = _steepest_chord._leading(matrices)
    _, expected, vectors = torch.linalg.svd(matrices, full_matrices=False)
    assert_close(values, expected[:, 0])
    assert_close((right * vectors[:, 0]).sum(1).abs(), torch.ones(4, dtype=torch.float64))


def tent(peak):
    """Return a network of one input whose slopes are 3 and 2, with its kink at a place."""
    model = dense(1, 2, 1)
    weights = ([[1.0], [-1.0]], [-peak, peak], [[3.0, -2.0]], [0.0])
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), weights, strict=True):
            parameter.copy_(torch.tensor(value))
    return model


def test_every_refinement_has_the_constant_between_its_bounds(monkeypatch):
    """Stopped wherever, for 60 seeds: these are bounds, so all must hold, not 95% of them."""
    monkeypatch.setattr(_steepest_chord, "STEPS", 4)
    monkeypatch.setattr(_steepest_chord, "DRAWN", 60)
    early = []
    for seed in repeated(range(60)):
        draw = torch.Generator().manual_seed(seed)
        x = torch.randn(12, 1, generator=draw, dtype=torch.float64)
        with batches(8):
            results = list(lipschitz.refine(tent(1.5), x, seed=seed))
        lower = [result.lower for result in results]
        rising = itertools.pairwise(lower)
        assert all(second >= first * (1 - 1e-7) for first, second in rising)  # but for rounding
        assert all(result.upper == results[0].upper >= 3.0 for result in results)
        assert lower[-1] <= 3.0 * (1 + 1e-9)
        assert_close(lower[-1], 3.0)
        early.append(lower[0])
    assert min(early) < 2.5  # one point is not always on the steeper side


def test_batches_do_not_change_the_chords_that_are_tried():
    model, x = dense(3, 9, 40, act=nn.Tanh), points(50, 3)
    whole = lipschitz(model, x, points=20)
    for rows in (1, 3, 16):
        with batches(rows):
            *_, last = lipschitz.refine(model, x, points=20)
        assert_close(last.pair, whole.pair)
        assert_close(last.lower, whole.lower)


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


@pytest.mark.parametrize("size", [1e-200, 1e-18, 1e-6, 1.0, 1e18, 1e200])
def test_largest_singular_values_of_any_size(size):
    matrices = points(5, 12).reshape(5, 4, 3).double()
    norms, right = _steepest_chord._leading(size * matrices)
    assert_close(norms / size, torch.linalg.matrix_norm(matrices, 2))
    assert_close(right.norm(dim=1), torch.ones(5, dtype=torch.float64))


def test_slopes_far_below_one_are_found():
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)).double().eval()
    x = 1e17 * points(1, 3).double()
    jacobian = torch.autograd.functional.jacobian(lambda z: model(z[None])[0], x[0])
    assert lipschitz(model, x, points=1).lower >= 0.999 * torch.linalg.matrix_norm(jacobian, 2)
