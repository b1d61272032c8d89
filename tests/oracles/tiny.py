"""One tiny network at a time in plain PyTorch: slow, and plain to see."""

import math
from itertools import pairwise

import torch
from torch import nn

from inscape.ensembles.fit_tiny import tiny_order, tiny_weights

ACTIVATIONS = {
    "relu": lambda slope: nn.ReLU(),
    "leaky_relu": nn.LeakyReLU,
    "tanh": lambda slope: nn.Tanh(),
}


def network(sizes, weights, activation="leaky_relu", slope=0.1):
    layers = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs, dtype=weights.dtype), ACTIVATIONS[activation](slope)]
    model = nn.Sequential(*layers[:-1])
    nn.utils.vector_to_parameters(weights.clone(), model.parameters())
    return model


def plain(
    sizes, x, y, *, seed, weights=None, activation="leaky_relu", slope=0.1, loss="bce_logits",
    optimizer="adam", lr=0.025, betas=(0.9, 0.999), momentum=0.0, batch=None, epochs=10,
    stop="right", stop_at=None, threshold=0.0,
):  # fmt: skip
    """Train one network; return its weights and a dictionary of facts."""
    if weights is None:
        weights = tiny_weights(sizes, [seed], dtype=x.dtype)[0]
    model = network(sizes, weights, activation, slope)
    if optimizer == "adam":
        steps = torch.optim.Adam(model.parameters(), lr, betas)
    else:
        steps = torch.optim.SGD(model.parameters(), lr, momentum)
    criterion = {
        "bce_logits": nn.functional.binary_cross_entropy_with_logits,
        "mse": nn.functional.mse_loss,
    }[loss]
    above = y > (0.5 if loss == "bce_logits" else threshold)
    count, best, best_epoch = 0, 0, 0
    for epoch in range(epochs):
        order = torch.arange(len(x)) if batch is None else tiny_order(len(x), seed, epoch)
        for rows in order.split(batch or len(x)):
            steps.zero_grad()
            value = criterion(model(x[rows])[:, 0], y[rows])
            if not math.isfinite(value.item()):
                return model, {"diverged": count, "epochs": epoch, "stopped": False}
            value.backward()
            steps.step()
            count += 1
        with torch.no_grad():
            out = model(x)[:, 0]
            value = criterion(out, y).item()
        right = int(torch.where(above, out > threshold, out < threshold).sum())
        if epoch == 0 or right > best:
            best, best_epoch = right, epoch + 1
        content = {
            "right": right == len(x),
            "accuracy": stop_at is not None and right / len(x) >= stop_at,
            "loss": stop_at is not None and value <= stop_at,
            None: False,
        }[stop]
        if content:
            break
    return model, {
        "right": right,
        "best_right": best,
        "best_epoch": best_epoch,
        "epochs": epoch + 1,
        "stopped": content,
        "loss": value,
        "diverged": -1,
    }


def flat(model):
    return nn.utils.parameters_to_vector(model.parameters()).detach()
