"""Fitted models of scikit-learn and skorch as modules.

An MLP or a linear model becomes the same function in PyTorch, and what stands before it in a
pipeline becomes a part of its first layer where it is an affine map. Everything else is a black
box: a function that has values and no gradient.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from inscape.errors import UnsupportedModelError
from inscape.loaders.affine_steps import FittedAffineMap, NotAffineError, affine_of_steps
from inscape.loaders.black_box import BlackBox
from inscape.loaders.labels import Name, listed
from inscape.loaders.sklearn_mlp import convert_mlp, is_sklearn_mlp

Array = NDArray[Any]
Converted = tuple[nn.Module, tuple[str, ...]]

#: The smallest probability that has a logarithm here, as in scikit-learn's own loss.
LEAST = 1e-15
#: Modules of scikit-learn whose models return ``coef_ @ x + intercept_``.
_LINEAR = ("sklearn.linear_model.", "sklearn.svm._classes")


def is_estimator(model: object) -> bool:
    """Tell whether an object is a model of scikit-learn or skorch, without importing them."""
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(model, base.BaseEstimator)


def convert(model: Any) -> Converted:
    """Return a fitted model as a module, and what there is to say."""
    model, notes = unwrapped(model)
    if isinstance(inner := getattr(model, "module_", None), nn.Module):
        return inner, (*notes, f"took the module of the {type(model).__name__}")
    steps, last = _steps(model)
    converted = _as_layers(last)
    if converted is None:
        return _black_box(model, (), notes)
    layers, more = converted
    if not steps:
        return layers, (*notes, *more)
    try:
        return _folded(layers, affine_of_steps(steps, _inputs(model, layers))), (
            *notes, *more, f"folded {listed([name for name, _ in steps], 5)} into the first layer",
        )  # fmt: skip
    except NotAffineError as error:
        return _black_box(model, (str(error),), notes)


def unwrapped(model: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the model that a search has found best."""
    notes: list[str] = []
    while hasattr(model, "best_estimator_"):
        notes.append(f"took the best model of the {type(model).__name__}")
        model = model.best_estimator_
    if hasattr(model, "estimator") and hasattr(model, "param_distributions"):
        raise _unfitted(model)
    return model, tuple(notes)


def named_classes(model: Any) -> tuple[Name, ...]:
    """Return what the classes of a classifier are called; nothing for a regression."""
    return tuple(np.asarray(getattr(unwrapped(model)[0], "classes_", ())).tolist())


def _steps(model: Any) -> tuple[list[tuple[str, Any]], Any]:
    """Return the steps before the last one of a pipeline, and the last one."""
    if type(model).__name__ != "Pipeline":
        return [], model
    before, last = list(model.steps[:-1]), model.steps[-1][1]
    inner, final = _steps(last)
    return [*before, *inner], final


def _as_layers(model: Any) -> tuple[nn.Sequential, tuple[str, ...]] | None:
    """Return an MLP or a linear model as layers, None for anything else."""
    if is_sklearn_mlp(model):
        return convert_mlp(model)
    if not type(model).__module__.startswith(_LINEAR) or not hasattr(model, "coef_"):
        return None
    if not _is_linear(model):
        return None
    weight = np.atleast_2d(np.asarray(model.coef_, np.float64))
    bias = np.broadcast_to(np.asarray(model.intercept_, np.float64), weight.shape[:1])
    notes = ("its outputs are the scores of its decision function",) * hasattr(model, "classes_")
    return nn.Sequential(linear(FittedAffineMap(weight, np.array(bias)))).eval(), notes


def _is_linear(model: Any) -> bool:
    """Tell whether its outputs are ``coef_ @ x + intercept_``, by comparing them."""
    inputs = np.atleast_2d(model.coef_).shape[1]
    rows = np.random.default_rng(0).standard_normal((4, inputs))
    values = np.asarray(_function(model)[0](rows), np.float64).reshape(4, -1)
    outputs = rows @ np.atleast_2d(model.coef_).T + model.intercept_
    score = _method(model, "decision_function")
    values = values if score is None else np.asarray(score(rows), np.float64).reshape(4, -1)
    return outputs.shape == values.shape and bool(np.allclose(outputs, values))


def _folded(layers: nn.Sequential, before: FittedAffineMap) -> nn.Sequential:
    first = layers[0]
    assert isinstance(first, nn.Linear)
    weight = first.weight.detach().numpy().astype(np.float64)
    bias = first.bias.detach().numpy().astype(np.float64)
    layers[0] = linear(before.then(FittedAffineMap(weight, bias)))
    return layers


def linear(map: FittedAffineMap) -> nn.Linear:
    """Return an affine map as a layer in double precision."""
    outputs, inputs = map.matrix.shape
    layer = nn.Linear(inputs, outputs, device="meta")  # draws no random numbers
    layer.weight = nn.Parameter(torch.from_numpy(np.ascontiguousarray(map.matrix)))
    layer.bias = nn.Parameter(torch.from_numpy(np.ascontiguousarray(map.shift)))
    return layer.eval()


def _inputs(model: Any, layers: nn.Sequential) -> int:
    """Return how many inputs a pipeline takes."""
    for _, step in model.steps:
        if hasattr(step, "n_features_in_"):
            return int(step.n_features_in_)
    first = layers[0]
    assert isinstance(first, nn.Linear)
    return first.in_features


def _black_box(model: Any, why: tuple[str, ...], notes: tuple[str, ...]) -> Converted:
    function, values = _function(model)
    description = f"a black box, values of {values} without gradients"
    reason = f"a {type(_steps(model)[1]).__name__}" + "".join(f" ({cause})" for cause in why)
    return BlackBox(function, reason).eval(), (*notes, *why, description)


def _function(model: Any) -> tuple[Callable[[Array], Array], str]:
    """Return the function of a model that says most, and its name."""
    if not hasattr(model, "n_features_in_") and not hasattr(model, "steps"):
        raise _unfitted(model)
    if (shares := _method(model, "predict_proba")) is not None:
        return lambda rows: _logarithms(shares(rows)), "the logarithm of predict_proba"
    for name in ("decision_function", "predict"):
        function = _method(model, name)
        names_only = name == "predict" and (hasattr(model, "classes_") or _is_clusterer(model))
        if function is not None and not names_only:
            return function, name
    if hasattr(model, "classes_"):
        raise UnsupportedModelError(
            f"a {type(model).__name__} must say how sure it is to be measured, found the class "
            "alone: fit it with probabilities (voting='soft', loss='log_loss'), or put "
            "it into a CalibratedClassifierCV."
        )
    raise UnsupportedModelError(
        f"a {type(model).__name__} must predict numbers to be measured, found no predict_proba, "
        "decision_function or predict that does: pass the model that follows it."
    )


def _method(model: Any, name: str) -> Callable[[Array], Array] | None:
    """Return a method of arrays; one that knows its columns by name is called with a frame."""
    method: Callable[[Any], Array] | None = getattr(model, name, None)
    columns = getattr(model, "feature_names_in_", None)
    if method is None or columns is None:
        return method
    import pandas as pd

    called = method
    return lambda rows: called(pd.DataFrame(rows, columns=columns))


def _is_clusterer(model: Any) -> bool:
    """Tell whether a model returns numbers of clusters, which are names."""
    return bool(sys.modules["sklearn.base"].is_clusterer(_steps(model)[1]))


def _logarithms(probabilities: Any) -> Array:
    """Return probabilities as logits: softmax makes the same of them again."""
    if isinstance(probabilities, list):
        raise UnsupportedModelError(
            f"a classifier must predict one label for each example, found {len(probabilities)}: "
            "measure one of them."
        )
    logarithms: Array = np.log(np.clip(probabilities, LEAST, 1.0))
    return logarithms


def _unfitted(model: Any) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"the {type(model).__name__} must be fitted, found one that is not: call fit(x, y) first."
    )
