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

from inscape.errors import DataError, UnsupportedModelError
from inscape.loaders import fit_together, open_data, open_model, performance

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
    result = opened.model(torch.from_numpy(x)).detach()
    assert_close(result, torch.from_numpy(mlp.predict(x)).reshape(7, outputs))
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
    result = opened.model(torch.from_numpy(x)).detach()[:, 0]
    assert_close(result, torch.from_numpy(mlp.predict(x)))


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


@pytest.mark.parametrize(
    "names",
    [(-1, 1), (1, 2), (0, 1), ("cat", "dog"), (-1, 3, 7), ("10", "2", "33"), (False, True)],
)
def test_labels_are_found_among_the_classes_by_name(names):
    y = np.array(names)[np.arange(40) % len(names)]
    mlp = fitted(MLPClassifier(**options("tanh")), y)
    for rows in (slice(None), y == y[1]):  # all classes, and one of them alone
        x, some = points()[rows], y[rows]
        data = fit_together(open_model(mlp), open_data((x, some)))
        done = performance(open_model(mlp).model, *data.measured, data.loss)
        assert data.task == "classes"
        assert data.y.tolist() == [mlp.classes_.tolist().index(label) for label in some.tolist()]
        assert done.accuracy == pytest.approx(mlp.score(x, some))
        assert done.n == len(some)


def test_what_became_of_the_labels_is_said(tmp_path):
    mlp = fitted(MLPClassifier(**options("tanh")), np.array([-1, 1])[np.arange(40) % 2])
    lines = [f"{a},{b},{c},{d},{(-1, 1)[k % 2]}" for k, (a, b, c, d) in enumerate(points())]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["a,b,c,d,label", *lines]))
    data = fit_together(open_model(mlp), open_data(path))
    done = performance(open_model(mlp).model, *data.measured, data.loss)
    said = "y holds classes of the model: -1, 1 are numbered from 0 in this order"
    assert said in data.notes
    assert not any("regression" in note for note in data.notes)
    assert (data.settings["labels"], data.loss, data.guess) == ("classes", "bce_logits", "")
    assert done.accuracy == pytest.approx(mlp.score(points(), np.array([-1, 1])[np.arange(40) % 2]))
    asked = fit_together(open_model(mlp), open_data(path, labels="regression"))
    assert asked.task == "regression"


def test_numbers_in_words_are_found_and_numbers_of_classes_are_left():
    words = np.array(["10", "2"])
    mlp = fitted(MLPClassifier(**options("tanh")), words[np.arange(40) % 2])
    data = fit_together(open_model(mlp), open_data((points(), np.array([10, 2] * 20))))
    assert data.y.tolist() == [0, 1] * 20
    data = fit_together(open_model(mlp), open_data((points(), np.array([0, 1] * 20))))
    assert data.y.tolist() == [0, 1] * 20
    assert "y is taken as numbers of the model's classes '10', '2', from 0 on" in data.notes
    named = np.array(["ten", "two"] * 20)
    assert fit_together(open_model(mlp), open_data((points(), named))).y.tolist() == [0, 1] * 20


@pytest.mark.parametrize("strange", [[0.5, 1.0], [-1, 4], ["-1", "x"]])
def test_labels_that_are_no_classes_of_the_model_are_refused(strange):
    mlp = fitted(MLPClassifier(**options("tanh")), np.array([-1, 1])[np.arange(40) % 2])
    with pytest.raises(DataError, match=r"fitted to, -1, 1, found (0\.5|4|'x'): give other labels"):
        fit_together(open_model(mlp), open_data((points(), np.array(strange * 20))))
