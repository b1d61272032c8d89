import pytest
import torch

from inscape.models import mlp
from inscape.training import fit

X = torch.linspace(-1, 1, 6)[:, None]


def run(**settings):
    model = settings.pop("model", None) or mlp(1, 3, 1)
    return fit(model, X, X, epochs=1, **settings)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"optimizer": "lion"}, r"must be one of 'sgd', 'adam', 'adamw', 'ranger', found 'lion'"),
        (
            {"optimizer": "adam", "momentum": 0.9},
            r"momentum is an option of sgd, found momentum=0\.9 for .* 'adam': leave momentum out",
        ),
        ({"optimizer": "adamw", "nesterov": True}, r"nesterov is an option of sgd, found neste"),
        (
            {"betas": (0.5, 0.9)},
            r"betas is an option of adam and adamw and ranger, .* 'sgd': leave betas out",
        ),
        ({"lr": 0.0}, r"lr must be positive and finite, found 0\.0: try 0\.01"),
        ({"lr": float("nan")}, r"lr must be positive and finite, found nan"),
        ({"lr": float("inf")}, r"lr must be positive and finite, found inf"),
        ({"momentum": 1.0}, r"must lie in \[0, 1\), found 1\.0 and \(0\.9, 0\.999\): try 0\.9"),
        ({"momentum": -0.1}, r"must lie in \[0, 1\), found -0\.1"),
        ({"optimizer": "adam", "betas": (0.9, 1.0)}, r"must lie in \[0, 1\), .*\(0\.9, 1\.0\)"),
        ({"weight_decay": -0.1}, r"weight_decay must be at least 0, found -0\.1"),
        ({"nesterov": True}, r"nesterov needs momentum above 0, found 0\.0: try momentum=0\.9"),
    ],
)
def test_options_that_cannot_be_are_refused(settings, text):
    with pytest.raises(ValueError, match=text):
        run(**settings)


def test_an_optimizer_of_ones_own_sets_its_options_itself():
    def rmsprop(parameters):
        return torch.optim.RMSprop(parameters, lr=0.1)

    assert run(optimizer=rmsprop).settings.optimizer == "own:rmsprop"
    text = r"lr is an option of sgd and adam and adamw and ranger, .*'own:rmsprop': set it inside"
    with pytest.raises(ValueError, match=text):
        run(optimizer=rmsprop, lr=0.2)


def test_an_optimizer_must_be_one_that_the_loop_can_step():
    with pytest.raises(TypeError, match=r"found one that returns list: return the optimizer"):
        run(optimizer=lambda parameters: list(parameters))
    with pytest.raises(TypeError, match=r"which LBFGS does not allow: choose another"):
        run(optimizer=lambda parameters: torch.optim.LBFGS(parameters))


def test_a_model_without_parameters_cannot_be_trained():
    text = r"needs parameters that require gradients .* found none: call model\.requires_grad_"
    with pytest.raises(ValueError, match=text):
        run(model=mlp(1, 1).requires_grad_(False))
    with pytest.raises(ValueError, match=text):
        run(model=torch.nn.Identity().eval())
