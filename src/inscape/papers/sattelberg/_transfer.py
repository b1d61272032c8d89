r"""Least squares from the maps of each network to those of each other one, eq. 7.4.

Of the fit only its outputs at test points are needed. With :math:`\tilde x` a test image and a 1,
:math:`\tilde c` the source's map there and :math:`M = (C^T C + \lambda)^{-1} C^T C'`,

.. math:: \tilde c^T M \tilde x =
          \bigl[\tilde c^T (C^T C + \lambda)^{-1} C^T\bigr] \bigl[C' \tilde x\bigr],

where the first bracket belongs to the source alone and the second to the target alone: the cost
grows with the networks, not with their pairs.
"""

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.papers.sattelberg._maps import Maps

#: Penalty, relative to the mean square of a coefficient: without it, directions in which the maps
#: do not vary, as those of one layer beyond its units, would have any slope.
RIDGE = 1e-10
#: Training images that are multiplied at once.
ROWS = 1000


def solved(maps: Float64[Tensor, "n D"], right: Float64[Tensor, "D m"]) -> Float64[Tensor, "D m"]:
    """Return the penalised inverse of the products of coefficients, times a matrix."""
    products = maps.T @ maps
    products.diagonal().add_(RIDGE * products.diagonal().mean())
    solution: Tensor = torch.cholesky_solve(right, torch.linalg.cholesky(products))
    return solution


def mapped(
    training: list[Float64[Tensor, "n D"]],
    testing: list[Float64[Tensor, "m D"]],
    inputs: Float64[Tensor, "m D"],
) -> Float64[Tensor, "k k m"]:
    """Return one output of all pairs at test images: mapped from the first to the second.

    Args:
        training: Maps of each network at training images.
        testing: Maps of each network at test images.
        inputs: The test images, each with a 1 behind.
    """
    found = torch.zeros(len(training), len(training), len(inputs), dtype=torch.float64)
    sources = [solved(maps, tests.T).T for maps, tests in zip(training, testing, strict=True)]
    for start in range(0, len(training[0]), ROWS):
        rows = slice(start, start + ROWS)
        targets = [inputs @ maps[rows].T for maps in training]
        for i, source in enumerate(sources):
            weights = source @ training[i][rows].T
            for j, target in enumerate(targets):
                found[i, j] += (weights * target).sum(1)
    return found


def mapped_outputs(training: list[Maps], testing: list[Maps]) -> Float64[Tensor, "k k m c"]:
    """Return all outputs of all pairs at the test images, one output at a time."""
    inputs, outputs = testing[0].inputs(), testing[0].outputs.shape[1]
    parts = [
        mapped(
            [network.of(output) for network in training],
            [network.of(output) for network in testing],
            inputs,
        )
        for output in range(outputs)
    ]
    return torch.stack(parts, dim=-1)


def mapped_maps(training: tuple[Maps, Maps], testing: Maps, output: int) -> Float64[Tensor, "m D"]:
    """Return the maps of one output at test images, mapped from the first network to the second.

    Args:
        training: Both networks, at training images.
        testing: The first network, at test images.
        output: Which output.
    """
    first, second = (network.of(output) for network in training)
    return testing.of(output) @ solved(first, first.T @ second)
