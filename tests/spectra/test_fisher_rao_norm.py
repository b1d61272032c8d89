import itertools
import math

import pytest
import torch
from scipy import stats
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from cases import CASES, dense, points
from inscape._core import NotApplicable
from inscape.spectra import fisher_rao_norm


def half_square(f, y):
    return (f - y).square().sum() / 2


def cross_entropy(f, y):
    return functional.cross_entropy(f, y)


def by_gradients(model, x, y, loss):
    """The inner product of parameters and gradient, point by point."""
    squares = []
    for point, label in zip(x, y, strict=True):
        gradients = torch.autograd.grad(loss(model(point[None]), label[None]), model.parameters())
        inner = [(p * g).sum() for p, g in zip(model.parameters(), gradients, strict=True)]
        squares.append(sum(inner).detach().square())
    return torch.stack(squares)


@pytest.mark.parametrize("case", CASES)
def test_each_point_equals_its_own_gradient(case):
    model, x, y = CASES[case]()
    result = fisher_rao_norm(model, x, y)
    assert result.loss == "squared_error"
    assert_close(result.squares, by_gradients(model, x, y, half_square))


def test_classes_take_the_cross_entropy():
    model, x = dense(2, 5, 4), points(9, 2)
    y = torch.arange(9) % 4
    result = fisher_rao_norm(model, x, y)
    assert result.loss == "cross_entropy"
    assert_close(result.squares, by_gradients(model, x, y, cross_entropy))
    soft = 0.9 * functional.one_hot(y).double() + 0.025
    smooth = fisher_rao_norm(model, x, soft, loss="cross_entropy")
    assert_close(smooth.squares, by_gradients(model, x, soft, cross_entropy))


def test_one_logit_takes_the_logistic_loss():
    model, x = dense(2, 5, 1), points(9, 2)
    y = torch.arange(9) % 2
    result = fisher_rao_norm(model, x, y)

    def logistic(f, y):
        return functional.binary_cross_entropy_with_logits(f[:, 0], y.double())

    assert result.loss == "bce_logits"
    assert_close(result.squares, by_gradients(model, x, y, logistic))


def test_classes_count_as_one_hot_rows_for_the_squared_error():
    model, x = dense(2, 5, 3), points(6, 2)
    y = torch.arange(6) % 3
    rows = functional.one_hot(y).double()
    result = fisher_rao_norm(model, x, y, loss="squared_error")
    assert_close(result.squares, fisher_rao_norm(model, x, rows).squares)


def without_biases(*widths):
    layers = []
    for k, (d, c) in enumerate(itertools.pairwise(widths)):
        layer = nn.Linear(d, c, bias=False, dtype=torch.float64)
        draw = torch.Generator().manual_seed(k)
        layer.weight.data = torch.randn(c, d, generator=draw, dtype=torch.float64)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval()


@pytest.mark.parametrize("widths", [(3, 2), (3, 5, 2), (3, 5, 4, 2)])
def test_without_biases_it_has_the_closed_form(widths):
    model, x = without_biases(*widths), points(8, 3)
    y, layers = points(8, 2, seed=3), len(widths) - 1
    f = model(x).detach()
    expected = layers**2 * ((f - y) * f).sum(1).square()
    assert_close(fisher_rao_norm(model, x, y).squares, expected)
    proper = fisher_rao_norm(model, x, y, labels="model")
    assert_close(proper.squares, layers**2 * f.square().sum(1))


def test_labels_of_the_model_are_an_expectation_over_its_predictions():
    model, x = dense(2, 5, 3), points(7, 2)
    shares = model(x).softmax(1).detach()
    expected = sum(
        shares[:, k] * by_gradients(model, x, torch.full((7,), k), cross_entropy) for k in range(3)
    )
    y = torch.zeros(7, dtype=torch.int64)
    assert_close(fisher_rao_norm(model, x, y, labels="model").squares, expected)
    one = dense(2, 5, 1)
    yes, no = (fisher_rao_norm(one, x, torch.full((7,), k)).squares for k in (1, 0))
    p = one(x)[:, 0].sigmoid().detach()
    proper = fisher_rao_norm(one, x, y, labels="model").squares
    assert_close(proper, p * yes + (1 - p) * no)


def test_rescaling_and_permuting_relu_units_changes_nothing():
    model, x, y = CASES["two-layer, three outputs"]()
    before = fisher_rao_norm(model, x, y).squares
    factor = torch.linspace(0.2, 5, 6, dtype=torch.float64)
    model[0].weight.data *= factor[:, None]
    model[0].bias.data *= factor
    model[2].weight.data /= factor
    assert_close(fisher_rao_norm(model, x, y).squares, before)


def test_summary_is_the_root_of_the_mean_and_of_its_interval():
    model, x, y = CASES["two-layer"]()
    result = fisher_rao_norm(model, x, y)
    mean, error = result.squares.mean(), result.squares.std() / 12**0.5
    summary = result.summary()
    assert summary.value == pytest.approx(float(mean.sqrt()))
    half = stats.t.ppf(0.975, 11) * float(error / mean)
    skewness = float(stats.skew(result.squares.numpy(), bias=False))
    longer = 1 + 1.5 * max(skewness, 0) / 12**0.5  # few points weigh most
    assert summary.high == pytest.approx(float(mean.sqrt()) * math.exp(longer * half / 2))
    assert summary.low == pytest.approx(float(mean.sqrt()) * math.exp(-half / 2))
    assert summary.basis == "12 points, squared error"
    assert fisher_rao_norm(model, x[:1], y[:1]).summary().low is None


def test_shared_weights_count_once_in_all_their_places():
    layer = nn.Linear(3, 3, bias=False, dtype=torch.float64)
    model, x, y = nn.Sequential(layer, layer).eval(), points(4, 3), points(4, 3, seed=2)
    f = model(x).detach()
    assert_close(fisher_rao_norm(model, x, y).squares, 4 * ((f - y) * f).sum(1).square())


def test_points_are_a_seeded_draw_and_chunks_change_nothing():
    model, x, y = CASES["two-layer"]()
    every = fisher_rao_norm(model, x, y).squares
    some = fisher_rao_norm(model, x, y, points=5, seed=2).squares
    order = torch.randperm(12, generator=torch.Generator().manual_seed(2))[:5]
    assert_close(some, every[order])
    assert_close(fisher_rao_norm(model, x, y, memory=1).squares, every)


def test_frozen_parameters_count_and_stay_frozen():
    model, x, y = CASES["two-layer"]()
    every = fisher_rao_norm(model, x, y).squares
    model.requires_grad_(requires_grad=False)
    assert_close(fisher_rao_norm(model, x, y).squares, every)
    assert not any(p.requires_grad for p in model.parameters())


def test_convolutions_and_batch_norm_are_welcome():
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    )
    model = model.double().eval()
    x, y = points(4, 1, 6, 6), points(4, 12)
    assert_close(fisher_rao_norm(model, x, y).squares, by_gradients(model, x, y, half_square))


def test_no_parameters_no_norm():
    result = fisher_rao_norm(nn.Tanh().eval(), points(3, 1), points(3, 1))
    assert isinstance(result, NotApplicable)
    assert result.reason == "the model has no parameters"


@pytest.mark.parametrize(
    ("y", "settings", "text"),
    [
        (torch.tensor([0, 3]), {}, "class numbers must lie between 0 and 2, .*found 0 to 3 in sha"),
        (points(2, 2), {}, r"one value for each of the 3 outputs, found shape \(2, 2\): reshape"),
        (points(2, 3), {"loss": "bce_logits"}, "'bce_logits' needs one output, found 3: use 'cro"),
        (points(2, 3), {"loss": "hinge"}, "loss must be one of 'auto', .*, found 'hinge': choose"),
        (points(3, 3), {}, "y must hold one label for each of the 2 points"),
    ],
)
def test_labels_and_losses_must_fit(y, settings, text):
    with pytest.raises(ValueError, match=text):
        fisher_rao_norm(dense(2, 4, 3), points(2, 2), y, **settings)


def test_attention_has_second_derivatives():
    """The kernels of attention that are taken otherwise have none."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.Sequential(nn.Unflatten(1, (4, 8)), layer, nn.Flatten(), nn.Linear(32, 3))
    model = model.double().eval()
    x, y = torch.randn(12, 32, dtype=torch.float64), torch.arange(12) % 3
    value = fisher_rao_norm(model, x, y).summary().value

    def loss(grow):
        grown = {name: grow * weight for name, weight in model.named_parameters()}
        return nn.functional.cross_entropy(
            torch.func.functional_call(model, grown, (x,)), y, reduction="none"
        )

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), torch.no_grad():
        h = 1e-5
        slopes = (loss(1 + h) - loss(1 - h)) / (2 * h)
    assert value == pytest.approx(float(slopes.square().mean().sqrt()), rel=1e-6)


class RadialBasis(nn.Module):
    """Distances to centres, which ``torch.cdist`` derives once and not twice."""

    def __init__(self):
        super().__init__()
        self.centres, self.head = nn.Parameter(points(5, 3)), nn.Linear(5, 2).double()

    def forward(self, x):
        return self.head(torch.exp(-torch.cdist(x, self.centres).square()))


def test_operations_without_second_derivatives_take_a_pass_for_each_output():
    model, x, y = RadialBasis().eval(), points(6, 3, seed=1), points(6, 2, seed=2)
    assert_close(fisher_rao_norm(model, x, y).squares, by_gradients(model, x, y, half_square))
