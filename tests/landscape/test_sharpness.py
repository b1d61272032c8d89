import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.landscape import sharpness
from oracles.curvature import hessian


def case(act=nn.ReLU):
    model, x = dense(3, 6, 5, 2, act=act), points(15, 3)
    return model, x, points(15, 2, seed=5)


def test_three_forms_are_those_of_the_whole_matrix():
    model, x, y = case()
    matrix = hessian(model, x, y, "mse")
    sizes = torch.cat([p.detach().abs().flatten() for p in model.parameters()])
    norms = torch.cat(
        [
            p.detach().abs()
            if p.ndim == 1
            else p.detach().norm(dim=1).repeat_interleave(p.shape[1])
            for p in model.parameters()
        ]
    )
    expected = [
        torch.linalg.eigvalsh(scale[:, None] * matrix * scale)[-1]
        for scale in (torch.ones_like(sizes), sizes, norms)
    ]
    result = sharpness(model, x, y, tolerance=1e-8)
    assert_close(result.values, torch.stack(expected))


def test_rescaled_units_change_the_plain_form_and_not_the_adaptive_one():
    model, x, y = case()
    scaled = copy.deepcopy(model)
    with torch.no_grad():
        scaled[0].weight *= 4
        scaled[0].bias *= 4
        scaled[2].weight /= 4
    ours, other = sharpness(model, x, y, tolerance=1e-8), sharpness(scaled, x, y, tolerance=1e-8)
    assert_close(ours.rescaled, other.values)
    assert_close(ours.values[1], other.values[1])
    assert not torch.isclose(ours.values[0], other.values[0], rtol=0.1)


def test_order_of_units_does_not_matter():
    model, x, y = case()
    other, order = copy.deepcopy(model), torch.tensor([3, 1, 0, 5, 4, 2])
    with torch.no_grad():
        other[0].weight.copy_(model[0].weight[order])
        other[0].bias.copy_(model[0].bias[order])
        other[2].weight.copy_(model[2].weight[:, order])
    first, second = (sharpness(m, x, y, tolerance=1e-8) for m in (model, other))
    assert_close(first.values, second.values)


def test_network_without_relus_has_no_rescaled_twin():
    result = sharpness(*case(nn.Tanh))
    assert result.rescaled is None
    assert [row["rescaled"] for row in result.rows()] == [None] * 3
    assert sharpness(nn.ReLU().eval(), points(2, 2), points(2, 2)).status.startswith("not applic")


def test_bad_settings_are_named(unchecked):
    with pytest.raises(ValueError, match="products must be at least 1, found 0"):
        sharpness(*case(), products=0)


def test_curvature_whose_square_overflows_in_float32_is_exact_all_the_same():
    model = nn.Linear(1, 3).eval()
    x, y = torch.tensor([[2e15], [-2e17], [3e16], [1e17]]), points(4, 3, seed=5).float()
    result = sharpness(model, x, y)
    # the Hessian of each output is (2/3) mean of (x, 1)(x, 1)^T
    inputs = torch.cat([x.double(), torch.ones(4, 1, dtype=torch.float64)], 1)
    expected = torch.linalg.eigvalsh(2 / 3 * inputs.T @ inputs / 4)[-1]
    assert_close(result.values[0], expected, rtol=1e-5, atol=0.0)
