"""Every text that stops a user also says what to do."""

import pytest
import torch
from torch import nn

from inscape._core import UnsupportedModelError, checks
from inscape.functional.jacobians import probe
from inscape.smoothness import (
    gradient_norm,
    gradient_norm_penalty,
    gradient_path_length_penalty,
    path_length,
    path_length_penalty,
)

X = torch.rand(4, 3, generator=torch.Generator().manual_seed(0))


def net(*layers):
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(3, 1)).eval()


@pytest.mark.parametrize(
    ("x", "error", "text"),
    [
        ([[1.0]], TypeError, "x must be a torch.Tensor, found list: convert it with torch.as_"),
        (
            torch.ones(2, 3, dtype=torch.int64),
            TypeError,
            "floating-point numbers, found torch.int64",
        ),
        (
            torch.rand(3),
            ValueError,
            r"batch of shape \(n, ...\), found shape \(3,\): use x\[:, None",
        ),
        (torch.rand(0, 3), ValueError, r"at least one point, found shape \(0, 3\): pass some data"),
        (torch.tensor([[1.0, float("nan")], [1, 2]]), ValueError, "NaN or Inf in 1 of 2 points"),
        (
            torch.tensor([[1.0, float("inf")]]),
            ValueError,
            "x must be finite, found NaN or Inf in 1",
        ),
    ],
)
def test_bad_points(unchecked, x, error, text):
    with pytest.raises(error, match=text):
        gradient_norm(torch.sin, x)


def test_large_finite_points_are_no_infinity():
    assert checks.points(torch.full((4, 2), 3e38)) is None  # though their sum is


@pytest.mark.parametrize(
    ("y", "error", "text"),
    [
        ([1, 2], TypeError, "y must be a torch.Tensor, found list"),
        (torch.rand(3), ValueError, r"one label for each of the 4 points, found shape \(3,\)"),
        (torch.full((4, 1), float("nan")), ValueError, "y must be finite, found NaN or Inf"),
    ],
)
def test_bad_labels(unchecked, y, error, text):
    with pytest.raises(error, match=text):
        checks.labels(y, X)


def test_training_mode_names_the_module():
    model = net(nn.Dropout())
    model[1].train()
    with pytest.raises(
        ValueError, match=r"found module '1' \(Dropout\) in training mode: call mod"
    ):
        probe(model, X)


def test_nan_weights_are_named():
    model = net()
    with torch.no_grad():
        model[1].bias.fill_(float("nan"))
    with pytest.raises(
        ValueError, match=r"found NaN or Inf in '1.bias': load an earlier checkpoint"
    ):
        probe(model, X)


def test_other_device_is_named():
    with pytest.raises(
        ValueError, match=r"found '1.weight' on cpu and x on meta: use x.to\('cpu'\)"
    ):
        checks.weights(net(), X.to("meta"))


def test_other_precision_is_named():
    with pytest.raises(TypeError, match=r"'1.weight' in torch.float32 and x in torch.float64"):
        probe(net(), X.double())


def test_model_that_raises_is_quoted():
    with pytest.raises(
        UnsupportedModelError, match=r"batch of shape \(3, 5\), but it raised Runtime"
    ):
        probe(net(), torch.rand(2, 5))


def test_model_that_raises_without_text_is_quoted():
    def refuse(x):
        raise KeyError

    with pytest.raises(UnsupportedModelError, match="raised KeyError: no text; reshape the data"):
        probe(refuse, X)


def test_tuple_is_refused(unchecked):
    with pytest.raises(UnsupportedModelError, match="one tensor, found tuple: say which"):
        probe(lambda x: (x, x), X)


def test_lost_batch_dimension_is_refused():
    with pytest.raises(
        UnsupportedModelError, match=r"found shape \(3,\) for 2 inputs: keep the batch"
    ):
        probe(lambda x: x.sum(0), X)


def test_class_numbers_are_refused():
    with pytest.raises(UnsupportedModelError, match=r"found torch.int64: measure scores or logits"):
        probe(lambda x: x.argmax(1), X)


def test_infinite_outputs_are_refused():
    with pytest.raises(
        ValueError, match="must return finite numbers, found NaN or Inf: look at the"
    ):
        probe(lambda x: x / 0, X)


@pytest.mark.parametrize(
    "f", [lambda x: x - x.mean(0), lambda x: x.cumsum(0), lambda x: 1e-4 * (x - x.mean(0))]
)
def test_rows_that_see_each_other_are_refused(f):
    with pytest.raises(ValueError, match="must act on each sample independently"):
        probe(f, X)


def test_word_outside_the_list_is_refused():
    with pytest.raises(
        ValueError, match="mode must be one of 'a', 'b', found 'c': choose one of th"
    ):
        checks.one_of(("a", "b"), mode="c")


def test_nan_setting_is_refused():
    with pytest.raises(ValueError, match="steps must be at least 1, found nan: raise steps"):
        checks.at_least(1, steps=float("nan"))


def test_batch_norm_without_running_statistics_is_refused():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=False)).eval()
    with pytest.raises(ValueError, match="must act on each sample independently"):
        probe(model, X)


def test_model_that_draws_random_numbers_is_refused():
    with pytest.raises(
        ValueError, match="two calls with the same batch differ: remove random draws"
    ):
        probe(lambda x: x + torch.rand_like(x), X)


def test_infinite_slope_is_refused_and_counted():
    x = torch.cat([torch.ones(3, 1), torch.zeros(3, 1)])
    with pytest.raises(ValueError, match="found NaN or Inf at 3 of 6 points: leave those points"):
        gradient_norm(lambda z: z.abs().sqrt(), x)


def test_pole_between_the_points_is_refused():
    ends = torch.tensor([[0.0], [1.0]])
    with pytest.raises(ValueError, match=r"found NaN or Inf at \d+ of 8 pairs"):
        path_length(lambda z: 1 / (z - 0.5).abs().sqrt(), ends, pairs=8, knots=3)


@pytest.mark.parametrize(
    "penalty",
    [gradient_norm_penalty, path_length_penalty, gradient_path_length_penalty],
    ids=lambda penalty: penalty.__name__,
)
@pytest.mark.parametrize("x", [torch.full((4, 3), float("nan")), torch.ones(4, 3).long()])
def test_penalties_check_their_batch(unchecked, penalty, x):
    with pytest.raises((ValueError, TypeError), match="x must"):
        penalty(net(), x)


@pytest.mark.parametrize("penalty", [path_length_penalty, gradient_path_length_penalty])
def test_penalties_need_two_knots(penalty):
    with pytest.raises(ValueError, match="knots must be at least 2, found 1"):
        penalty(net(), X, knots=1)


@pytest.mark.parametrize("infinity", [float("-inf"), float("inf")])
def test_masks_of_infinities_are_no_broken_weights(infinity):
    model = net()
    above = torch.ones(3, 3).triu(1).bool()
    model.register_buffer("mask", torch.zeros(3, 3).masked_fill(above, infinity))
    assert model.mask.isinf().any()
    model.forward = lambda x: model[1](((x[:, None] + model.mask).clamp(-1, 1)).flatten(1)[:, :3])
    assert gradient_norm(model, X).norms.isfinite().all()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_statistics_that_overflowed_are_refused(value):
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1)).eval()
    model[0].running_var[1] = value
    with pytest.raises(ValueError, match=r"found NaN or Inf in '0\.running_var'"):
        gradient_norm(model, X)
