"""The Boolean function of a network, from its truth table by the definitions."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import torch

from fuzz.calls import Call
from fuzz.claims import Claim, Unverifiable, equal, holds
from fuzz.reference import Reference


def boolean_function(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    n, level = result.n, call.settings.get("level", 0.0)
    corners = list(itertools.product([-1.0, 1.0], repeat=n))
    bits = []
    for corner in corners:
        y = f.value(torch.tensor(corner, dtype=torch.float64).reshape(call.shape))
        margin = float(y[1] - y[0]) if len(y) == 2 else float(y[0]) - level
        if abs(margin) < 1e3 * torch.finfo(call.network.dtype).eps * (1 + float(y.abs().max())):
            raise Unverifiable("an output on the threshold")
        bits.append(int(margin > 0))
    yield equal("inputs", n, torch.Size(call.shape).numel())
    yield holds("truth table", _table(result, n) == dict(zip(corners, bits, strict=True)))
    yield equal("influence", result.influence, _influence(n, corners, bits))
    spectrum = _spectrum(corners, bits)
    yield equal("degree", result.degree, max((len(s) for s, c in spectrum.items() if c), default=0))
    entropy = -sum(c * c * math.log2(c * c) for c in spectrum.values() if c)
    yield equal("entropy", result.entropy, entropy, scale=1.0)
    yield holds("swaps along its weights", _changes(result, corners, bits) == result.swaps)


def _table(result: Any, n: int) -> dict[tuple[float, ...], int]:
    """Return the truth table of the result: corner k of the library's own order has bit k."""
    from inscape.boolean.truth_table import points

    bits = result.table.bits
    return {tuple(map(float, point)): int(bits[k]) for k, point in enumerate(points(n))}


def _influence(n: int, corners: list[tuple[float, ...]], bits: list[int]) -> float:
    at = dict(zip(corners, bits, strict=True))
    flips = 0
    for corner in corners:
        for k in range(n):
            other = (*corner[:k], -corner[k], *corner[k + 1 :])
            flips += at[corner] != at[other]
    return flips / len(corners)


def _spectrum(corners: list[tuple[float, ...]], bits: list[int]) -> dict[tuple[int, ...], float]:
    """Return the Fourier coefficient of every subset of the inputs, for values of -1 and 1."""
    n = len(corners[0])
    subsets = itertools.chain(*(itertools.combinations(range(n), k) for k in range(n + 1)))
    return {
        subset: sum(
            (2 * b - 1) * math.prod(c[i] for i in subset)
            for c, b in zip(corners, bits, strict=True)
        )
        / len(corners)
        for subset in subsets
    }


def _changes(result: Any, corners: list[tuple[float, ...]], bits: list[int]) -> int:
    """Return how often the function changes along the line that the weights put corners on."""
    weights = result.weights.tolist()
    places: dict[float, set[int]] = {}
    for corner, bit in zip(corners, bits, strict=True):
        at = sum(w * c for w, c in zip(weights, corner, strict=True))
        places.setdefault(at, set()).add(bit)
    if any(len(seen) > 1 for seen in places.values()):
        return -1
    order = [places[at].pop() for at in sorted(places)]
    return sum(a != b for a, b in itertools.pairwise(order))
