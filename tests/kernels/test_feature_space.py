"""Features against gradients one by one, planes against scikit-learn and pencil and paper."""

import pytest
import torch
from sklearn.svm import SVC
from torch import nn
from torch.testing import assert_close

import inscape
from cases import dense, points
from inscape.errors import BudgetError, UnsupportedModelError
from inscape.kernels import embedding, separability, tangent_features, tangent_kernel

X = points(9, 3)


class Mixed(nn.Module):
    """A convolution, a norm, a shared map, a parameter as it is, one that is never used."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 2)
        self.unused = nn.Parameter(torch.ones(3))
        self.norm = nn.LayerNorm(4)
        self.shared = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.randn(4, 2))

    def forward(self, x):
        x = self.norm(self.conv(x[:, None]).flatten(1))
        return self.shared(self.shared(x).tanh()) @ self.scale


def one_by_one(model, x):
    weights = [p for p in model.parameters() if p.requires_grad]
    rows = []
    for point in x:
        y = model(point[None]).reshape(-1)
        found = [torch.autograd.grad(v, weights, retain_graph=True, allow_unused=True) for v in y]
        flat = [
            (torch.zeros_like(p) if g is None else g).flatten()
            for row in found
            for g, p in zip(row, weights, strict=True)
        ]
        rows.append(torch.cat(flat))
    return torch.stack(rows)


@pytest.mark.parametrize("model", [dense(3, 5, 2), Mixed().double().eval()], ids=["dense", "mixed"])
def test_features_are_gradients_in_the_order_of_the_module(model):
    expected = one_by_one(model, X)
    assert_close(tangent_features(model, X), expected)
    p = expected.shape[1] // 2
    assert_close(tangent_features(model, X, output=1), expected[:, p:])


def test_inner_products_of_features_are_the_kernel():
    model = dense(3, 5, 2)
    features = tangent_features(model, X)
    assert_close(features @ features.T, tangent_kernel(model, X, outputs="trace").kernel)
    one = tangent_features(model, X, output=0)
    assert_close(one @ one.T, tangent_kernel(model, X).kernel[:, :, 0, 0])


def test_features_come_in_chunks_of_any_size():
    model = dense(3, 5, 2)
    least = tangent_features(model, X).numel() * 8
    assert_close(tangent_features(model, X, memory=least), tangent_features(model, X))


def test_frozen_parameters_have_no_features():
    model = dense(3, 5, 2)
    whole = tangent_features(model, X, output=0)
    model[0].weight.requires_grad_(False)
    assert_close(tangent_features(model, X, output=0), whole[:, 15:])


def test_features_refuse():
    model = dense(3, 5, 2)
    with pytest.raises(BudgetError, match=r"take 4,608 bytes, found memory=100: raise memory, or"):
        tangent_features(model, X, memory=100)
    with pytest.raises(ValueError, match=r"output must lie between 0 and 1, found 2: choose"):
        tangent_features(model, X, output=2)
    with pytest.raises(UnsupportedModelError, match=r"need trainable parameters, found none: set"):
        tangent_features(model.requires_grad_(False), X)


def test_margin_of_two_lines_is_half_their_distance():
    x = torch.tensor([[0.0, 1], [5, 1], [2, -1], [9, -1]], dtype=torch.float64)
    found = separability(x @ x.T, torch.tensor([1, 1, 0, 0]), penalty=1e6)
    size = x.square().sum(1).mean().sqrt()
    assert found.accuracy == 1.0
    assert_close(found.margins * size, torch.ones(1).double(), rtol=1e-4, atol=0)
    assert next(iter(found.rows()))["class"] == 1


def test_planes_are_those_of_a_linear_machine_on_the_features():
    features = points(60, 4)
    y = (features[:, 0] + 0.8 * points(60, 1, seed=3)[:, 0] > 0).long()
    found = separability(features @ features.T, y, penalty=2.0)
    size = features.square().sum(1).mean().sqrt()
    scaled = (features / size).numpy()
    other = SVC(C=2.0, kernel="linear", tol=1e-8).fit(scaled, y.numpy())
    assert found.accuracy == other.score(scaled, y.numpy())
    w, b = torch.tensor(other.coef_[0]), float(other.intercept_[0])
    assert_close(found.margins[0], 1 / w.norm(), rtol=1e-4, atol=0)
    # and no plane close by has a smaller price
    sides = 2 * y.double() - 1

    def price(w, b):
        return w.square().sum() / 2 + 2 * (1 - sides * (features / size @ w + b)).relu().sum()

    for step in 0.01 * points(20, 5, seed=11):
        assert price(w, b) < price(w + step[:4], b + step[4])
    assert found.accuracy < 1


def test_xor_lies_apart_in_the_space_of_gradients_only():
    x = points(80, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    assert separability(x @ x.T, y, penalty=10.0).accuracy < 0.8
    kernel = tangent_kernel(dense(2, 64, 1), x, outputs="trace").kernel
    other = points(40, 2, seed=9)
    across = tangent_kernel(dense(2, 64, 1), other, others=x, outputs="trace").kernel
    answers = (other[:, 0] * other[:, 1] > 0).long()
    found = separability(kernel, y, test=(across, answers), penalty=1e5)
    assert found.accuracy == 1.0
    assert found.test_accuracy > 0.8
    assert found.margins.min() > 0


def test_each_of_three_classes_has_its_plane(tmp_path):
    x = torch.eye(3).double().repeat(4, 1) + 0.05 * points(12, 3)
    y = torch.arange(12) % 3 + 5
    found = separability(x @ x.T, y, test=(x @ x.T, y))
    assert found.classes == (5, 6, 7)
    assert found.accuracy == found.test_accuracy == 1.0
    assert_close(found.accuracies, torch.ones(3).double())
    assert [row["class"] for row in found.rows()] == [5, 6, 7]
    assert repr(inscape.load(found.save(tmp_path / "planes.json"))) == repr(found)


def test_separability_refuses():
    with pytest.raises(ValueError, match=r"y must hold at least two classes, found 1: pass points"):
        separability(X @ X.T, torch.zeros(9).long())
    with pytest.raises(ValueError, match=r"penalty must be positive, found 0.0: raise penalty"):
        separability(X @ X.T, torch.arange(9) % 2, penalty=0.0)


def test_embedding_keeps_groups_together_and_is_the_same_again():
    y = torch.arange(40) % 2
    x = points(40, 5) + 20 * y[:, None]
    found = embedding(x @ x.T, perplexity=8)
    apart = torch.cdist(found, found).fill_diagonal_(torch.inf)
    assert (y[apart.argmin(1)] == y).all()
    assert torch.equal(embedding(x @ x.T, perplexity=8), found)
    with pytest.raises(ValueError, match=r"between 1 and the number of points, 9, found 30.0"):
        embedding(X @ X.T)
