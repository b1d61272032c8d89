import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import BudgetError
from inscape.regions import line_regions
from inscape.sensitivity import saliency


def weighted(*weights):
    """Return a linear function of as many inputs, plus one."""
    row = torch.tensor([weights], dtype=torch.float64)
    return lambda x: x @ row.T + 1


def test_linear_function_has_one_attribution_in_three_forms():
    f, x = weighted(2.0, -3.0, 0.0), points(5, 3)
    result, weights = saliency(f, x), torch.tensor([2.0, -3, 0], dtype=torch.float64)
    assert_close(result.gradients, weights.expand(5, 3))
    assert_close(result.attributions("gradient_times_input"), weights * x)
    assert_close(result.integrated, weights * x)
    assert result.exact.all()
    assert result.pieces.tolist() == [1] * 5
    assert_close(result.baseline_values, torch.ones(5, dtype=torch.float64))


def test_integrated_gradients_are_those_of_the_exact_pieces():
    f, x = dense(3, 8, 8, 4), points(7, 3)
    result = saliency(f, x)
    lines = line_regions(f, torch.zeros_like(x), to=x, maps=True)
    assert result.outputs.tolist() == f(x).argmax(1).tolist()
    assert result.pieces.tolist() == lines.cells.tolist()
    for k, output in enumerate(result.outputs.tolist()):
        own = slice(int(lines.offsets[k]) - k, int(lines.offsets[k + 1]) - k - 1)
        widths = lines.t[lines.offsets[k] : lines.offsets[k + 1]].diff()
        assert_close(result.integrated[k], widths @ lines.maps[own, output] * x[k])


def test_integrated_gradients_are_the_limit_of_a_sum_by_finite_differences():
    f, x = dense(2, 6, 1), points(3, 2)
    found, steps, h = saliency(f, x).integrated, 4000, 1e-7
    t = (torch.arange(steps, dtype=torch.float64) + 0.5)[:, None] / steps
    for k, point in enumerate(x):
        at = t * point
        moved = [f(at + h * axis) - f(at - h * axis) for axis in torch.eye(2, dtype=torch.float64)]
        means = torch.cat(moved, 1).mean(0) / (2 * h)
        assert_close(found[k], means * point, atol=2e-3, rtol=0)  # a step at each kink is missed


@pytest.mark.parametrize("act", [nn.ReLU, nn.Tanh])
def test_attributions_add_up_to_the_difference_from_the_baseline(act):
    f, x, start = dense(3, 9, 9, 2, act=act), points(6, 3), points(1, 3, seed=5)[0]
    result = saliency(f, x, baseline=start, output=1)
    assert_close(result.integrated.sum(1), (f(x) - f(start[None]))[:, 1].detach())
    assert result.residual < 1e-12
    assert bool(result.exact.all()) == (act is nn.ReLU)
    assert "residual" in result.summary().basis
    if act is nn.Tanh:
        assert "found" in result.note
        assert "0 exact" in result.summary().basis


def test_too_many_pieces_are_integrated_by_quadrature_and_the_residual_says_how_well():
    f, x = dense(3, 30, 30, 1), 5 * points(4, 3)
    exact, coarse, fine = saliency(f, x), saliency(f, x, pieces=9, steps=4), None
    fine = saliency(f, x, pieces=9, steps=2000)
    assert not coarse.exact.any()
    assert exact.residual < 1e-12 < fine.residual < coarse.residual
    assert_close(fine.integrated, exact.integrated, atol=1e-2, rtol=0)  # order 1 / steps at kinks


def test_a_network_with_far_more_units_than_pieces_is_not_cut():
    result = saliency(dense(2, 60, 1), points(2, 2), pieces=5)
    assert result.pieces.tolist() == [0, 0]


def test_kink_on_the_path_is_met_where_it_is():
    x = torch.tensor([[2.0], [-2.0]], dtype=torch.float64)
    result = saliency(lambda z: torch.relu(z - 0.5), x)
    assert result.integrated.flatten().tolist() == [1.5, 0.0]
    assert result.gradients.flatten().tolist() == [1.0, 0.0]
    assert result.pieces.tolist() == [2, 1]


def test_point_at_the_baseline_has_no_attribution():
    f, x = dense(3, 8, 2), points(3, 3)
    result = saliency(f, x, baseline=x[1])
    assert result.integrated[1].tolist() == [0, 0, 0]
    assert abs(float(result.residuals[1])) < 1e-15
    assert saliency(f, torch.zeros(1, 3, dtype=torch.float64)).summary().value == 0


def test_effective_number_counts_inputs_that_matter_equally():
    f, x = weighted(1.0, -1.0, 0.0, 1.0), torch.ones(2, 4, dtype=torch.float64)
    assert saliency(f, x).summary().value == 3.0
    one = saliency(weighted(1e200, 0.0, 0.0), torch.ones(1, 3, dtype=torch.float64))
    assert one.summary().value == 1.0


def test_unused_inputs_get_nothing_and_reordered_inputs_reordered_attributions():
    f, x = dense(3, 8, 1), points(5, 3)
    wide = saliency(lambda z: f(z[:, [2, 0, 1]]), torch.cat([x, x[:, :1]], 1))
    plain = saliency(f, x[:, [2, 0, 1]])
    assert wide.integrated[:, 3].tolist() == [0] * 5
    assert_close(wide.integrated[:, [2, 0, 1]], plain.integrated)


def test_images_keep_the_shape_and_float32_is_computed_in_float64():
    torch.manual_seed(0)
    f = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                      nn.Linear(12, 4)).eval()  # fmt: skip
    x = torch.randn(3, 2, 6, 6)
    result = saliency(f, x)
    assert result.images().shape == (3, 2, 6, 6)
    assert result.images("gradient").dtype == torch.float64
    assert result.converted == "float32"
    assert result.residual < 1e-12
    assert_close(result.values.float(), f(x).amax(1).detach())


def test_drawn_points_are_said():
    result = saliency(dense(2, 5, 1), points(40, 2), points=6, seed=3)
    assert len(result.outputs) == 6
    assert result.drawn_from == 40
    assert {tuple(row) for row in result.points.tolist()} <= set(map(tuple, points(40, 2).tolist()))


def test_errors_say_what_does_not_fit(unchecked):
    f, x = dense(3, 8, 2), points(5, 3)
    with pytest.raises(ValueError, match=r"baseline must be one input, of shape \(3,\), found \(2"):
        saliency(f, x, baseline=x[0, :2])
    with pytest.raises(ValueError, match="baseline must be finite, found NaN or Inf"):
        saliency(f, x, baseline=x[0] / 0)
    with pytest.raises(ValueError, match="one of the 2 outputs, 0 to 1, found 2: choose one"):
        saliency(f, x, output=2)
    with pytest.raises(ValueError, match="kind must be one of 'gradient', 'gradient_times_input'"):
        saliency(f, x).images("smoothgrad")
    with pytest.raises(ValueError, match="x must be finite, found NaN or Inf in 1 of 5 points"):
        saliency(f, torch.where(x == x[2, 0], torch.nan, x))
    wide = torch.zeros(1, dtype=torch.float64).expand(4000, 2**16)
    with pytest.raises(BudgetError, match="at most 4 GiB, but 4000 points with 65536 inputs take"):
        saliency(lambda z: z[:, :1], wide, points=4000)
