"""Norm bias: beside autograd of its regulariser, and weight decay where they must agree."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.controls import norm_bias, norm_bias_penalty
from inscape.training import fit
from inscape.training.ranger import Ranger

X = points(8, 2)
Y = X.sum(1, keepdim=True).sin()


def flat(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def trained(make, *, steps=5, closure=False, penalty=None):
    """Return the parameters after a few steps of a loop as users write it."""
    model = dense(2, 4, 1)
    optimizer = make(model.parameters())

    def loss():
        optimizer.zero_grad()
        value = (model(X) - Y).square().mean()
        if penalty is not None:
            value = value + penalty(model)
        value.backward()
        return value

    for _ in range(steps):
        if closure:
            optimizer.step(loss)
        else:
            loss()
            optimizer.step()
    return flat(model)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.05),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "ranger": lambda p: Ranger(p, lr=0.01),
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=3),
}


@pytest.mark.parametrize("mu", [0.0, 1.0, 50.0])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_moves_as_if_the_regulariser_were_in_the_loss(name, mu):
    def regulariser(model):
        squares = sum(p.square().sum() for p in model.parameters())
        return 0.03 * (squares - mu**2).abs()

    OPTIMIZERS["radam"]([nn.Parameter(torch.ones(1))])  # its step has hooks from now on
    closure = name == "lbfgs"
    biased = trained(
        lambda p: norm_bias(OPTIMIZERS[name](p), mu=mu, coefficient=0.03), closure=closure
    )
    assert_close(biased, trained(OPTIMIZERS[name], penalty=regulariser, closure=closure))


def test_half_of_it_is_weight_decay_at_mu_zero_and_negative_weight_decay_exists():
    for coefficient in (0.1, -0.1):
        half = trained(
            lambda p, c=coefficient: norm_bias(
                torch.optim.SGD(p, lr=0.1), mu=0, coefficient=c, half=True
            )
        )

        def decay(model, c=coefficient):
            return c / 2 * sum(p.square().sum() for p in model.parameters())

        assert_close(half, trained(lambda p: torch.optim.SGD(p, lr=0.1), penalty=decay))
    assert_close(
        trained(lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1)),
        trained(lambda p: norm_bias(torch.optim.SGD(p, 0.1), mu=0, coefficient=0.1, half=True)),
    )
    shrunk = trained(lambda p: norm_bias(torch.optim.SGD(p, 0.1), mu=0, coefficient=0.1))
    grown = trained(lambda p: norm_bias(torch.optim.SGD(p, 0.1), mu=0, coefficient=-0.1))
    assert float(grown.norm()) > float(shrunk.norm())


def test_fit_comes_to_the_norm_that_is_asked_for():
    for mu in (2.0, 6.0):
        model = dense(2, 8, 1)
        fit(
            model, X, Y, epochs=60, progress=False,
            optimizer=lambda p, mu=mu: norm_bias(torch.optim.SGD(p, 0.05), mu=mu, coefficient=0.3),
        )  # fmt: skip
        assert float(flat(model).norm()) == pytest.approx(mu, rel=0.1)


def test_as_a_penalty_of_fit_it_is_the_same_training():
    def run(**options):
        model = dense(2, 4, 1)
        fit(model, X, Y, epochs=5, progress=False, **options)
        return flat(model)

    penalty = partial(norm_bias_penalty, mu=3.0)
    biased = run(optimizer=lambda p: norm_bias(torch.optim.SGD(p, 0.05), mu=3.0, coefficient=0.02))
    assert_close(run(lr=0.05, penalties=[(0.02, penalty)]), biased)


def test_chosen_parameters_alone_count_and_move():
    model = dense(2, 3, 1)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    before = flat(model)
    weights = [model[0].weight]
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    norm_bias(optimizer, mu=100.0, coefficient=0.25, parameters=weights).step()
    assert_close(model[0].weight.detach().flatten(), 1.5 * before[:6])
    assert_close(flat(model)[6:], before[6:])


def test_a_parameter_without_gradient_stays_but_counts():
    model = dense(2, 3, 1)
    model[0].weight.grad = torch.zeros_like(model[0].weight)
    before = flat(model)
    norm_bias(torch.optim.SGD(model.parameters(), 1.0), mu=0, coefficient=0.25).step()
    assert_close(flat(model)[:6], before[:6] / 2)
    assert_close(flat(model)[6:], before[6:])


def test_a_closure_that_fails_leaves_the_bias_on():
    model = dense(2, 3, 1)
    optimizer = norm_bias(torch.optim.SGD(model.parameters(), 1.0), mu=0, coefficient=0.25)

    def broken():
        raise RuntimeError("no batch")

    with pytest.raises(RuntimeError, match="no batch"):
        optimizer.step(broken)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    before = flat(model)
    optimizer.step()
    assert_close(flat(model), before / 2)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"mu": -1.0, "coefficient": 1.0}, ValueError, "mu must be a finite number of at least 0"),
        ({"mu": 1.0, "coefficient": float("nan")}, ValueError, "coefficient must be finite"),
        ({"mu": 1.0, "coefficient": "1"}, TypeError, "coefficient must be a number, found '1'"),
        (
            {"mu": 1.0, "coefficient": 1.0, "parameters": [torch.ones(1)]},
            ValueError,
            "must be some of the optimizer's, found 1 of 1 that are not",
        ),
    ],
)
def test_what_cannot_be_is_refused(settings, error, text):
    optimizer = torch.optim.SGD(dense(2, 1).parameters(), 0.1)
    with pytest.raises(error, match=text):
        norm_bias(optimizer, **settings)


@pytest.mark.usefixtures("unchecked")
def test_a_model_is_no_optimizer():
    with pytest.raises(TypeError, match=r"must be a torch.optim.Optimizer, found Sequential: make"):
        norm_bias(dense(2, 1), mu=1.0, coefficient=1.0)


def test_sparse_gradients_are_refused():
    table = nn.Embedding(3, 2, sparse=True)
    optimizer = norm_bias(torch.optim.SGD(table.parameters(), 0.1), mu=1.0, coefficient=1.0)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(TypeError, match=r"needs dense gradients, .* sparse=False"):
        optimizer.step()
