"""The network of a toy setup, its loss, and what else its training pays for."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from inscape.controls import (
    gradient_norm_penalty,
    gradient_path_length_penalty,
    length_scale,
    norm_bias_penalty,
    path_length_penalty,
    symmetric,
    weight_decay,
    weights_product_penalty,
)
from inscape.explorer.toy.points import ToyPoints
from inscape.explorer.toy.setup import ToySetup
from inscape.models import mlp
from inscape.training import FitOptions
from inscape.training.update import Update

Penalty = Callable[[nn.Module, Tensor], Tensor]

PENALTIES: dict[str, Penalty] = {
    "weight-decay": weight_decay,
    "gradient-norm": gradient_norm_penalty,
    "path-length": path_length_penalty,
    "gradient-path-length": gradient_path_length_penalty,
    "weights-product": weights_product_penalty,
}


def toy_network(setup: ToySetup, classes: int) -> nn.Module:
    """Return the network of a setup as it is initialised; two classes share one output."""
    outputs = classes if classes > 2 else 1
    model: nn.Module = mlp(
        2, *setup.hidden, outputs, activation=setup.activation, init=setup.init,
        scale=setup.scale, seed=setup.seed, dtype=torch.float64,
    )  # fmt: skip
    if setup.shift or setup.bias:
        _place_biases(model, setup)
    if setup.control == "length-scale":
        model = length_scale(model, setup.sigma)
    return symmetric(model) if setup.symmetric else model


@torch.no_grad()
def _place_biases(model: nn.Module, setup: ToySetup) -> None:
    """Draw the biases of the hidden layers from an interval around the shift."""
    draw = torch.Generator().manual_seed(setup.seed)
    layers = [part for part in model.modules() if isinstance(part, nn.Linear)]
    for layer in layers[:-1]:
        u = torch.rand(len(layer.bias), generator=draw, dtype=torch.float64)
        layer.bias.copy_(setup.shift + setup.bias * (2 * u - 1))


def toy_update(setup: ToySetup, model: nn.Module, points: ToyPoints) -> tuple[Update, Tensor]:
    """Return the update of a training, and the targets in the form of its loss."""
    loss, targets = loss_of(setup, points)
    penalties: list[tuple[float, Penalty]] = []
    if setup.control == "norm-bias":
        penalties.append((setup.strength, partial(norm_bias_penalty, mu=setup.mu)))
    if setup.penalty != "none":
        penalties.append((setup.coefficient, PENALTIES[setup.penalty]))
    options = FitOptions(
        loss=loss, optimizer=setup.optimizer, lr=setup.lr, batch=setup.batch or None,
        penalties=penalties, momentum=setup.momentum if setup.optimizer == "sgd" else 0.0,
    )  # fmt: skip
    return Update.of(model, options, seed=setup.seed, points=len(points.x)), targets


def loss_of(setup: ToySetup, points: ToyPoints) -> tuple[str, Tensor]:
    """Return the name of the loss and the targets: of two classes -1 and 1, or 0 and 1."""
    if points.classes > 2:
        return "cross_entropy", points.y
    if points.classes == 0:
        return "mse", points.y
    above = points.y.double()[:, None]
    return ("mse", 2 * above - 1) if setup.loss == "mse" else ("bce_logits", above)
