"""Section 3.4.3's functions of more inputs: parity, four-input classes XORed with it, random ones.

Numbers stand for functions: index 0 is the parity; of the others as many are taken as asked for,
spread evenly over the 222 classes, or with seeds from 0 on.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.papers.sattelberg._npn_metrics import INPUTS, classes

if TYPE_CHECKING:
    from inscape.boolean import TruthTable

Array = npt.NDArray[Any]

KINDS = ("parity", "xor", "random")
LOOKS = {"parity": "parity", "xor": "class XOR parity", "random": "random"}


def chosen(kind: str, xor: int, random: int) -> list[int]:
    """Return the indices of the functions of a kind that are taken."""
    if kind == "parity":
        return [0]
    if kind == "random":
        return list(range(random))
    total = len(classes())
    return sorted({round(k * (total - 1) / max(1, xor - 1)) for k in range(min(xor, total))})


def function(kind: str, index: int, n: int) -> "TruthTable":
    """Return one function of ``n`` inputs."""
    from inscape import boolean

    if kind == "parity":
        return boolean.parity(n)
    if kind == "xor":
        return boolean.with_parity(boolean.table(classes()[index], INPUTS), n)
    return boolean.random(n, seed=1000 * n + index)


@cache
def tables(kind: str, indices: tuple[int, ...], n: int) -> Array:
    """Return truth tables, one row for each function."""
    return np.stack([function(kind, index, n).bits for index in indices])


def metrics(kind: str, indices: tuple[int, ...], n: int) -> dict[str, Array]:
    """Return degree, influence and entropy of each function."""
    from inscape import boolean

    return boolean.metrics([function(kind, index, n).number for index in indices], n)


def trained(
    kind: str,
    indices: tuple[int, ...],
    trials: range,
    *,
    n: int,
    width: int,
    depth: int,
    epochs: int,
) -> Any:
    """Train leaky ReLU networks on functions of a kind, some trials of each."""
    from inscape import boolean
    from inscape.papers.sattelberg import _trials

    about = (n, width, depth, _trials.per_mille(_trials.LEAK), KINDS.index(kind))
    return _trials.trained(
        tables(kind, indices, n),
        boolean.points(n),
        width=width,
        depth=depth,
        leak=_trials.LEAK,
        seeds=_trials.member_seeds(indices, trials, *about),
        epochs=epochs,
    )
