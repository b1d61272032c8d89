"""Very many tiny networks: arrays in, arrays out, one compiled loop for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from inscape._core import checks
from inscape.ensembles.tiles.options import (
    ALIASES,
    LAWS,
    Given,
    Numbers,
    asked,
    layer_sizes,
    parameters,
    precision,
    seed_keys,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Tiny:
    """What became of the members of :func:`fit_tiny`.

    Attributes:
        weights: Weights of each member at its end, in the order of ``module(k).parameters()``.
        right: Points that these weights have right.
        best_right: The most points that were right at the end of any epoch.
        best_epoch: The first epoch, counted from 1, at whose end so many were right; 0 for a
            member that diverged before the end of its first.
        epochs: Epochs that were run to their end.
        stopped: Whether the rule asked for ended the training, and not the limit of epochs.
        loss: Mean loss of these weights over all points.
        diverged: Updates made before the first loss that was not finite; -1 where all were.
        sizes: Inputs, units of each hidden layer, outputs.
        activation: Of the hidden units.
        slope: Of the leaky ReLU below zero.
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
        """Say in a line what there is."""
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


def fit_tiny(
    sizes: Sequence[int],
    x: Given,
    y: Given,
    *,
    seeds: Numbers,
    weights: Given | None = None,
    init: str = "he_normal",
    activation: str = "leaky_relu",
    slope: float = 0.1,
    loss: str = "bce_logits",
    optimizer: str = "adam",
    lr: float = 0.025,
    betas: tuple[float, float] = (0.9, 0.999),
    momentum: float = 0.0,
    batch: int | None = None,
    epochs: int | Numbers = 4000,
    stop: str | None = "right",
    stop_at: float | Sequence[float] | Given | None = None,
    threshold: float = 0.0,
    dtype: torch.dtype = torch.float32,
    threads: int | None = None,
    progress: bool | None = None,
) -> Tiny:
    r"""Train very many small networks of one shape, each on its own data if need be.

    Each is an MLP with biases and one output, its steps those of ``torch.optim`` up to rounding.
    What a member becomes depends, bit for bit, on nothing but its own data, seed and settings:
    neither on its company nor on the number of threads. One that diverges does not disturb others.

    A point is *right* if the output is on the same side of ``threshold`` as the label; a label is
    above if it exceeds 1/2 (``"bce_logits"``) or ``threshold`` (``"mse"``), and an output that hits
    the threshold exactly is right for nobody. All rules look at the weights that an epoch ended
    with, and at all points; the weights that a rule was content with are those returned.

    >>> x = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    >>> both = fit_tiny((2, 3, 1), torch.tensor(x), torch.tensor([0, 0, 0, 1]), seeds=range(5))
    >>> both.right.tolist()
    [4, 4, 4, 4, 4]

    Args:
        sizes: Inputs, units of each hidden layer, and 1.
        x: Points for all, of shape (n, d), or for each, (members, n, d).
        y: Labels for all, of shape (n,), or for each, (members, n).
        seeds: One per member; its first weights and its shuffles come from it alone.
        weights: First weights of each, (members, p), in the order of ``parameters()``, instead of
            a draw.
        init: The law they are drawn from: ``"he_normal"``, ``"he_uniform"``, ``"glorot"``
            (``"glorot_uniform"``), all with biases zero, or ``"pytorch"`` (``"default"``); see
            :mod:`inscape.models.initialisation`. The numbers are those of a generator of our own,
            which :func:`tiny_weights` shows.
        activation: ``"relu"``, ``"leaky_relu"`` or ``"tanh"``.
        slope: Of the leaky ReLU below zero.
        loss: ``"bce_logits"``, for labels from 0 to 1, or ``"mse"``.
        optimizer: ``"adam"`` or ``"sgd"``.
        lr: Step size.
        betas: Of Adam.
        momentum: Of SGD.
        batch: Points per step, in an order drawn anew every epoch (:func:`tiny_order`); None takes
            all, as they are.
        epochs: Limit, for all or for each.
        stop: ``"right"`` (all points), ``"accuracy"`` (a share of at least ``stop_at``), ``"loss"``
            (a mean of at most ``stop_at``), or None to run to the limit.
        stop_at: What is enough, for all or for each.
        threshold: Between the two sides of the output.
        dtype: ``torch.float32`` or ``torch.float64``.
        threads: Number of threads; None takes PyTorch's.
        progress: Whether to show progress; None asks the environment, as all of the package does.
    """
    task = asked(
        sizes, x, y, seeds=seeds, weights=weights, init=init, activation=activation, slope=slope,
        loss=loss, optimizer=optimizer, lr=lr, betas=betas, momentum=momentum, batch=batch,
        epochs=epochs, stop=stop, stop_at=stop_at, threshold=threshold, dtype=dtype,
        threads=threads,
    )  # fmt: skip
    from inscape.ensembles.tiles.threads import train

    found = train(task, quiet=None if progress is None else not progress)
    return Tiny(**found, sizes=task.sizes, activation=activation, slope=slope)


def tiny_weights(
    sizes: Sequence[int],
    seeds: Numbers,
    *,
    init: str = "he_normal",
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "members p"]:
    """Return the weights that members of :func:`fit_tiny` start from.

    Each number is a hash of the seed and of its place, so a member's depend on its seed alone; how
    they are made is written in ``inscape.ensembles.tiles.random_numbers``.

    Args:
        sizes: Inputs, units of each hidden layer, and 1.
        seeds: One per member.
        init: Law, as there.
        dtype: ``torch.float32`` or ``torch.float64``.
    """
    from inscape.ensembles.tiles.random_numbers import all_weights

    checks.one_of((*LAWS, *ALIASES), init=init)
    sizes, keys = layer_sizes(sizes), seed_keys(seeds)
    rows = np.empty((len(keys), parameters(sizes)), precision(dtype))
    all_weights(keys, np.array(sizes, np.int64), LAWS.index(ALIASES.get(init, init)), rows)
    return torch.from_numpy(rows)


def tiny_order(points: int, seed: int, epoch: int) -> Int[Tensor, " n"]:
    """Return the order in which a member of :func:`fit_tiny` takes its points in an epoch.

    Args:
        points: How many there are.
        seed: Of the member.
        epoch: Counted from 0.
    """
    from inscape.ensembles.tiles.random_numbers import one_order

    checks.at_least(1, points=points)
    checks.at_least(0, epoch=epoch)
    places = np.empty(points, np.int32)
    one_order(seed_keys([seed])[0], epoch, places)
    return torch.from_numpy(places).long()
