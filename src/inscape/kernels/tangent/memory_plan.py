"""Memory plan of a tangent kernel: blocks of samples and outputs, groups of weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Real
from torch import Tensor, nn

from inscape._core.anytime import most_rows
from inscape.errors import BudgetError
from inscape.kernels.tangent.factored_gradients import BLOCK_BYTES
from inscape.kernels.tangent.op_recorder import ParameterOp
from inscape.kernels.tangent.per_sample_ops import trial_call
from inscape.kernels.tangent.recorded_call import parameter_names
from inscape.kernels.tangent.vjp import ELEMENTWISE

#: Largest useful number of samples in a block.
LARGEST_BLOCK = 512


@dataclass(frozen=True, kw_only=True)
class WeightBytes:
    """Bytes of the gradients by one weight.

    ``stored`` and ``work`` are per output and sample: stored with those of other weights, and used
    temporarily for its products; ``point`` is per sample.
    """

    weight: str
    stored: int
    work: int
    point: int


@dataclass(frozen=True, kw_only=True)
class GradientBytes:
    """Bytes of the gradients by all weights, and of a forward pass, per sample."""

    layers: tuple[WeightBytes, ...]
    others: int
    call: int
    item_bytes: int

    def least(self, kind: str, sides: int, points: int, outputs: int) -> int:
        """Return the bytes of a block of samples and outputs, one weight at a time."""
        layer = max((outputs * (s.stored + s.work) + s.point for s in self.layers), default=0)
        pairs = {"full": outputs**2, "diagonal": outputs, "trace": 1}[kind] * points**2
        call = points * (self.call + max(layer, outputs * self.others))
        return sides * (call + self.item_bytes * pairs)

    def at_once(self, outputs: int) -> int:
        """Return the bytes of all gradients of one sample."""
        stored = sum(size.stored for size in self.layers) + self.others
        work = max((size.work for size in self.layers), default=0)
        return self.call + outputs * (stored + work) + sum(size.point for size in self.layers)


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """Samples and outputs of a block, groups of weights per VJP, bytes of a dense block."""

    points: int
    outputs: int
    groups: tuple[tuple[str, ...], ...]
    block_bytes: int


def gradient_bytes(model: nn.Module, x: Real[Tensor, "n *d"]) -> GradientBytes:
    """Return the bytes of gradients, measured by a trial on a few samples."""
    call = trial_call(model, x)
    n, item_bytes = len(call.y), call.y.element_size()
    parameters = {name: p.numel() for name, p in model.named_parameters()}
    layers: dict[str, list[ParameterOp]] = {}
    for op in call.ops:
        layers.setdefault(op.weight, []).append(op)
    return GradientBytes(
        layers=tuple(_weight_bytes(ops, parameters, n, item_bytes) for ops in layers.values()),
        others=3 * item_bytes * sum(parameters[name] for name in call.others),
        call=call.bytes // n,
        item_bytes=item_bytes,
    )


def _weight_bytes(
    ops: Sequence[ParameterOp], parameters: dict[str, int], n: int, item_bytes: int
) -> WeightBytes:
    first = ops[0]
    cotangent_size = sum(math.prod(op.shape) for op in ops) // n
    parameter_count = sum(parameters[name] for name in parameter_names(first))
    if first.kind in ELEMENTWISE:
        return WeightBytes(
            weight=first.weight,
            stored=item_bytes * parameter_count,
            work=item_bytes * 2 * cotangent_size,
            point=0,
        )
    channels = first.shape[1] if first.kind == "convolution" else first.shape[-1]
    fan_in = parameters[first.weight] // channels
    input_size = sum(op.a.numel() for op in ops) // n
    if first.kind == "convolution":
        input_size += fan_in * first.options["groups"] * cotangent_size // channels
    return WeightBytes(
        weight=first.weight,
        stored=item_bytes * cotangent_size,
        work=item_bytes * (cotangent_size + 2 * fan_in),
        point=item_bytes * input_size,
    )


def memory_plan(
    sizes: GradientBytes, kind: str, n: int, outputs: int, memory: int, *, symmetric: bool
) -> MemoryPlan:
    """Return the largest blocks that fit, or raise with the least memory.

    A full kernel is split by samples first, and by outputs only where one sample does not fit,
    since each pair of blocks is recomputed. Others pair equal outputs, and are split by outputs.
    """
    sides, largest = 1 if n == 1 and symmetric else 2, most_rows(LARGEST_BLOCK)
    counts, points = _halved(outputs), _halved(min(n, largest))
    unsplit = [(1, n, count) for count in (counts if kind != "full" else [outputs])]
    splits = [(sides, point, outputs) for point in points] + [(sides, 1, count) for count in counts]
    if kind != "full":
        splits = [(sides, point, count) for point in points for count in counts]
    for shape in [*(unsplit if symmetric and n <= largest else []), *splits]:
        if sizes.least(kind, *shape) <= memory:
            return _grouped(sizes, kind, *shape, memory)
    least = sizes.least(kind, sides, 1, 1)
    least_samples = "1 sample" if sides == 1 else "2 samples"
    raise BudgetError(
        f"the gradients of {least_samples} take {least:,} bytes, found memory={memory:,}: "
        "raise memory to at least that."
    )


def _halved(count: int) -> list[int]:
    """Return a count, and its halves down to 1."""
    return [-(-count // 2**k) for k in range((count - 1).bit_length() + 1)]


def _grouped(
    sizes: GradientBytes, kind: str, sides: int, points: int, outputs: int, memory: int
) -> MemoryPlan:
    """Group as many weights as memory holds, from the last layer on."""
    spare = memory - sizes.least(kind, sides, points, outputs)
    groups: list[list[str]] = [[]]
    remaining = spare
    for size in reversed(sizes.layers):
        stored = sides * points * outputs * size.stored
        if groups[-1] and stored > remaining:
            groups.append([])
            remaining = spare
        groups[-1].append(size.weight)
        remaining -= stored
    return MemoryPlan(
        points=points,
        outputs=outputs,
        groups=tuple(map(tuple, groups)),
        block_bytes=max(1, min(BLOCK_BYTES, memory // 8)),
    )
