"""A converted MLP computes what scikit-learn computes."""

import warnings
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from sklearn.neural_network import MLPClassifier, MLPRegressor
from torch import nn
from torch.testing import assert_close

from inscape._core.errors import UnsupportedModelError
from inscape.intake import open_model

ACTIVATIONS = ["identity", "logistic", "tanh", "relu"]


def points(n: int = 40) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(size=(n, 4))


def fitted(mlp: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge
        return mlp.fit(points(), y)


def options(activation: str) -> dict[str, Any]:
    return {
        "hidden_layer_sizes": (6, 5),
        "activation": activation,
        "max_iter": 3,
        "random_state": 0,
    }


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_regressor(activation, outputs):
    y = points()[:, :outputs].squeeze()
    mlp = fitted(MLPRegressor(**options(activation)), y)
    opened = open_model(mlp)
    x = points(7) * 3
    found = opened.model(torch.from_numpy(x)).detach()
    assert_close(found, torch.from_numpy(mlp.predict(x)).reshape(7, outputs))
    assert opened.source == "MLPRegressor object"
    assert not any("left off" in note for note in opened.notes)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_classifier_of_three(activation):
    mlp = fitted(MLPClassifier(**options(activation)), np.arange(40) % 3)
    opened = open_model(mlp)
    x = points(7) * 3
    logits = opened.model(torch.from_numpy(x)).detach()
    assert_close(logits.softmax(1), torch.from_numpy(mlp.predict_proba(x)))
    assert logits.argmax(1).tolist() == mlp.predict(x).tolist()
    assert "left off the final softmax: analysing the logits" in opened.notes


def test_classifier_of_two_has_one_logit_and_names_its_classes():
    mlp = fitted(MLPClassifier(**options("relu")), np.array(["cat", "dog"])[np.arange(40) % 2])
    opened = open_model(mlp, dtype="float64")
    x = points(7)
    logit = opened.model(torch.from_numpy(x)).detach()
    assert_close(logit.sigmoid()[:, 0], torch.from_numpy(mlp.predict_proba(x)[:, 1]))
    assert "left off the final logistic: analysing the logits" in opened.notes
    assert "its outputs stand for the classes 'cat', 'dog', in this order" in opened.notes


def test_many_classes_are_not_all_listed():
    mlp = fitted(MLPClassifier(**options("relu")), np.arange(40) % 12 + 1)
    assert "9, 10, ..., in this order" in open_model(mlp).notes[1]


def test_the_network_is_a_plain_sequential_in_the_asked_precision():
    mlp = fitted(MLPRegressor(**options("relu")), points()[:, 0])
    before = torch.random.get_rng_state()
    double, single = open_model(mlp).model, open_model(mlp, dtype="float32").model
    assert torch.equal(torch.random.get_rng_state(), before)
    assert isinstance(double, nn.Sequential)
    assert [type(layer) for layer in double] == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    assert double[0].weight.dtype == torch.float64
    assert single[0].weight.dtype == torch.float32
    mlp.coefs_[0][:] = 0  # the module does not share the numbers
    assert double[0].weight.abs().sum() > 0


def test_an_unfitted_mlp_is_refused():
    with pytest.raises(UnsupportedModelError, match=r"must be fitted, found one without coefs_"):
        open_model(MLPRegressor())


def test_an_unknown_activation_is_refused():
    mlp = fitted(MLPRegressor(**options("relu")), points()[:, 0])
    mlp.activation = "swish"
    with pytest.raises(UnsupportedModelError, match="relu, found 'swish'"):
        open_model(mlp)


def test_a_saved_mlp_needs_trust(tmp_path):
    mlp = fitted(MLPRegressor(**options("tanh")), points()[:, 0])
    path = tmp_path / "mlp.joblib"
    joblib.dump(mlp, path)
    with pytest.raises(UnsupportedModelError, match=r"run code \('sklearn\.neural_network.*MLPReg"):
        open_model(path)
    opened = open_model(path, trust=True)
    assert "unpickled with its own code, as trusted" in opened.notes
    x = points(5)
    found = opened.model(torch.from_numpy(x)).detach()[:, 0]
    assert_close(found, torch.from_numpy(mlp.predict(x)))


def test_a_file_of_another_version_says_so(tmp_path):
    mlp = fitted(MLPRegressor(**options("tanh")), points()[:, 0])
    path = tmp_path / "mlp.joblib"
    joblib.dump(mlp, path)
    import sklearn

    here = sklearn.__version__.encode()
    data = path.read_bytes()
    assert here in data
    path.write_bytes(data.replace(here, b"0" * len(here)))
    assert any("when using version" in note for note in open_model(path, trust=True).notes)


def test_poisson_regression_keeps_its_exponential():
    x = np.linspace(0, 1, 40)[:, None]
    mlp = MLPRegressor(hidden_layer_sizes=(4,), loss="poisson", max_iter=30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it stops early
        mlp.fit(x, np.exp(2 * x[:, 0]))
    opened = open_model(mlp)
    ours = opened.model(torch.from_numpy(x))[:, 0].detach().numpy()
    np.testing.assert_allclose(ours, mlp.predict(x))
    assert opened.notes == ()
