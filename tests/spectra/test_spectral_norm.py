import copy
import math
import sys
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import CASES, dense, points
from inscape._core import NotApplicable
from inscape.spectra import largest_singular_value, spectral_norm


def largest(matrix):
    return torch.linalg.matrix_norm(matrix.detach().double(), 2)


def jacobian(f, x):
    return torch.func.jacrev(lambda x: f(x).flatten())(x).reshape(-1, x.numel())


@pytest.mark.parametrize("case", CASES)
def test_dense_layers_by_their_singular_values(case):
    f, x, _ = CASES[case]()
    result = spectral_norm(f, x)
    expected = torch.stack([largest(layer.weight) for layer in f[::2]])
    assert_close(result.norms, expected)
    assert result.layers == tuple(str(2 * k) for k in range(len(expected)))
    assert result.summary().value == pytest.approx(math.prod(expected.tolist()))
    assert result.summary().kind == "exact"


@pytest.mark.parametrize("case", CASES)
def test_no_slope_anywhere_is_steeper(case):
    f, x, _ = CASES[case]()
    bound = spectral_norm(f, x).summary().value
    steepest = max(float(largest(jacobian(f, point[None]))) for point in 3 * x)
    assert 0 < steepest <= bound


CONV = {
    "zero padding": nn.Conv2d(2, 3, 3, padding=1),
    "stride and dilation": nn.Conv2d(2, 3, 3, stride=2, dilation=2),
    "circular padding": nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"),
    "groups": nn.Conv2d(2, 4, 3, groups=2, bias=False),
}


@pytest.mark.parametrize("name", CONV)
def test_convolution_is_the_operator_on_its_real_input(name):
    conv = copy.deepcopy(CONV[name]).double().eval()
    x = points(1, 2, 7, 6)
    assert_close(spectral_norm(conv, x).norms[0], largest(jacobian(conv, x)))


def test_circular_convolution_has_the_closed_form_of_its_fourier_transform():
    conv = nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular").double().eval()
    symbols = torch.fft.fft2(conv.weight.detach(), (8, 8)).permute(2, 3, 0, 1)
    expected = torch.linalg.matrix_norm(symbols, 2).max()
    assert_close(spectral_norm(conv, points(1, 2, 8, 8)).norms[0], expected)


def normed():
    f = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2))
    f = nn.Sequential(*f, nn.Conv2d(3, 2, 2), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten())
    f = nn.Sequential(*f, nn.Dropout(), nn.Linear(2, 4)).double().eval()
    f[1].running_var.copy_(torch.tensor([4.0, 9.0, 0.25]))
    f[1].running_mean += 100
    f[1].weight.data += 0.5
    return f


def test_batch_norm_and_pooling_belong_to_the_layer_beside_them():
    f, x = normed(), points(1, 1, 8, 8)
    result = spectral_norm(f, x)
    parts = [(f[:2], x), (f[4:5], points(1, 3, 3, 3)), (f[6:], points(1, 2, 2, 2))]
    assert_close(result.norms, torch.stack([largest(jacobian(*part)) for part in parts]))
    assert result.layers == ("0 + 1", "4", "9")
    assert float(largest(jacobian(f, x))) <= result.summary().value


def test_large_maps_are_iterated_to_the_same_number(monkeypatch):
    f, x = normed(), points(1, 1, 8, 8)
    written_out = spectral_norm(f, x)
    monkeypatch.setattr(sys.modules[spectral_norm.__module__], "SMALL", 0)
    iterated = spectral_norm(f, x)
    assert iterated.converged
    assert_close(iterated.norms, written_out.norms)
    g, x, _ = CASES["deep relu"]()
    assert_close(
        spectral_norm(g, x).norms, torch.stack([largest(layer.weight) for layer in g[::2]])
    )


def test_wide_layers_are_iterated_in_single_precision():
    f = dense(600, 700, seed=3).float()
    result = spectral_norm(f, torch.zeros(1, 600))
    # A residual of 30 roundings of float32.
    assert_close(result.norms[0], largest(f[0].weight), rtol=4e-6, atol=0)


@pytest.mark.parametrize("shape", [(7, 7), (9, 5), (5, 9), (6, 1), (1, 6)])
def test_iteration_finds_what_a_decomposition_finds(shape):
    matrix = points(*shape, seed=sum(shape))
    value, converged = largest_singular_value.of_operator(
        lambda v: matrix @ v, lambda u: matrix.T @ u, matrix[0]
    )
    assert converged
    assert_close(value, float(largest(matrix)))
    assert_close(largest_singular_value.of_matrix(matrix), float(largest(matrix)))


def test_iteration_says_when_it_did_not_converge():
    matrix = points(200, 200)
    ways = (lambda v: matrix @ v, lambda u: matrix.T @ u, matrix[0])
    value, converged = largest_singular_value.of_operator(*ways, steps=5)
    assert not converged
    assert value < float(largest(matrix))
    assert largest_singular_value.of_operator(*ways)[1]


def test_zero_maps_have_norm_zero():
    matrix = torch.zeros(4, 3, dtype=torch.float64)
    ways = (lambda v: matrix @ v, lambda u: matrix.T @ u, matrix[0])
    assert largest_singular_value.of_operator(*ways) == (0.0, True)
    f = dense(2, 3, 1)
    f[2].weight.data.zero_()
    assert spectral_norm(f, points(1, 2)).summary().value == 0.0


def test_unconverged_product_is_a_lower_bound(monkeypatch):
    monkeypatch.setattr(sys.modules[spectral_norm.__module__], "SMALL", 0)
    monkeypatch.setattr(
        largest_singular_value, "of_operator", partial(largest_singular_value.of_operator, steps=2)
    )
    f = dense(30, 40, 1)
    result = spectral_norm(f, points(1, 30))
    assert result.summary().kind == "lower bound"
    assert result.summary().value < float(largest(f[0].weight) * largest(f[2].weight))


class Scaled(nn.Module):
    """Divides its input by 255, has two layers with nothing between them, and a buffer."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)
        self.register_buffer("mean", torch.ones(3))

    def forward(self, x):
        return self.b(self.a(x.flatten(1) / 255 - self.mean))


def test_what_is_affine_between_activations_is_one_map():
    f = Scaled().double().eval()
    result = spectral_norm(f, points(1, 3, 1))
    assert_close(result.norms, largest(f.b.weight @ f.a.weight / 255)[None])
    assert result.layers == ("mean + a + b",) or result.layers == ("a + b",)


def test_residual_around_a_linear_layer_is_still_affine():
    layer = nn.Linear(3, 3).double()

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return torch.relu(x + self.layer(x))

    expected = largest(torch.eye(3) + layer.weight)
    assert_close(spectral_norm(Residual().eval(), points(1, 3)).norms[0], expected)


def test_permuting_units_changes_nothing_and_rescaling_does():
    f, x, _ = CASES["deep relu"]()
    before = spectral_norm(f, x).summary().value
    f[0].weight.data, f[2].weight.data = f[0].weight.flip(0).data, f[2].weight.flip(1).data
    assert spectral_norm(f, x).summary().value == pytest.approx(before)
    f[0].weight.data[0] *= 4
    f[2].weight.data[:, 0] /= 4
    assert spectral_norm(f, x).summary().value > 1.01 * before


@pytest.mark.parametrize(
    "between",
    [
        nn.ReLU(), nn.ReLU6(), nn.Tanh(), nn.Sigmoid(), nn.Softplus(), nn.LeakyReLU(0.3), nn.ELU(),
        nn.CELU(), nn.Hardtanh(), nn.Hardsigmoid(), nn.LogSigmoid(),
        nn.Softmax(1), nn.Identity(),
    ],
    ids=lambda module: type(module).__name__,
)  # fmt: skip
def test_activations_that_stretch_nothing(between):
    f = nn.Sequential(nn.Linear(3, 5), between, nn.Linear(5, 2)).double().eval()
    found = spectral_norm(f, points(1, 3))
    z = torch.linspace(-6, 6, 200, dtype=torch.float64)[:, None] * points(1, 5, seed=4)
    jumps = between(z).diff(dim=0).norm(dim=1) / z.diff(dim=0).norm(dim=1)
    assert float(jumps.max()) <= 1 + 1e-12
    whole = largest(f[2].weight @ f[0].weight)
    single = (
        [whole]
        if isinstance(between, nn.Identity)
        else [largest(f[0].weight), largest(f[2].weight)]
    )
    assert_close(found.norms, torch.stack(single))


class Skip(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)) + x)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Skip(), "it is no chain of layers: several branches meet in 'add'"),
        (nn.Sequential(nn.Linear(3, 2), nn.GELU()), "'gelu' in module '1' is neither affine nor"),
        (nn.Sequential(nn.Linear(3, 2), nn.LeakyReLU(3.0)), "'leaky_relu' in module '1' is neith"),
        (nn.Sequential(nn.Linear(3, 2), nn.ELU(2.0)), "'elu' in module '1' is neither affine nor"),
        (nn.MaxPool1d(2, 1), "is neither affine nor known to be 1-Lipschitz"),
    ],
)
def test_other_networks_are_answered_with_the_reason(model, reason):
    x = points(2, 1, 3) if isinstance(model, nn.MaxPool1d) else points(2, 3)
    result = spectral_norm(model.double().eval(), x)
    assert isinstance(result, NotApplicable)
    start = "the model is not a chain of layers and 1-Lipschitz activations: "
    assert result.reason.startswith(start)
    assert reason in result.reason


def test_output_that_does_not_see_the_input_has_no_bound_to_give():
    class Constant(nn.Module):
        def forward(self, x):
            return torch.zeros_like(x)

    status = spectral_norm(Constant().eval(), points(2, 3)).status
    assert "its output does not depend on its input" in status


class Columns(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)

    def forward(self, x):
        return (self.a.weight @ x.T).T


def test_batch_that_moves_away_is_answered_with_the_reason():
    result = spectral_norm(Columns().double().eval(), points(2, 3))
    assert "moves the batch from the first dimension" in result.status
