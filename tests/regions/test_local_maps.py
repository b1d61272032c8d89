"""Local maps against closed forms, autograd, the network itself and the paper's worked example."""

import sys

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.errors import BudgetError, UnsupportedModelError
from inscape.regions.local_maps import local_maps


def chain(*layers, act=nn.ReLU):
    """Return a network from (weight, bias) pairs."""
    parts = []
    for weight, bias in layers:
        weight = torch.tensor(weight, dtype=torch.float64)
        linear = nn.Linear(weight.shape[1], weight.shape[0]).double()
        with torch.no_grad():
            linear.weight.copy_(weight)
            linear.bias.copy_(torch.tensor(bias, dtype=torch.float64))
        parts += [linear, act()]
    return nn.Sequential(*parts[:-1]).eval()


def test_figure_5_1_as_corrected_s11():
    # No point has the printed pattern 101, 010: the third unit, 8 h1 + 7 h2 + 8, is always on.
    # Biases of the units that it masks do not count, so they are lowered until it has points.
    masked = chain(
        ([[3, 0, 4], [5, 9, 1], [6, 1, 2]], [7, -1000, 9]),
        ([[2, 9, 5], [1, 3, 3], [8, 7, 0]], [-10000, 7, -10000]),
        ([[7, 9, 6], [4, 0, 9], [7, 3, 7]], [5, 5, 2]),
    )
    result = local_maps(masked, torch.zeros(1, 3, dtype=torch.float64))
    expected = torch.tensor([[189.0, 27, 90], [0, 0, 0], [63, 9, 30]], dtype=torch.float64)
    assert_close(result.jacobians[0], expected)
    assert_close(result.intercepts[0], torch.tensor([374.0, 5, 125], dtype=torch.float64))
    assert result.patterns.tolist() == [[1, 0, 1, 0, 1, 0]]


def test_maps_are_the_network_around_each_point():
    net, x = dense(5, 12, 9, 3), points(40, 5)
    result = local_maps(net, x)
    near = x + 1e-7 * points(40, 5, seed=3)
    predicted = result.values + torch.einsum("ncd,nd->nc", result.jacobians, near - x)
    assert_close(predicted, net(near).detach(), rtol=1e-12, atol=1e-12)
    again = torch.einsum("ncd,nd->nc", result.jacobians, near) + result.intercepts
    assert_close(again, net(near).detach(), rtol=1e-12, atol=1e-12)


def test_jacobians_are_those_of_autograd_for_any_module_and_chunk():
    net, x = dense(3, 7, 2, act=nn.Tanh), points(9, 3)
    result = local_maps(net, x, memory=1)
    for k in range(9):
        assert_close(result.jacobians[k], torch.autograd.functional.jacobian(net, x[k]))
    assert result.patterns is None
    assert "tanh" in result.note
    assert result.summary().value == 9


def test_patterns_by_hand_and_their_hamming_distances():
    net = chain(([[1.0], [1.0], [-1.0]], [0.0, -2.0, 1.0]), ([[1.0, 1.0, 1.0]], [0.0]))
    x = torch.tensor([[-1.0], [0.5], [3.0], [-5.0]], dtype=torch.float64)
    result = local_maps(net, x)
    assert result.patterns.tolist() == [[0, 0, 1], [1, 0, 1], [1, 1, 0], [0, 0, 1]]
    assert result.hamming().tolist() == [[0, 1, 3, 0], [1, 0, 2, 1], [3, 2, 0, 3], [0, 1, 3, 0]]
    assert result.labels.tolist() == [0, 1, 2, 0]
    assert result.units == (3,)
    assert str(result) == "LocalMaps(3 (exact); different patterns at 4 points)"
    assert (
        local_maps(torch.relu, points(9, 1), points=4)
        .summary()
        .basis.endswith("at 4 points, drawn from 9")
    )


def test_hamming_counts_windows_that_choose_otherwise():
    pool = nn.Sequential(nn.MaxPool1d(3)).eval()
    x = torch.tensor([[[1.0, 2, 3, 1, 2, 3]], [[3.0, 2, 1, 1, 2, 3]]], dtype=torch.float64)
    result = local_maps(pool, x)
    assert result.patterns.tolist() == [[2, 2], [0, 2]]
    assert result.hamming().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("f", "at", "slope"),
    [
        (nn.ReLU(), 0.0, 0.0),
        (nn.LeakyReLU(0.3), 0.0, 0.3),
        (torch.abs, 0.0, -1.0),  # autograd takes 0
        (nn.Hardtanh(), 1.0, 1.0),  # autograd takes 0
        (nn.Hardtanh(), -1.0, 0.0),
        (lambda x: torch.maximum(x, 3 * x), 0.0, 1.0),  # autograd takes the mean
    ],
)
def test_on_a_kink_units_are_off_and_the_first_is_largest(f, at, slope):
    f = f.eval() if isinstance(f, nn.Module) else f
    result = local_maps(f, torch.tensor([[at], [at + 0.25]], dtype=torch.float64))
    assert result.on_kink.tolist() == [True, False]
    assert result.jacobians[0].item() == pytest.approx(slope)


def test_units_that_are_off_in_one_window_are_no_kink():
    net = nn.Sequential(nn.ReLU(), nn.MaxPool1d(2)).eval()
    x = torch.tensor([[[-1.0, -2.0, 3.0, 1.0]]], dtype=torch.float64)
    assert not local_maps(net, x).on_kink.any()
    assert local_maps(net, torch.tensor([[[2.0, 2.0, 3.0, 1.0]]]).double()).on_kink.all()


def test_windows_of_more_entries_than_a_byte_counts_keep_their_patterns():
    x = torch.zeros(3, 1, 17, 17, dtype=torch.float64)
    x.flatten(1)[torch.arange(3), torch.tensor([0, 256, 288])] = 1.0
    result = local_maps(nn.Sequential(nn.MaxPool2d(17), nn.Flatten()).eval(), x)
    assert result.patterns.flatten().tolist() == [0, 256, 288]
    assert result.labels.tolist() == [0, 1, 2]
    assert result.hamming().tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_small_units_beside_large_ones_lie_on_their_kinks_too():
    net = chain(([[1e7, 0.0], [1e-8, 0.0]], [0.0, -5e-9]), ([[1e-7, 1e8]], [0.0]))
    x = torch.tensor([[0.5, 0.0], [0.2, 0.0], [0.0, 1.0]], dtype=torch.float64)
    result = local_maps(net, x)
    assert result.on_kink.tolist() == [True, False, True]
    assert_close(result.jacobians[:, 0, 0], torch.tensor([1.0, 1.0, 0.0]).double())


def test_images_have_the_shape_of_the_input():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))
    x = points(4, 3, 8, 8)
    result = local_maps(net.double().eval(), x)
    assert result.images.shape == (4, 2, 3, 8, 8)
    total = (result.images * x[:, None]).flatten(2).sum(2) + result.intercepts
    assert_close(total, net(x).detach())
    flat = local_maps(dense(6, 4, 1), points(3, 6), image=(2, 3))
    assert flat.images.shape == (3, 1, 2, 3)


def test_a_float32_model_is_read_in_float64_and_said():
    net = dense(3, 6, 2).float()
    result = local_maps(net, points(5, 3).float())
    assert result.converted == "float32"
    assert result.jacobians.dtype == torch.float64
    assert next(net.parameters()).dtype == torch.float32


def test_equal_maps_of_a_module_without_patterns_have_one_label():
    def stairs(x):
        return x * (1 + (x.detach() > 0).double() + torch.exp(-(x.detach() ** 2) * 1e9))

    x = torch.tensor([[-1.0], [-2.0], [1.0], [2.0], [-3.0]], dtype=torch.float64)
    assert local_maps(stairs, x, patterns=False).labels.tolist() == [0, 0, 1, 1, 0]


def test_points_are_drawn_without_repeating():
    result = local_maps(dense(2, 4, 1), points(50, 2), points=10, seed=3)
    assert len(result.points.unique(dim=0)) == 10
    assert len(list(result.rows())) == 10


def test_errors_say_what_to_do(monkeypatch):
    net, x = dense(2, 4, 1), points(5, 2)
    with pytest.raises(ValueError, match=r"image must have 2 pixels .* found \(2, 2\) with 4"):
        local_maps(net, x, image=(2, 2))
    with pytest.raises(ValueError, match=r"need activation patterns, found none \(not asked for\)"):
        local_maps(net, x, patterns=False).hamming()
    with pytest.raises(UnsupportedModelError, match="must let gradients reach its input"):
        local_maps(lambda x: x.detach() * 2, x)
    with pytest.raises(ValueError, match="points must be at least 1, found 0"):
        local_maps(net, x, points=0)
    monkeypatch.setattr(sys.modules["inscape.regions.local_maps"], "LARGEST", 60)
    with pytest.raises(BudgetError, match=r"5 points with 1 outputs and 2 inputs .* fewer points"):
        local_maps(net, x)
