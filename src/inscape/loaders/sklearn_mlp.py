"""A multilayer perceptron of scikit-learn as a plain ``nn.Sequential``."""

import sys
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from inscape.errors import UnsupportedModelError
from inscape.loaders.labels import Name, listed

Array = NDArray[np.floating[Any]]

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "logistic": nn.Sigmoid,
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
}


def is_sklearn_mlp(model: object) -> bool:
    """Tell whether an object is an MLPRegressor or MLPClassifier, without importing them."""
    networks = sys.modules.get("sklearn.neural_network")
    return networks is not None and isinstance(
        model, networks.MLPRegressor | networks.MLPClassifier
    )


def convert_mlp(mlp: Any) -> tuple[nn.Sequential, tuple[str, ...]]:
    """Return the network of a fitted MLP in float64, and what was left off.

    A classifier ends before its softmax or sigmoid: what is returned are the logits.
    """
    if not hasattr(mlp, "coefs_"):
        raise UnsupportedModelError(
            f"the {type(mlp).__name__} must be fitted, found one without coefs_: call fit(x, y) "
            "first."
        )
    if mlp.activation not in ("identity", *_ACTIVATIONS):
        raise UnsupportedModelError(
            f"the {type(mlp).__name__} must have one of the activations identity, "
            f"{', '.join(_ACTIVATIONS)}, found {mlp.activation!r}: fit it with one of them."
        )
    layers: list[nn.Module] = []
    for weight, bias in zip(mlp.coefs_, mlp.intercepts_, strict=True):
        if layers and mlp.activation != "identity":
            layers.append(_ACTIVATIONS[mlp.activation]())
        layers.append(_linear(weight, bias))
    if mlp.out_activation_ == "exp":  # a Poisson regression predicts means, not logits
        layers.append(Exponential())
    return nn.Sequential(*layers).eval(), _notes(mlp)


class Exponential(nn.Module):
    """The last step of a Poisson regression."""

    def forward(self, x: Tensor) -> Tensor:
        """Return exp(x)."""
        return x.exp()


def _linear(weight: Array, bias: Array) -> nn.Linear:
    inputs, outputs = weight.shape
    linear = nn.Linear(inputs, outputs, device="meta")  # draws no random numbers
    linear.weight = nn.Parameter(torch.from_numpy(weight.T.astype(np.float64)))
    linear.bias = nn.Parameter(torch.from_numpy(bias.astype(np.float64)))
    return linear


def _notes(mlp: Any) -> tuple[str, ...]:
    notes = []
    if mlp.out_activation_ not in ("identity", "exp"):
        notes.append(f"left off the final {mlp.out_activation_}: analysing the logits")
    names = classes_of(mlp)
    if names != tuple(range(len(names))):
        notes.append(f"its outputs stand for the classes {listed(names, 10)}, in this order")
    return tuple(notes)


def classes_of(mlp: Any) -> tuple[Name, ...]:
    """Return what the classes of a classifier are called; nothing for a regression."""
    return tuple(np.asarray(getattr(mlp, "classes_", ())).tolist())
