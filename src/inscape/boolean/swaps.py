"""Swaps: how often a Boolean function changes along a line, at the least."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int64
from torch import Tensor

from inscape._core import Result, Row, Summary, checks
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape.boolean import orders
from inscape.boolean._words import words as as_words
from inscape.boolean.truth_table import TruthTable, points
from inscape.runtime.progress import progress

Array = npt.NDArray[Any]

#: Functions that are searched between two updates of the progress bar.
BLOCK = 1024


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Swaps(Result):
    """Integer weights that order the inputs on a line, and how often the function changes there."""

    range: ClassVar[Range] = NONNEGATIVE

    n: int
    number: int
    swaps: int
    weights: Int64[Tensor, " n"]
    kind: Kind

    @property
    def order(self) -> Int64[Tensor, " inputs"]:
        """Indices of the inputs from left to right."""
        return torch.from_numpy(np.argsort(points(self.n) @ self.weights.numpy(), kind="stable"))

    def rows(self) -> Iterator[Row]:
        """Yield one row for each input, from left to right."""
        bits = TruthTable(self.n, self.number).bits
        sums = points(self.n) @ self.weights.numpy()
        for index in self.order.tolist():
            name = f"{index:0{self.n}b}"
            yield {"input": name, "at": float(sums[index]), "value": int(bits[index])}

    def summary(self) -> Summary:
        """Return the number of changes."""
        basis = f"{self.n} inputs, weights {' '.join(map(str, self.weights.tolist()))}"
        return Summary(value=float(self.swaps), kind=self.kind, basis=basis)


@dataclass(frozen=True, eq=False)
class ManySwaps:
    """Swaps of many functions, with weights that show each, and a bound below it.

    ``chains`` is what chains of inputs that all ascending weights leave in order prove by
    themselves, without any list of orders.
    """

    swaps: Array
    weights: Array
    chains: Array


def changes(function: TruthTable, weights: Sequence[int] | Array) -> int:
    """Count how often a function changes when its inputs are ordered by integer weights.

    Exact. Inputs of equal sum are one point of the line and must have equal values (Eq. 3.8).

    >>> from inscape.boolean.truth_table import parity
    >>> changes(parity(4), [1, 1, 1, 1])
    4
    """
    vector = np.asarray(weights)
    if vector.shape != (function.n,) or vector.dtype.kind not in "iu":
        raise ValueError(
            f"weights must be {function.n} integers, one for each input, found "
            f"{vector.tolist()}: scale and round them."
        )
    small = sum(abs(weight) for weight in vector.tolist()) < 1 << 62
    kind = np.int64 if small else object  # Python's integers do not overflow
    sums = points(function.n).astype(np.int64).astype(kind) @ vector.astype(kind)
    order = np.argsort(sums, kind="stable")
    moved, changed = np.diff(sums[order]) > 0, np.diff(function.bits[order].astype(int)) != 0
    if bool((changed & ~moved).any()):
        raise ValueError(
            f"weights must tell inputs of different value apart, found equal sums with "
            f"{vector.tolist()}: change one of them a little."
        )
    return int(changed.sum())


def swaps(function: TruthTable) -> Swaps:
    r"""Return the least number of class changes along a line, and weights that reach it.

    .. math:: \min_w \#\{i : f(x_i) \ne f(x_{i+1})\}, \qquad
              w^\top x_1 \le w^\top x_2 \le \ldots \le w^\top x_{2^n}

    over the weights that give no two inputs of different value the same sum (Eqs. 3.8-3.10).
    Exact for at most six inputs: ties of inputs of equal value can be perturbed away, so that only
    the orders without ties count, which are all searched; the printed list of cases lacks some
    (S2). Cost: milliseconds, and a second to list the orders of six inputs.

    Args:
        function: The function.

    >>> from inscape.boolean.truth_table import parity, table
    >>> swaps(parity(4)).swaps, swaps(table(1785, 4)).swaps
    (4, 5)
    """
    orders.check_inputs(function.n)
    least = swaps_many([function.number], function.n, threads=1)
    weights = torch.from_numpy(least.weights[0])
    if changes(function, least.weights[0]) != least.swaps[0]:
        raise RuntimeError(
            f"weights {weights.tolist()} do not give the {least.swaps[0]} swaps found for function "
            f"{function.number} of {function.n} inputs: this is a fault of ours, report it."
        )
    return Swaps(
        n=function.n,
        number=function.number,
        swaps=int(least.swaps[0]),
        weights=weights,
        kind="exact",
    )


def swaps_many(numbers: Sequence[int] | Array, n: int, *, threads: int | None = None) -> ManySwaps:
    """Return the swaps of many functions of ``n`` inputs; see ``swaps``.

    Args:
        numbers: Numbers of the functions.
        n: Number of inputs, at most six.
        threads: How many threads search at once; all cores by default. The answer is the same.
    """
    from inscape.boolean._search_kernels import least_changes

    orders.check_inputs(n)
    checks.at_least(1, threads=1 if threads is None else threads)
    words = as_words(numbers, n)
    tree = orders.trie(n)
    tables = (orders.placements(n), orders.covers(n), tree.subset, tree.depth, tree.after)
    blocks = [words[at : at + BLOCK] for at in range(0, len(words), BLOCK)]
    searched = []
    with (
        ThreadPoolExecutor(threads or os.cpu_count()) as pool,
        progress(len(words), label=f"swaps of {n} inputs") as bar,
    ):
        for block in pool.map(lambda block: least_changes(block, *tables), blocks):
            searched.append(block)
            bar.advance(len(block))
    least, permutation, negated, node, chains = np.concatenate(
        searched or [np.zeros((0, 5), dtype=np.int64)]
    ).T
    return ManySwaps(
        swaps=least.copy(),
        weights=_signed(orders.weights(n)[tree.order[node]], permutation, negated, n),
        chains=chains.copy(),
    )


def _signed(rows: Array, permutation: Array, negated: Array, n: int) -> Array:
    """Return the weights of an order, assigned to their inputs, with their signs.

    The permutation takes digit b, of weight b, to digit ``to[b]``; digits count from the last
    input. Words count the inputs from the right, which turns the line round and changes nothing.
    """
    to = np.array(list(permutations(range(n))))[permutation]
    signs = 1 - 2 * (negated[:, None] >> to & 1)
    weights = np.zeros_like(rows)
    np.put_along_axis(weights, n - 1 - to, signs * rows, axis=1)
    return weights
