"""Models of scikit-learn and skorch, saved with joblib."""

import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from torch import nn

from zoo.rows import Subject, opened, row

_IRIS = load_iris(return_X_y=True)
_VALUES = "has values and no gradient"


def _subject(folder: Path, model: Any, how: str) -> Subject:
    x, y = _IRIS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        model.fit(x, y)
    joblib.dump(model, folder / "model.joblib")
    net, said = opened(folder / "model.joblib", f"`.joblib --trust`, {how}", trust=True)
    return Subject(net, torch.from_numpy(np.ascontiguousarray(x[::50])), said)


def _mlp(**settings: Any) -> MLPClassifier:
    return MLPClassifier((8,), max_iter=30, random_state=0, **settings)


@row("MLPClassifier", "scikit-learn", fast=True)
def classifier(folder: Path) -> Subject:
    return _subject(folder, _mlp(), "as layers")


@row("Pipeline: scaler, PCA, MLPRegressor", "scikit-learn")
def pipeline(folder: Path) -> Subject:
    last = MLPRegressor(hidden_layer_sizes=(8,), max_iter=30, random_state=0)
    return _subject(folder, make_pipeline(StandardScaler(), PCA(3), last), "folded")


@row("ColumnTransformer and MLP inside GridSearchCV", "scikit-learn")
def search(folder: Path) -> Subject:
    columns = ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [2, 3])])
    steps = make_pipeline(columns, _mlp(activation="tanh"))
    grid = GridSearchCV(steps, {"mlpclassifier__alpha": [0.01, 1.0]}, cv=2)
    return _subject(folder, grid, "best model, folded")


@row("LogisticRegression", "scikit-learn")
def logistic(folder: Path) -> Subject:
    return _subject(folder, LogisticRegression(max_iter=50), "as a layer")


@row("RandomForestClassifier", "scikit-learn", forbidden=_VALUES)
def forest(folder: Path) -> Subject:
    return _subject(folder, RandomForestClassifier(10, random_state=0), "black box")


@row("VotingClassifier of three", "scikit-learn", forbidden=_VALUES)
def voting(folder: Path) -> Subject:
    parts = [("a", GaussianNB()), ("b", LogisticRegression(max_iter=50)), ("c", _mlp())]
    return _subject(folder, VotingClassifier(parts, voting="soft"), "black box")


@row("SVC with a kernel", "scikit-learn", forbidden=_VALUES)
def svc(folder: Path) -> Subject:
    return _subject(folder, SVC(), "black box")


@row("HistGradientBoostingRegressor", "scikit-learn", forbidden=_VALUES)
def boosting(folder: Path) -> Subject:
    return _subject(folder, HistGradientBoostingRegressor(max_iter=5), "black box")


@row("skorch NeuralNetClassifier", "skorch", needs=("skorch",))
def skorch(folder: Path) -> Subject:
    from skorch import NeuralNetClassifier

    torch.manual_seed(0)
    net = NeuralNetClassifier(
        nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)),
        criterion=nn.CrossEntropyLoss, max_epochs=2, verbose=0,
    )  # fmt: skip
    x, y = _IRIS
    net.fit(x.astype(np.float32), y)
    joblib.dump(net, folder / "net.joblib")
    model, how = opened(folder / "net.joblib", "`.joblib --trust`, its module", trust=True)
    return Subject(model, torch.from_numpy(np.ascontiguousarray(x[::50])), how)
