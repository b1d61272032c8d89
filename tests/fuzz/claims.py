"""What a result says beside what brute force says, and how far rounding may keep them apart."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fuzz.calls import Call
from fuzz.reference import Reference


@dataclass(frozen=True, eq=False)
class Claim:
    """A statement about a result.

    ``relation`` is ``"="``, ``"<="`` or ``">="`` between what was found and what is expected, up to
    rounding. ``scale`` is the size of the numbers that were added up, by default that of the
    expected ones.
    """

    name: str
    found: Tensor
    expected: Tensor
    relation: str = "="
    scale: float = 0.0

    def excess(self) -> Tensor:
        """Return by how much the statement is missed."""
        gap = self.found - self.expected
        if self.relation == "=":
            return gap.abs()
        return gap if self.relation == "<=" else -gap


def equal(name: str, found: Any, expected: Any, *, scale: float = 0.0) -> Claim:
    """Claim that two arrays are equal up to rounding."""
    return Claim(name, tensor(found), tensor(expected), "=", scale)


def at_most(name: str, found: Any, expected: Any, *, scale: float = 0.0) -> Claim:
    """Claim that numbers do not exceed others."""
    return Claim(name, tensor(found), tensor(expected), "<=", scale)


def at_least(name: str, found: Any, expected: Any, *, scale: float = 0.0) -> Claim:
    """Claim that numbers are not below others."""
    return Claim(name, tensor(found), tensor(expected), ">=", scale)


def holds(name: str, truth: bool) -> Claim:
    """Claim a plain fact."""
    return Claim(name, tensor(1.0 if truth else 0.0), tensor(1.0))


def tensor(values: Any) -> Tensor:
    """Return numbers as a float64 tensor."""
    if isinstance(values, Tensor):
        return values.detach().double()
    return torch.as_tensor(values, dtype=torch.float64)


Oracle = Callable[[Call, Reference, Any], Iterator[Claim]]

#: Rounding that is granted without a look at how sensitive a quantity is, in machine epsilons.
PLAIN = 64.0
#: How many perturbed networks say how sensitive it is: a few, and many before an answer is wrong.
FEW, MANY = 6, 48
#: Times the largest move among perturbed networks.
FACTOR = 8.0


class Unverifiable(Exception):
    """Brute force itself has overflowed, or does not know."""


def wrong(call: Call, oracle: Oracle, result: Any, dtype: torch.dtype) -> str:
    """Return which statement of a result is wrong, and by how much; an empty text if none is."""
    claims = list(oracle(call, Reference(call.network), result))
    failing = _failing(claims, [], dtype)
    for replicates in (FEW, MANY):
        if not failing:
            return ""
        others = [
            list(oracle(call, Reference(call.network, dtype, seed, seed % 2 == 0), result))
            for seed in range(1, replicates + 1)
        ]
        failing = _failing(claims, others, dtype)
    return failing


def _failing(claims: list[Claim], others: list[list[Claim]], dtype: torch.dtype) -> str:
    info = torch.finfo(dtype)
    for k, claim in enumerate(claims):
        if claim.found.shape != claim.expected.shape:
            return f"{claim.name}: shape {tuple(claim.found.shape)}, {tuple(claim.expected.shape)}"
        if claim.expected.numel() == 0:
            continue
        if not bool(claim.expected.isfinite().all()):
            raise Unverifiable(claim.name)
        size = max(claim.scale, float(claim.expected.abs().max()))
        allowed = PLAIN * (info.eps * size + info.smallest_normal)
        moves = torch.zeros_like(claim.expected)
        for replicate in others:
            if k < len(replicate) and replicate[k].expected.shape == moves.shape:
                moved = replicate[k].expected - claim.expected + claim.found - replicate[k].found
                moves = torch.maximum(moves, moved.abs().nan_to_num(torch.inf))
        excess = claim.excess() - allowed - FACTOR * moves
        if not bool((excess <= 0).all()):
            worst = int(excess.nan_to_num(torch.inf).argmax())
            found, expected = claim.found.flatten()[worst], claim.expected.flatten()[worst]
            return (
                f"{claim.name}[{worst}] = {found:.12g}, brute force {claim.relation} "
                f"{expected:.12g} (rounding {float(moves.flatten()[worst]):.2g})"
            )
    return ""
