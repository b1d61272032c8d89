"""Section 3.4.4: ReLU networks on n-parity, and their sub-networks, trained many at once."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.papers.sattelberg._seeds import own_seed

if TYPE_CHECKING:
    from inscape.ensembles.fit_tiny import Tiny

Array = npt.NDArray[Any]

SETTINGS_NOTE = (
    "Networks are trained as section 3.4 says, with ReLU instead of leaky ReLU: Adam at 0.025 on "
    "the whole table, logit cross entropy, He's normal initial weights with biases zero, at most "
    "4,000 epochs. A network succeeds when all points are right at the end of some epoch, and "
    "stops there."
)


def seeds(width: int, digits: int, trials: int, depth: int = 1) -> list[int]:
    """Return the seed of each network of a cell."""
    return [own_seed(width, digits, depth, trial) for trial in range(trials)]


def fitted(
    sizes: Sequence[int],
    digits: int,
    *,
    epochs: int,
    seeds: Sequence[int],
    weights: Any = None,
    enough: float | None = None,
) -> "Tiny":
    """Train networks of one shape on parity until all points are right, or the loss is enough."""
    from inscape.boolean.truth_table import parity
    from inscape.ensembles.fit_tiny import fit_tiny

    table = parity(digits)
    return fit_tiny(
        sizes,
        table.points,
        table.bits,
        seeds=seeds,
        weights=weights,
        activation="relu",
        slope=0.0,
        epochs=epochs,
        stop="right" if enough is None else "loss",
        stop_at=enough,
        threads=1,
        progress=False,
    )


def subsets(width: int, size: int) -> Array:
    """Return all ways to keep ``size`` of ``width`` units, one row each."""
    return np.array(list(combinations(range(width), size)))


def sub_networks(weights: Array, digits: int, width: int, kept: Array) -> Array:
    """Return the weights of the sub-networks of one hidden layer, a row for each row of ``kept``.

    Weights lie as ``parameters()`` gives them: of the hidden units, their biases, of the output,
    its bias.
    """
    first = weights[: width * digits].reshape(width, digits)
    biases, last, bias = np.split(weights[width * digits :], [width, 2 * width])
    rows = [first[kept].reshape(len(kept), -1), biases[kept], last[kept]]
    return np.concatenate([*rows, np.broadcast_to(bias, (len(kept), 1))], axis=1)


def smallest(weights: Array, digits: int, width: int, epochs: int) -> tuple[list[int], list[int]]:
    """Prune networks that solve parity exhaustively, all at once, size by size.

    Returns for each the smallest width at which a sub-network succeeds, and how many of them do.
    The whole network succeeds, so that the search ends.
    """
    widths, counts = [width] * len(weights), [1] * len(weights)
    left = list(range(len(weights)))
    for size in range(1, width):
        if not left:
            break
        kept = subsets(width, size)
        rows = np.concatenate([sub_networks(weights[k], digits, width, kept) for k in left])
        run = fitted((digits, size, 1), digits, epochs=epochs, seeds=[0] * len(rows), weights=rows)
        good = run.stopped.numpy().reshape(len(left), len(kept)).sum(1)
        for k, count in zip(left, good.tolist(), strict=True):
            if count:
                widths[k], counts[k] = size, count
        left = [k for k, count in zip(left, good.tolist(), strict=True) if not count]
    return widths, counts
