import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression
from torch.testing import assert_close

from inscape.report.look import linear_model
from inscape.report.look.linear_model import UnavailableError, fit_seconds, linear_fit, some_rows

DICE = torch.Generator().manual_seed(0)
X = torch.randn(80, 3, generator=DICE, dtype=torch.float64)
TRUTH = torch.randn(3, 2, generator=DICE, dtype=torch.float64)


def test_affine_data_are_found_again_exactly():
    fit = linear_fit(X, X @ TRUTH + 5.0, task="regression", outputs=2)
    assert_close(fit.model[1].weight.detach(), TRUTH.T)
    assert_close(fit.model[1].bias.detach(), torch.full((2,), 5.0, dtype=torch.float64))


def test_least_squares_agrees_with_scikit_learn():
    y = (X[:, :1] > 0).double()
    fit = linear_fit(X, y, task="regression", outputs=1)
    peer = LinearRegression().fit(X.numpy(), y.numpy())
    assert_close(fit.model(X).detach(), torch.from_numpy(peer.predict(X.numpy())))
    assert fit.note == "with intercept, fitted to 80 examples"


def test_of_many_exact_answers_the_smallest_is_taken():
    x = torch.tensor([[1.0, 1.0], [3.0, 3.0]], dtype=torch.float64)
    fit = linear_fit(x, torch.tensor([[0.0], [4.0]]).double(), task="regression", outputs=1)
    assert_close(fit.model[1].weight.detach(), torch.ones(1, 2, dtype=torch.float64))


def test_directions_that_only_fit_noise_are_left_out_and_said():
    narrow = torch.randn(80, 40, generator=DICE, dtype=torch.float64) * 1e-4
    y = X[:, :1] + 0.1 * torch.randn(80, 1, generator=DICE, dtype=torch.float64)
    fit = linear_fit(torch.cat([X, narrow], 1), y, task="regression", outputs=1)
    assert fit.model[1].weight.detach().norm() < 1.1  # hundreds without the rule
    assert "along the 3 widest directions, which predict examples left out best" in fit.note


def test_narrow_direction_that_matters_is_kept():
    x = X * torch.tensor([1.0, 1.0, 1e-4], dtype=torch.float64)
    fit = linear_fit(x, X[:, 2:], task="regression", outputs=1)
    assert_close(fit.model[1].weight.detach()[0, 2].item(), 1e4)
    assert fit.note == "with intercept, fitted to 80 examples"


def test_error_of_rows_left_out_is_that_of_leaving_them_out():
    y = X[:, :1] ** 2
    x = X - X.mean(0)
    u = torch.linalg.svd(x, full_matrices=False).U
    left = 1 - 1 / 80 - u.square().sum(1, keepdim=True)
    quick = ((y - y.mean(0) - u @ u.T @ (y - y.mean(0))) / left)[7]
    rest = torch.arange(80) != 7
    peer = LinearRegression().fit(X[rest].numpy(), y[rest].numpy())
    assert_close(quick, y[7] - torch.from_numpy(peer.predict(X[7:8].numpy()))[0])


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_regression_agrees_with_scikit_learn(classes):
    scores = X @ torch.randn(3, classes, generator=DICE, dtype=torch.float64)
    y = (scores + 0.5 * torch.randn(80, classes, generator=DICE, dtype=torch.float64)).argmax(1)
    fit = linear_fit(X + 4.0, y, task="classes", outputs=classes)
    peer = LogisticRegression(tol=1e-10, max_iter=10_000).fit((X + 4.0).numpy(), y.numpy())
    ours = fit.model(X + 4.0).detach().softmax(1)
    if classes == 2:  # scikit-learn puts its ridge on one vector, half of it on each class here
        peer = _peer_of_two(X + 4.0, y)
        assert_close(ours[:, 1], peer, atol=1e-5, rtol=1e-5)
    else:
        theirs = torch.from_numpy(peer.predict_proba((X + 4.0).numpy()))
        assert_close(ours, theirs, atol=1e-5, rtol=1e-5)  # both stop early, at gradient 1e-7


def _peer_of_two(x, y):
    # Two opposite vectors w, -w: the difference 2w feels a ridge of |w|^2 = |2w|^2 / 4.
    peer = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(x.numpy(), y.numpy())
    return torch.from_numpy(peer.predict_proba(x.numpy())[:, 1])


def test_one_score_for_two_classes_agrees_with_scikit_learn():
    y = (X[:, 0] + 0.3 * X[:, 1] > 0).long()
    fit = linear_fit(X, y, task="classes", outputs=1)
    peer = LogisticRegression(tol=1e-10, max_iter=10_000).fit(X.numpy(), y.numpy())
    weight = fit.model[1].weight.detach()
    assert_close(weight, torch.from_numpy(peer.coef_), atol=1e-4, rtol=1e-4)  # both stop early
    assert fit.label == "logistic regression"
    assert fit.note == "ridge ½‖W‖² on the summed log loss, fitted to 80 examples"


def test_images_are_flattened_and_precision_is_kept():
    x = X[:, :, None].float()
    fit = linear_fit(x, X[:, :1].float(), task="regression", outputs=1)
    assert fit.model(x).dtype == torch.float32
    assert not fit.model.training
    assert_close(fit.model(x).detach(), X[:, :1].float(), atol=1e-6, rtol=1e-5)


def test_many_rows_are_drawn_and_said(monkeypatch):
    monkeypatch.setattr(linear_model, "ROWS", 20)
    fit = linear_fit(X, X[:, :1], task="regression", outputs=1, seed=4)
    assert fit.note == "with intercept, fitted to 20 of 80 examples"
    rows = some_rows(80, 20, seed=4)
    assert len(rows.unique()) == 20
    assert some_rows(80, 20, seed=4).tolist() == rows.tolist()
    assert some_rows(80, 20, seed=5).tolist() != rows.tolist()
    assert some_rows(5, 20, seed=4).tolist() == [0, 1, 2, 3, 4]


def test_global_random_state_stays():
    before = torch.get_rng_state()
    linear_fit(X, X[:, :1], task="regression", outputs=1)
    linear_fit(X, (X[:, 0] > 0).long(), task="classes", outputs=2)
    assert torch.equal(before, torch.get_rng_state())


def test_fit_under_no_grad_is_the_same():
    y = (X[:, 0] > 0).long()
    with torch.no_grad():
        inside = linear_fit(X, y, task="classes", outputs=2).model[1].weight
    assert_close(inside, linear_fit(X, y, task="classes", outputs=2).model[1].weight)


@pytest.mark.parametrize(
    ("y", "task", "outputs", "text"),
    [
        (None, "unlabelled", 1, "the data have no labels"),
        (X[:, :2], "regression", 3, "the model has 3 outputs and the labels have 2 columns"),
        (torch.arange(80) % 5, "classes", 3, "the model has 3 outputs for 5 classes"),
    ],
)
def test_no_linear_model_is_said_with_the_reason(y, task, outputs, text):
    with pytest.raises(UnavailableError, match=text):
        linear_fit(X, y, task=task, outputs=outputs)


def test_predicted_time_grows_with_the_work():
    small = fit_seconds(X, outputs=1, task="regression")
    assert 0 < small < fit_seconds(X, outputs=10, task="classes")
    assert small < fit_seconds(torch.zeros(1000, 100), outputs=1, task="regression")
