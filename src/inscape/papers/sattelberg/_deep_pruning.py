"""Section 3.4.4's heuristic: nodes of deep networks are drawn by the loss without them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.papers.sattelberg._parity_pruning import fitted

Array = npt.NDArray[Any]
Layers = list[tuple[Array, Array]]

#: No network with a wrong point among 64 has so low a mean loss: 64 x 0.01 < ln 2.
ENOUGH = 0.01


@dataclass(frozen=True, eq=False)
class Option:
    """A smaller network that still solves parity, and its loss after fine-tuning."""

    layers: Layers
    loss: float


def unpacked(weights: Array, sizes: Sequence[int]) -> Layers:
    """Return matrices and biases from a row as ``parameters()`` gives them."""
    layers: Layers = []
    for inputs, outputs in pairwise(sizes):
        matrix, bias, weights = np.split(weights, [inputs * outputs, (inputs + 1) * outputs])
        layers.append((matrix.reshape(outputs, inputs), bias))
    return layers


def packed(layers: Layers) -> Array:
    """Return one row from matrices and biases."""
    return np.concatenate([part.reshape(-1) for layer in layers for part in layer])


def sizes_of(layers: Layers) -> tuple[int, ...]:
    """Return inputs, hidden widths and outputs."""
    return (layers[0][0].shape[1], *(len(bias) for _, bias in layers))


def without(layers: Layers, k: int, unit: int) -> Layers:
    """Return the network without one unit of hidden layer ``k``."""
    (matrix, bias), (after, other) = layers[k], layers[k + 1]
    cut = (np.delete(matrix, unit, 0), np.delete(bias, unit))
    return [*layers[:k], cut, (np.delete(after, unit, 1), other), *layers[k + 2 :]]


def folded(layers: Layers, k: int) -> Layers:
    """Return the network without hidden layer ``k``, as if its units were always on."""
    (matrix, bias), (after, other) = layers[k], layers[k + 1]
    return [*layers[:k], (after @ matrix, after @ bias + other), *layers[k + 2 :]]


def smaller(layers: Layers) -> Iterator[list[Layers]]:
    """Yield the networks with one node less, those of one shape together."""
    hidden = len(layers) - 1
    for k in range(hidden):
        width = len(layers[k][1])
        if width > 1:
            yield [without(layers, k, unit) for unit in range(width)]
        elif hidden > 1:
            yield [folded(layers, k)]


def options(layers: Layers, digits: int, epochs: int) -> list[Option]:
    """Fine-tune every network with one node less; return those that solve parity."""
    found: list[Option] = []
    for nets in smaller(layers):
        sizes = sizes_of(nets[0])
        rows = np.stack([packed(net) for net in nets])
        run = fitted(
            sizes, digits, epochs=epochs, seeds=[0] * len(rows), weights=rows, enough=ENOUGH
        )
        good = (run.right == 2**digits).numpy()
        found += [
            Option(unpacked(run.weights[k].numpy(), sizes), float(run.loss[k]))
            for k in np.flatnonzero(good).tolist()
        ]
    return found


def pruned(layers: Layers, digits: int, epochs: int, seed: int) -> tuple[int, ...]:
    """Take out nodes until none can go; return the hidden widths that are left."""
    rng = np.random.default_rng(seed)
    while found := options(layers, digits, epochs):
        scores = np.array([1 / max(option.loss, 1e-12) for option in found])
        layers = found[int(rng.choice(len(found), p=scores / scores.sum()))].layers
    return sizes_of(layers)[1:-1]
