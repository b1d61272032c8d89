"""Losses of many small networks at every epoch, trained side by side."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Array = npt.NDArray[Any]


def loss_curves(
    weights: Array, x: Array, y: Array, *, width: int, epochs: int, lr: float = 0.025
) -> tuple[Array, Array]:
    """Train networks of one hidden ReLU layer with Adam, each on its own.

    Args:
        weights: First weights, a row for each network as ``parameters()`` gives them.
        x: Points.
        y: Classes 0 and 1.
        width: Hidden units.
        epochs: Steps, each with all points.
        lr: Step size.

    Returns:
        Loss before each step, (epochs + 1, networks), and the first epoch at whose end all points
        were right, -1 where there is none.
    """
    members, digits = len(weights), x.shape[1]
    parts = np.split(weights, [width * digits, width * (digits + 1), width * (digits + 2)], axis=1)
    shapes = ((members, width, digits), (members, width, 1), (members, 1, width), (members, 1, 1))
    first, biases, last, bias = leaves = [
        torch.tensor(part, dtype=torch.float32).reshape(shape).requires_grad_()
        for part, shape in zip(parts, shapes, strict=True)
    ]
    points, classes = torch.tensor(x, dtype=torch.float32).T, torch.tensor(y).bool()
    signs = torch.where(classes, 1.0, -1.0)
    optimizer = torch.optim.Adam(leaves, lr)
    losses = torch.empty(epochs + 1, members)
    solved = torch.full((members,), -1)
    for epoch in range(epochs + 1):
        logits = (last @ torch.relu(first @ points + biases) + bias)[:, 0]
        margins = signs * logits
        loss = torch.nn.functional.softplus(-margins).mean(1)
        losses[epoch] = loss.detach()
        done = (margins.detach() > 0).all(1) & (solved < 0)
        solved[done] = epoch
        if epoch < epochs:
            optimizer.zero_grad()
            torch.autograd.backward(loss.sum())
            optimizer.step()
    return losses.numpy(), solved.numpy()
