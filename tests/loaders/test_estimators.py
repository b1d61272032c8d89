"""Models of scikit-learn: the same function as a network, or a black box that says so."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from torch import nn
from torch.testing import assert_close

import inscape
from inscape.errors import UnsupportedModelError
from inscape.loaders import fit_together, open_data, open_model
from inscape.loaders.black_box import BlackBox
from inscape.regions import line_regions
from inscape.smoothness import gradient_norm

DRAWN = np.random.default_rng(0)
X = DRAWN.standard_normal((60, 5)) * [1, 10, 0.1, 3, 1] + [0, 5, 0, -2, 1]
Y = (X[:, 0] > 0).astype(int) + (X[:, 3] > -2)
VALUE = X[:, 0] + np.sin(X[:, 3])
ROWS = torch.from_numpy(X)

STEPS = {
    "standard": StandardScaler(),
    "no mean": StandardScaler(with_mean=False),
    "no deviation": StandardScaler(with_std=False),
    "range": MinMaxScaler((-1, 2)),
    "largest": MaxAbsScaler(),
    "robust": RobustScaler(),
    "components": PCA(3),
    "white components": PCA(3, whiten=True, svd_solver="full"),
    "no centre": TruncatedSVD(3, random_state=0),
    "selection": VarianceThreshold(0.5),
    "imputer": SimpleImputer(),
    "passthrough": "passthrough",
    "union": FeatureUnion([("a", PCA(2)), ("b", StandardScaler())]),
    "columns": ColumnTransformer(
        [
            ("a", StandardScaler(), [3, 0]),
            ("b", make_pipeline(MinMaxScaler(), PCA(1)), slice(1, 3)),
            ("c", "drop", [-1]),
        ]
    ),
    "rest of the columns": ColumnTransformer(
        [("a", RobustScaler(), np.array([True, False, True, False, False]))],
        remainder="passthrough",
    ),
}


def network(kind=MLPRegressor, **options):
    return kind(hidden_layer_sizes=(7,), max_iter=30, random_state=0, **options)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_step_is_folded_into_the_network(name):
    pipeline = Pipeline([("before", STEPS[name]), ("net", network())]).fit(X, VALUE)
    opened = open_model(pipeline)
    assert_close(opened.model(ROWS)[:, 0], torch.from_numpy(pipeline.predict(X)))
    assert [type(part) for part in opened.model] == [nn.Linear, nn.ReLU, nn.Linear]
    assert opened.notes == ("folded 'before' into the first layer",)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_columns_by_name(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcde"))
    for columns in (["e", "b"], slice("b", "d"), "c"):
        chosen = [columns] if isinstance(columns, str) else columns
        steps = ColumnTransformer([("some", StandardScaler(), chosen)], remainder="passthrough")
        pipeline = make_pipeline(steps, network()).fit(frame, VALUE)
        result = open_model(pipeline).model(ROWS)[:, 0]
        assert_close(result, torch.from_numpy(pipeline.predict(frame)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_best_of_a_search_in_a_pipeline_of_pipelines():
    inner = make_pipeline(SelectKBest(k=3), network(MLPClassifier))
    search = GridSearchCV(make_pipeline(StandardScaler(), inner), {}, cv=2).fit(X, Y)
    opened = open_model(search)
    assert_close(opened.model(ROWS).softmax(1), torch.from_numpy(search.predict_proba(X)))
    assert opened.notes[0] == "took the best model of the GridSearchCV"
    assert opened.classes == (0, 1, 2)


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), LogisticRegression(), LinearSVC()])
def test_linear_models_are_one_layer(model):
    pipeline = make_pipeline(StandardScaler(), model)
    pipeline.fit(X, Y if hasattr(model, "decision_function") else VALUE)
    opened = open_model(pipeline)
    said = getattr(pipeline, "decision_function", pipeline.predict)(X)
    assert_close(opened.model(ROWS), torch.from_numpy(said).reshape(60, -1))
    assert [type(part) for part in opened.model] == [nn.Linear]


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (RandomForestClassifier(10, random_state=0), Y),
        (RandomForestRegressor(10, random_state=0), VALUE),
        (KNeighborsClassifier(), Y),
        (SVC(), Y),
        (PoissonRegressor(), np.abs(VALUE)),
        (make_pipeline(PolynomialFeatures(2), LinearRegression()), VALUE),
        (make_pipeline(MinMaxScaler(clip=True), LinearRegression()), VALUE),
    ],
)
def test_anything_else_is_a_black_box(model, target):
    model.fit(X, target)
    opened = open_model(model)
    assert isinstance(opened.model, BlackBox)
    result = opened.model(ROWS)
    if hasattr(model, "predict_proba"):
        assert_close(result.softmax(1), torch.from_numpy(model.predict_proba(X)))
    else:
        said = getattr(model, "decision_function", model.predict)(X)
        assert_close(result, torch.from_numpy(np.asarray(said)).reshape(60, -1))
    assert "without gradients" in opened.notes[-1]


def test_a_black_box_refuses_gradients_and_gives_values():
    model = open_model(RandomForestRegressor(10, random_state=0).fit(X, VALUE)).model
    with pytest.raises(UnsupportedModelError, match="found a black box, a RandomForestRegressor"):
        gradient_norm(model, ROWS)
    assert "found a black box" in line_regions(model, ROWS).reason
    assert model(ROWS).shape == (60, 1)


def test_a_step_that_cannot_be_folded_is_named():
    model = make_pipeline(PolynomialFeatures(2), LinearRegression()).fit(X, VALUE)
    opened = open_model(model)
    assert "the step 'polynomialfeatures', a PolynomialFeatures" in opened.notes[0]


def test_models_that_are_not_fitted_are_refused():
    scaler = make_pipeline(StandardScaler(), StandardScaler()).fit(X)
    for model in (
        RandomForestClassifier(),
        LogisticRegression(),
        GridSearchCV(Ridge(), {}),
        scaler,
    ):
        with pytest.raises(UnsupportedModelError):
            open_model(model)


def test_a_forest_is_scored():
    forest = RandomForestClassifier(10, random_state=0).fit(X, Y)
    opened = open_model(forest)
    data = fit_together(opened, open_data((X, Y), dtype="float64"))
    right = (opened.model(data.x).argmax(1) == data.y).double().mean()
    assert float(right) == forest.score(X, Y)


def test_a_look_at_a_forest_measures_what_needs_values(tmp_path):
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    look = inscape.look(open_model(forest), (X, Y), budget=30, quiet=True)
    assert not look.failed
    assert "extrapolation" in {measured.name for measured in look.measurements}
    skipped = {one.name: one.reason for one in look.not_applicable}
    assert "black box" in skipped["gradient_norm"]


@pytest.mark.parametrize("columns", [slice(0, 2), ["b", "d"]])
def test_what_was_fitted_on_a_frame_is_called_with_its_columns(columns):
    frame = pd.DataFrame(X, columns=list("abcde"))
    if isinstance(columns, slice):
        columns = list(frame.columns[columns])
    chosen = ColumnTransformer([("some", StandardScaler(), columns)], remainder="passthrough")
    for first in (StandardScaler(), chosen):
        model = make_pipeline(first, RandomForestClassifier(3, random_state=0)).fit(frame, Y)
        outputs = open_model(model).model(ROWS)  # without a warning: those are errors here
        assert_close(outputs.exp().numpy(), model.predict_proba(frame), atol=1e-12, rtol=0)


def test_a_linear_model_of_a_frame_becomes_layers():
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = LogisticRegression(max_iter=1000).fit(frame, Y)
    opened = open_model(model)
    assert isinstance(opened.model[0], nn.Linear)
    assert_close(opened.model(ROWS).detach().numpy(), model.decision_function(frame))


def test_a_classifier_that_says_the_class_alone_is_told_how_to_say_more():
    voting = VotingClassifier([("a", LogisticRegression()), ("b", LogisticRegression())]).fit(X, Y)
    with pytest.raises(UnsupportedModelError, match=r"probabilities \(voting='soft', loss"):
        open_model(voting)


def test_numbers_of_clusters_are_no_function():
    clusters = KMeans(3, n_init=1, random_state=0).fit(X)
    with pytest.raises(UnsupportedModelError, match="a KMeans must predict numbers to be measured"):
        open_model(clusters)
