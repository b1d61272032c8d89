import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.models import mlp, two_layer


def test_it_is_a_plain_sequential_of_the_widths():
    model = mlp(3, 5, 4, 2, activation="tanh")
    assert [type(part) for part in model] == [nn.Linear, nn.Tanh, nn.Linear, nn.Tanh, nn.Linear]
    assert [p.shape for p in model.parameters()] == [(5, 3), (5,), (4, 5), (4,), (2, 4), (2,)]
    assert not any(part.training for part in model.modules())


def test_it_computes_what_its_formula_says():
    model = mlp(3, 5, 2, dtype=torch.float64)
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)
    w1, b1, w2, b2 = model.parameters()
    assert_close(model(x), (x @ w1.T + b1).clamp(min=0) @ w2.T + b2)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("relu", torch.relu),
        ("tanh", torch.tanh),
        ("gelu", nn.functional.gelu),
        ("leaky_relu", nn.functional.leaky_relu),
        ("identity", lambda x: x),
    ],
)
def test_each_activation_has_its_name(name, function):
    x = torch.linspace(-2, 2, 5)
    assert_close(mlp(1, 1, 1, activation=name)[1](x), function(x))


def test_without_bias_zero_goes_to_zero():
    model = mlp(3, 5, 2, bias=False)
    assert all(layer.bias is None for layer in model if isinstance(layer, nn.Linear))
    assert not model(torch.zeros(1, 3)).any()


def test_dtype_is_the_default_or_as_asked():
    assert mlp(1, 1)[0].weight.dtype == torch.get_default_dtype()
    assert mlp(1, 1, dtype=torch.float64)[0].weight.dtype == torch.float64


def test_same_seed_same_weights_and_the_world_unchanged():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    one, same, other = mlp(3, 8, 1, seed=4), mlp(3, 8, 1, seed=4), mlp(3, 8, 1, seed=5)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(one[0].weight, same[0].weight)
    assert not torch.equal(one[0].weight, other[0].weight)
    assert not torch.equal(one[0].bias[:1], one[2].bias)


def test_two_layer_is_an_mlp_with_one_hidden_layer():
    settings = {"activation": "gelu", "init": "he_normal", "scale": 0.3, "seed": 9, "bias": True}
    one = two_layer(3, 7, 2, dtype=torch.float64, **settings)
    two = mlp(3, 7, 2, dtype=torch.float64, **settings)
    assert str(one) == str(two)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert two_layer(3, 7)(torch.ones(4, 3)).shape == (4, 1)
    assert two_layer(3, 7, bias=False)[0].bias is None


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match=r"at least two widths, .*found \(3,\): write for inst"):
        mlp(3)
    with pytest.raises(ValueError, match=r"width 1 must be at least 1, found 0"):
        mlp(3, 0, 1)
    with pytest.raises(ValueError, match=r"activation must be one of 'relu', 'tanh', 'gelu', "):
        mlp(3, 4, 1, activation="sigmoid")
    with pytest.raises(ValueError, match=r"init must be one of 'pytorch', 'glorot', 'he_normal'"):
        mlp(3, 4, 1, init="xavier")
