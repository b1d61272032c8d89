import pytest
import torch
from torch.testing import assert_close

from inscape.models import mlp
from inscape.training import fit, l2_norm

X = torch.linspace(-1, 1, 8, dtype=torch.float64)[:, None]


def network():
    return mlp(1, 5, 1, dtype=torch.float64)


def test_l2_norm_is_half_the_squared_norm_of_what_is_trained():
    model = mlp(1, 2, 1, dtype=torch.float64)
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    assert_close(l2_norm(model, X).detach(), flat @ flat / 2)
    model[0].requires_grad_(False)
    assert_close(l2_norm(model, X).detach(), flat[4:] @ flat[4:] / 2)


def test_its_gradient_is_the_parameters():
    model = network()
    l2_norm(model, X).backward()
    for parameter in model.parameters():
        assert_close(parameter.grad, parameter.detach())


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_its_coefficient_does_what_weight_decay_does(optimizer):
    options = {"optimizer": optimizer, "epochs": 20, "batch": 3, "lr": 0.02}
    one = fit(network(), X, X.sin(), penalties=[(0.1, l2_norm)], **options)
    two = fit(network(), X, X.sin(), weight_decay=0.1, **options)
    none = fit(network(), X, X.sin(), **options)
    for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True):
        assert_close(a, b)
    assert not torch.allclose(one.model[0].weight, none.model[0].weight, rtol=1e-3)


@pytest.mark.parametrize(
    ("penalty", "found"),
    [
        (lambda model, x: model(x), r"shape \(8, 1\)"),
        (lambda model, x: 0.5, "float"),
    ],
)
def test_a_penalty_must_be_a_scalar(penalty, found):
    with pytest.raises(
        TypeError, match=rf"a penalty must return a scalar tensor, found {found}: t"
    ):
        fit(network(), X, X, penalties=[(1.0, penalty)])
