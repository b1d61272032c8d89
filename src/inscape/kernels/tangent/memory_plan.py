"""How a kernel is computed within a given memory: blocks of points and outputs, groups of maps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Real
from torch import Tensor, nn

from inscape._core.anytime import most_rows
from inscape.errors import BudgetError
from inscape.kernels.tangent.factored_gradients import PIECE
from inscape.kernels.tangent.parameter_uses import names_of
from inscape.kernels.tangent.per_sample_maps import trial
from inscape.kernels.tangent.recorded_maps import Use
from inscape.kernels.tangent.vjp import ELEMENTWISE

#: Points of a block at most: larger ones gain nothing.
MOST = 512


@dataclass(frozen=True, kw_only=True)
class Size:
    """Bytes of the gradients by one weight.

    ``held`` and ``work`` belong to one output at one point, kept with those of other weights and
    taken while its products are made; ``point`` to one point.
    """

    weight: str
    held: int
    work: int
    point: int


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Bytes of the gradients by all weights, and of what a call keeps for one point."""

    layers: tuple[Size, ...]
    others: int
    call: int
    number: int

    def least(self, kind: str, sides: int, points: int, outputs: int) -> int:
        """Return the bytes of so many points and outputs on each side, one weight at a time."""
        layer = max((outputs * (s.held + s.work) + s.point for s in self.layers), default=0)
        pairs = {"full": outputs**2, "diagonal": outputs, "trace": 1}[kind] * points**2
        call = points * (self.call + max(layer, outputs * self.others))
        return sides * (call + self.number * pairs)

    def at_once(self, outputs: int) -> int:
        """Return the bytes of all gradients of one point."""
        held = sum(size.held for size in self.layers) + self.others
        work = max((size.work for size in self.layers), default=0)
        return self.call + outputs * (held + work) + sum(size.point for size in self.layers)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Points and outputs of a block, weights pulled back together, and bytes of a piece."""

    points: int
    outputs: int
    groups: tuple[tuple[str, ...], ...]
    piece: int


def sizes(model: nn.Module, x: Real[Tensor, "n *d"]) -> Sizes:
    """Return the bytes that gradients take, as a trial on a few points tells."""
    seen = trial(model, x)
    n, number = len(seen.y), seen.y.element_size()
    parameters = {name: p.numel() for name, p in model.named_parameters()}
    layers: dict[str, list[Use]] = {}
    for use in seen.uses:
        layers.setdefault(use.weight, []).append(use)
    return Sizes(
        layers=tuple(_size(uses, parameters, n, number) for uses in layers.values()),
        others=3 * number * sum(parameters[name] for name in seen.others),
        call=seen.bytes // n,
        number=number,
    )


def _size(uses: Sequence[Use], parameters: dict[str, int], n: int, number: int) -> Size:
    first = uses[0]
    back = sum(math.prod(use.shape) for use in uses) // n
    size = sum(parameters[name] for name in names_of(first))
    if first.kind in ELEMENTWISE:
        return Size(weight=first.weight, held=number * size, work=number * 2 * back, point=0)
    channels = first.shape[1] if first.kind == "convolution" else first.shape[-1]
    inside = parameters[first.weight] // channels
    into = sum(use.a.numel() for use in uses) // n
    if first.kind == "convolution":
        into += inside * first.options["groups"] * back // channels
    return Size(
        weight=first.weight,
        held=number * back,
        work=number * (back + 2 * inside),
        point=number * into,
    )


def plan(sizes: Sizes, kind: str, n: int, outputs: int, memory: int, *, symmetric: bool) -> Plan:
    """Return the largest blocks that fit, or say the least memory.

    A full kernel is split by points first, and by outputs only where one point is too much, since
    each pair of blocks is computed anew. Others pair equal outputs alone, and are split by outputs.
    """
    sides, most = 1 if n == 1 and symmetric else 2, most_rows(MOST)
    counts, points = _halved(outputs), _halved(min(n, most))
    whole = [(1, n, count) for count in (counts if kind != "full" else [outputs])]
    parts = [(sides, point, outputs) for point in points] + [(sides, 1, count) for count in counts]
    if kind != "full":
        parts = [(sides, point, count) for point in points for count in counts]
    for chosen in [*(whole if symmetric and n <= most else []), *parts]:
        if sizes.least(kind, *chosen) <= memory:
            return _grouped(sizes, kind, *chosen, memory)
    least = sizes.least(kind, sides, 1, 1)
    some = "1 point" if sides == 1 else "2 points"
    raise BudgetError(
        f"the gradients of {some} take {least:,} bytes, found memory={memory:,}: "
        "raise memory to at least that."
    )


def _halved(count: int) -> list[int]:
    """Return a count and what is left of it after halving it again and again."""
    return [-(-count // 2**k) for k in range((count - 1).bit_length() + 1)]


def _grouped(sizes: Sizes, kind: str, sides: int, points: int, outputs: int, memory: int) -> Plan:
    """Put as many weights together as memory holds, from the outputs on."""
    spare = memory - sizes.least(kind, sides, points, outputs)
    groups: list[list[str]] = [[]]
    left = spare
    for size in reversed(sizes.layers):
        held = sides * points * outputs * size.held
        if groups[-1] and held > left:
            groups.append([])
            left = spare
        groups[-1].append(size.weight)
        left -= held
    return Plan(
        points=points,
        outputs=outputs,
        groups=tuple(map(tuple, groups)),
        piece=max(1, min(PIECE, memory // 8)),
    )
