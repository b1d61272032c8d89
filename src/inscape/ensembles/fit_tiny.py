"""Training of very many tiny networks in one compiled loop: arrays in, arrays out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Unpack

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from inscape._core import checks
from inscape.ensembles.tiles.arguments import (
    distribution_code,
    kernel_arguments,
    layer_sizes,
    parameters,
    precision,
    seed_keys,
)
from inscape.ensembles.tiles.options import Integers, TinyKeywords, TinyOptions, Values
from inscape.training.options import shows_options


@dataclass(frozen=True, eq=False, kw_only=True)
class Tiny:
    """The trained members of :func:`fit_tiny`.

    Attributes:
        weights: Final weights of each member, in the order of ``module(k).parameters()``.
        right: Number of points that these weights have right.
        best_right: Largest number of points right at the end of any epoch.
        best_epoch: The first epoch, counted from 1, at whose end so many were right; 0 for a
            member that diverged before the end of its first.
        epochs: Epochs that were completed.
        stopped: Whether the stop rule ended the training, and not the largest number of epochs.
        loss: Mean loss of these weights over all points.
        diverged: Updates before the first loss that was not finite; -1 if all losses were finite.
        sizes: Inputs, units of each hidden layer, outputs.
        activation: Activation of the hidden units.
        slope: Slope of the leaky ReLU below zero.
    """

    weights: Float[Tensor, "members p"]
    right: Int[Tensor, " members"]
    best_right: Int[Tensor, " members"]
    best_epoch: Int[Tensor, " members"]
    epochs: Int[Tensor, " members"]
    stopped: Bool[Tensor, " members"]
    loss: Float[Tensor, " members"]
    diverged: Int[Tensor, " members"]
    sizes: tuple[int, ...]
    activation: str
    slope: float

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self.weights)

    def __repr__(self) -> str:
        """Return a summary in one line."""
        name = "-".join(map(str, self.sizes))
        return f"Tiny({len(self)} networks {name}, {int(self.stopped.sum())} stopped by their rule)"

    def module(self, k: int) -> nn.Sequential:
        """Return member ``k`` as a module in eval mode."""
        layers: list[nn.Module] = []
        rest = self.weights[k]
        for inputs, outputs in pairwise(self.sizes):
            layer = nn.Linear(inputs, outputs, device="meta", dtype=rest.dtype).to_empty(
                device="cpu"
            )
            with torch.no_grad():
                for parameter in layer.parameters():
                    own, rest = rest.tensor_split([parameter.numel()])
                    parameter.copy_(own.view_as(parameter))
            layers += [layer, self._activation()]
        return nn.Sequential(*layers[:-1]).eval()

    def _activation(self) -> nn.Module:
        match self.activation:
            case "relu":
                return nn.ReLU()
            case "leaky_relu":
                return nn.LeakyReLU(self.slope)
        return nn.Tanh()


@shows_options(TinyOptions)
def fit_tiny(
    sizes: Sequence[int],
    x: Values,
    y: Values,
    *,
    seeds: Integers,
    weights: Values | None = None,
    **options: Unpack[TinyKeywords],
) -> Tiny:
    r"""Train very many small networks of one architecture, each on its own data if need be.

    Each is an MLP with biases and one output, its steps those of ``torch.optim`` up to rounding.
    A member depends, bit for bit, on nothing but its own data, seed and options: neither on the
    other members nor on the number of threads. One that diverges does not disturb the others.

    A point is *right* if the output is on the same side of ``threshold`` as the label; a label is
    above if it exceeds 1/2 (``"bce_logits"``) or ``threshold`` (``"mse"``), and an output equal to
    the threshold is never right. All stop rules read the weights at the end of an epoch, and all
    points; the weights at which a rule stopped the training are those returned.

    >>> x = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    >>> both = fit_tiny((2, 3, 1), torch.tensor(x), torch.tensor([0, 0, 0, 1]), seeds=range(5))
    >>> both.right.tolist()
    [4, 4, 4, 4, 4]

    Args:
        sizes: Inputs, units of each hidden layer, and 1.
        x: Points for all, of shape (n, d), or for each, (members, n, d).
        y: Labels for all, of shape (n,), or for each, (members, n).
        seeds: One per member; its initial weights and its shuffles come from it alone.
        weights: Initial weights of each, (members, p), in the order of ``parameters()``, instead of
            a draw.
        **options: The options of :class:`TinyOptions`, where each is explained:
            ``init="he_normal"``, ``activation="leaky_relu"``, ``slope=0.1``,
            ``loss="bce_logits"``, ``optimizer="adam"``, ``lr=0.025``, ``betas=(0.9, 0.999)``,
            ``momentum=0.0``, ``batch=None``, ``epochs=4000``, ``stop="right"``, ``stop_at=None``,
            ``threshold=0.0``, ``dtype=torch.float32``, ``threads=None``, ``progress=None``.
    """
    chosen = TinyOptions(**options)
    arguments = kernel_arguments(sizes, x, y, seeds, weights, chosen)
    from inscape.ensembles.tiles.threads import train

    outcome = train(arguments, quiet=chosen.shared().quiet)
    return Tiny(**outcome, sizes=arguments.sizes, activation=chosen.activation, slope=chosen.slope)


def tiny_weights(
    sizes: Sequence[int],
    seeds: Integers,
    *,
    init: str = "he_normal",
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "members p"]:
    """Return the initial weights of members of :func:`fit_tiny`.

    Each is a hash of the seed and of its place, so that a member's weights depend on its seed
    alone; ``inscape.ensembles.tiles.random_numbers`` says how.

    Args:
        sizes: Inputs, units of each hidden layer, and 1.
        seeds: One per member.
        init: Distribution, as in :class:`TinyOptions`.
        dtype: ``torch.float32`` or ``torch.float64``.
    """
    from inscape.ensembles.tiles.random_numbers import all_weights

    distribution = distribution_code(init)
    sizes, keys = layer_sizes(sizes), seed_keys(seeds)
    weights = np.empty((len(keys), parameters(sizes)), precision(dtype))
    all_weights(keys, np.array(sizes, np.int64), distribution, weights)
    return torch.from_numpy(weights)


def tiny_order(points: int, seed: int, epoch: int) -> Int[Tensor, " n"]:
    """Return the order of the points of a member of :func:`fit_tiny` in an epoch.

    Args:
        points: Number of points.
        seed: Seed of the member.
        epoch: Number of the epoch, counted from 0.
    """
    from inscape.ensembles.tiles.random_numbers import one_order

    checks.at_least(1, points=points)
    checks.at_least(0, epoch=epoch)
    places = np.empty(points, np.int32)
    one_order(seed_keys([seed])[0], epoch, places)
    return torch.from_numpy(places).long()
