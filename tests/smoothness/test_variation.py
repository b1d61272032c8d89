"""Total variation and slope variation: both read the same curve."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import CASES, dense
from inscape._core import NotApplicable, UnsupportedModelError
from inscape.smoothness import (
    gradient_norm,
    slope_variation,
    total_variation,
    weights_product,
)
from inscape.smoothness.slope_variation import spline_bound as slope_bound
from inscape.smoothness.total_variation import spline_bound as value_bound
from oracles.smoothness import jacobian, variation

DATA_X = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]], dtype=torch.float64)
DATA_Y = torch.tensor([[1.0], [0.0], [0.0], [1.0]], dtype=torch.float64)
INTERVAL = torch.tensor([[-2.0], [2.0]], dtype=torch.float64)


def thesis_example(x):
    """Eq. (3.14): interpolates the four points, and dips between the inner two."""
    return torch.where(x.abs() >= 1, x.abs() - 1, (x**2 - 1) / 2)


def test_thesis_example_has_the_printed_values():
    assert total_variation(thesis_example, INTERVAL).summary().value == pytest.approx(3, abs=1e-9)
    assert slope_variation(thesis_example, INTERVAL).summary().value == pytest.approx(2, abs=1e-9)
    assert value_bound(DATA_X, DATA_Y).value == 2.0
    assert slope_bound(DATA_X, DATA_Y).value == 2.0


def test_smooth_functions_are_marked_as_lower_bounds():
    summary = total_variation(torch.sin, 2 * INTERVAL).summary()
    assert summary.kind == "lower bound"
    end = float(torch.sin(torch.tensor(4.0, dtype=torch.float64)))
    # On [-4, 4]: from sin(-4) = -end down to -1, up to 1, down to end.
    truth = (1 - end) + 2 + (1 - end)
    # 10,001 secants miss a turning point by at most (step/2)^2 / 2 < 1e-7.
    assert 0 <= truth - summary.value < 1e-6


@pytest.mark.parametrize("case", ["one input", "deep, one input"])
def test_knots_of_a_network_are_found_exactly(case):
    f, x, _ = CASES[case]()
    values, slopes = total_variation(f, x), slope_variation(f, x)
    assert values.exact
    assert slopes.exact
    fine = torch.linspace(float(x.min()), float(x.max()), 20_001, dtype=torch.float64)[:, None]
    with torch.no_grad():
        secants = variation(list(f(fine)))
    # A fine grid approaches the supremum from below, to about one step times the slope.
    assert 0 <= values.summary().value - float(secants) < 1e-2
    derivative = torch.stack([jacobian(f, point)[0] for point in fine[::4]])
    assert slopes.summary().value == pytest.approx(float(variation(list(derivative))), rel=1e-9)


def test_network_is_linear_between_its_knots():
    f, x, _ = CASES["deep, one input"]()
    found = total_variation(f, x)
    middles = (found.at[:-1] + found.at[1:]) / 2
    with torch.no_grad():
        assert_close(f(middles[:, None]), (found.values[:-1] + found.values[1:]) / 2)
        assert_close(f(found.at[:, None]), found.values)


def test_weights_product_equals_slope_variation_when_all_knots_are_inside():
    f = dense(1, 12, 1)
    knots = (-f[0].bias / f[0].weight[:, 0]).detach()
    inside = torch.stack([knots.min() - 1, knots.max() + 1])[:, None]
    assert slope_variation(f, inside).summary().value == pytest.approx(
        weights_product(f, inside).summary().value, rel=1e-12
    )


def test_weights_product_is_an_upper_bound_when_some_knots_are_outside():
    f = dense(1, 12, 1)
    knots = (-f[0].bias / f[0].weight[:, 0]).detach().sort().values
    part = torch.stack([knots[3] + 1e-3, knots[-1] + 1])[:, None]
    assert (
        slope_variation(f, part).summary().value < weights_product(f, part).summary().value - 1e-6
    )


def test_coincident_knots_count_once():
    f = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)).double().eval()
    with torch.no_grad():
        f[0].weight.copy_(torch.tensor([[3.0], [7.0]]))
        f[0].bias.copy_(torch.tensor([-1.0, -7.0 / 3.0], dtype=torch.float64))  # both bend at 1/3
        f[2].weight.copy_(torch.tensor([[7.0, -3.0]]))  # and cancel
    assert slope_variation(f, INTERVAL).summary().value == pytest.approx(0, abs=1e-9)
    assert weights_product(f, INTERVAL).summary().value == pytest.approx(42)


class Bent(nn.Module):
    """Every bend that the cutter knows, functional and in place."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(1, 8), nn.Linear(8, 1)
        self.prelu = nn.PReLU(init=0.3)

    def forward(self, x):
        z = self.first(x)
        parts = [
            nn.functional.leaky_relu(z[:, :2], 0.1),
            nn.functional.hardtanh(z[:, 2:4]),
            torch.clamp(z[:, 4:5], min=-0.5),
            nn.functional.relu6(4 * z[:, 5:6]),
            self.prelu(z[:, 6:7]).abs(),
            torch.maximum(z[:, 7:8], z[:, :1] / 2),
        ]
        return self.second(torch.cat(parts, dim=1))


def test_all_known_bends_are_cut_exactly():
    torch.manual_seed(0)
    f = Bent().double().eval()
    found = total_variation(f, INTERVAL)
    assert found.exact
    middles = (found.at[:-1] + found.at[1:]) / 2
    with torch.no_grad():
        assert_close(f(middles[:, None]), (found.values[:-1] + found.values[1:]) / 2)
    grid = torch.linspace(-2, 2, 4001, dtype=torch.float64)[:, None]
    slopes = torch.stack([jacobian(f, point)[0] for point in grid])
    ours = slope_variation(f, INTERVAL).summary().value
    assert ours == pytest.approx(float(variation(list(slopes))), rel=1e-9)


def test_float32_network_is_followed_in_float64():
    f, x, _ = CASES["one input"]()
    exact = total_variation(f, x).summary().value
    rounded = total_variation(f.float(), x.float())
    assert rounded.values.dtype == torch.float64
    assert rounded.summary().value == pytest.approx(exact, rel=1e-5)  # weights are rounded to 2^-24


def test_function_around_a_float32_network_keeps_its_precision():
    f, x, _ = CASES["one input"]()
    f, x = f.float(), x.float()
    wrapped = slope_variation(lambda x: f(x), x)
    assert wrapped.exact
    # Slopes in float32 have 2^-24 relative rounding each.
    assert wrapped.summary().value == pytest.approx(slope_variation(f, x).summary().value, rel=1e-5)


def test_more_inputs_are_answered_not_applicable():
    f, x, _ = CASES["two-layer"]()
    for measure in (total_variation, slope_variation):
        result = measure(f, x)
        assert isinstance(result, NotApplicable)
        expected = "not applicable: it needs one input dimension, the model has 3"
        assert result.status == expected


def test_empty_interval_is_refused():
    with pytest.raises(ValueError, match="low < high, found low=1 and high=1: pass low and high"):
        total_variation(torch.sin, torch.ones(2, 1))


def test_spline_bounds_hold_for_an_interpolating_network():
    f, x, _ = CASES["deep, one input"]()
    with torch.no_grad():
        y = f(x)
    assert total_variation(f, x).summary().value >= value_bound(x, y).value - 1e-12
    assert slope_variation(f, x).summary().value >= slope_bound(x, y).value - 1e-9


def test_no_function_passes_through_two_labels_at_one_place():
    x, y = torch.tensor([[0.0], [0.0], [1.0]]), torch.tensor([[0.0], [1.0], [1.0]])
    assert value_bound(x, y) is None
    assert slope_bound(x, y) is None


def test_repeated_points_count_once_in_the_spline():
    x, y = DATA_X.repeat(2, 1), DATA_Y.repeat(2, 1)
    assert value_bound(x, y).value == 2.0
    assert slope_bound(x, y).value == 2.0


SHAPED = nn.Sequential(nn.Unflatten(1, (1, 1)), nn.Conv1d(1, 4, 1), nn.ReLU(), nn.Flatten())


@pytest.mark.parametrize(
    ("f", "values", "slopes"),
    [
        (lambda x: x * x, 8, 8),
        (lambda x: torch.minimum(x, x * x), 4, 4),
        (lambda x: torch.einsum("ni,ni->n", x.relu(), x.relu()), 4, 4),
        (lambda x: torch.clamp(0 * x + 0.3, min=x, max=1 - x), 1.7, 3),
        (lambda x: x.relu() - (-x).relu() + torch.sin(0 * x), 4, 0),
        (nn.Threshold(0, 1).eval(), 3, 1),
    ],
    ids=["square", "minimum", "einsum", "moving limits", "kink on the grid", "jump"],
)
def test_what_is_not_piecewise_linear_is_never_called_exact(f, values, slopes):
    for measure, truth in ((total_variation, values), (slope_variation, slopes)):
        summary = measure(f, INTERVAL).summary()
        assert summary.kind == "lower bound"
        # A step of the grid is 4e-4, and no slope here is above 4.
        assert truth - 2e-3 < summary.value <= truth + 1e-9


def test_rounding_is_not_affine():
    def stairs(x):
        return torch.div(x, 0.5, rounding_mode="floor") + x.long().to(x.dtype)

    assert total_variation(stairs, INTERVAL).summary().kind == "lower bound"


def test_function_without_gradients_is_refused():
    f, x, _ = CASES["one input"]()
    for measure in (total_variation, slope_variation, gradient_norm):
        with pytest.raises(UnsupportedModelError, match="must let gradients reach its input, but"):
            measure(torch.no_grad()(lambda x: f(x)), x)


def test_derivative_that_does_not_belong_to_the_values_is_not_called_exact():
    summary = slope_variation(lambda x: torch.relu(x.detach()) + 0 * x, INTERVAL).summary()
    assert summary.kind == "lower bound"


@pytest.mark.parametrize(
    "f",
    [
        SHAPED.double().eval(),
        lambda x: torch.stack([x, -x], 1).relu().sum(1),
        lambda x: (x - 0.3).relu().view(x.shape[0], 1),
        lambda x: (x + 0.2).relu().squeeze(),
    ],
    ids=["convolution", "stack", "size", "squeeze"],
)
def test_shapes_may_change_on_the_way(f):
    found = slope_variation(f, INTERVAL)
    assert found.exact
    grid = torch.linspace(-2, 2, 1000, dtype=torch.float64)[:, None]
    slopes = torch.stack([jacobian(f, point).flatten() for point in grid])
    assert found.summary().value == pytest.approx(float(variation(list(slopes))), rel=1e-9)


def test_batch_that_is_not_first_is_only_followed():
    f = dense(1, 2, 1)

    def columns(x):
        return (f[2].weight @ torch.relu(f[0].weight @ x.T + f[0].bias[:, None])).T + f[2].bias

    ours, truth = slope_variation(columns, INTERVAL), slope_variation(f, INTERVAL)
    assert not ours.exact
    assert ours.summary().value == pytest.approx(truth.summary().value)


def test_many_knots_of_a_float32_function_are_not_called_exact():
    f = dense(1, 300, 1).float()
    x = INTERVAL.float()
    inside, truth = slope_variation(lambda x: f(x), x), slope_variation(f, x)
    assert truth.exact
    assert not inside.exact
    assert inside.summary().value <= truth.summary().value * (1 + 1e-6)  # float32 slopes


def test_module_that_insists_on_float32_is_measured_in_it():
    class Insists(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = dense(1, 5, 1).float()
            self.offset = (torch.tensor([0.25]),)

        def forward(self, x):
            return self.net(x + self.offset[0]) @ torch.ones(1, 1)

    found = total_variation(Insists().eval(), INTERVAL.float())
    assert found.exact
    assert found.values.dtype == torch.float32


def test_tiny_slopes_are_found():
    x = INTERVAL.float()
    assert slope_variation(lambda x: torch.relu(1e-25 * x) * 1e25, x).summary().value == 1.0


def test_a_lower_bound_rises_with_the_points():
    """Each curve has the points of the one before: sin(40 x) turns often on [-2, 2]."""
    results = list(total_variation.refine(lambda x: torch.sin(40 * x), INTERVAL))
    values = [result.summary().value for result in results]
    assert [len(result.at) for result in results] == [101, 1001, 10_001]
    assert values == sorted(values)
    assert set(results[0].at.tolist()) < set(results[2].at.tolist())
    assert values[-1] == total_variation(lambda x: torch.sin(40 * x), INTERVAL).summary().value


def test_slopes_get_better_too_and_a_piecewise_linear_network_has_one_answer():
    results = list(slope_variation.refine(lambda x: torch.sin(40 * x), INTERVAL, knots=2001))
    assert [len(result.at) for result in results] == [21, 201, 2001]
    exact = list(slope_variation.refine(dense(1, 8, 1, seed=0), INTERVAL))
    assert [result.exact for result in exact] == [True]
