"""Map alignment: how alike the local linear maps of two networks vary over the examples."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.checks import Function
from inscape._core.result import CORRELATION, Range
from inscape.functional.jacobians import MEMORY
from inscape.similarity._pair import NO_OTHER, Other, Pair, paired_maps, perturbed
from inscape.similarity.linear_alignment import FEWEST, LinearAlignment, LinearMoments

UNDEFINED = "NaN where all local maps of one network are equal, and the alignment is 0 / 0"
EQUAL = (
    "all local maps of one network are equal (it is linear there), so that the alignment of "
    "centred maps is 0 / 0: pass centred=False to compare the maps with their mean"
)
ZERO = "all local maps of one network are zero, so that the alignment is 0 / 0"
#: Bytes of the sums that are held at once: further outputs are taken in another pass.
SUMS = 2**30


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MapAlignment(Result):
    """Linear CKA of the local maps of each output: debiased, biased as printed, and uncentred."""

    range: ClassVar[Range] = CORRELATION
    nonfinite: ClassVar = dict.fromkeys(("debiased", "biased", "uncentred"), UNDEFINED)

    debiased: Float64[Tensor, " c"]
    biased: Float64[Tensor, " c"]
    uncentred: Float64[Tensor, " c"]
    examples: int
    coefficients: int
    centred: bool = True

    def rows(self) -> Iterator[Row]:
        """Yield one row for each output."""
        columns = (self.debiased.tolist(), self.biased.tolist(), self.uncentred.tolist())
        for j, (debiased, biased, uncentred) in enumerate(zip(*columns, strict=True)):
            yield {"output": j, "debiased": debiased, "biased": biased, "uncentred": uncentred}

    def summary(self) -> Summary:
        """Return the mean over the outputs that have one: debiased, or uncentred if asked for."""
        values = self.debiased if self.centred else self.uncentred
        good = values[values.isfinite()]
        basis = f"{self.examples} examples, {len(good)} outputs"
        if self.centred:
            printed = float(self.biased[self.biased.isfinite()].mean())
            basis = f"{basis}; biased, as printed: {printed:.3g}"
        mean = min(1.0, max(-1.0, float(good.mean())))
        return Summary(value=mean, kind="exact", basis=basis)


@instrument(
    reads="pair",
    larger="more alike local maps",
    cost="seconds",
    work=lambda n, c: 2 * n * (2 + 2 * c),
    meaning="The local maps of both networks vary over the examples with an alignment (CKA) of "
    "{value}.",
    cites="sattelberg2026linearity, Eq. (7.7); kornblith2019similarity; song2012feature",
    example=perturbed,
    by_default=False,
    least_rows=FEWEST,
)
def map_alignment(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    other: Other = None,
    other_x: Float[Tensor, "m *e"] | None = None,
    centred: bool = True,
    memory: int = MEMORY,
) -> MapAlignment | NotApplicable:
    r"""Measure the linear centred kernel alignment of two networks' local maps.

    .. math:: \frac{1}{c} \sum_{j=1}^{c} \frac{\lVert C_j'^T C_j \rVert_F^2}
              {\lVert C_j^T C_j \rVert_F \, \lVert C_j'^T C_j' \rVert_F}

    where row ``i`` of :math:`C_j` holds gradient and intercept of output ``j`` at example ``i``,
    with centred columns. Exact for these examples, in float64. ``biased`` is the formula as
    printed, which is about d / (n + d) for maps that have nothing in common; ``debiased`` leaves
    that out; ``uncentred`` compares the maps with their mean. A linear network has one map, so
    that the centred forms are 0 / 0 for it: undefined, and "not applicable" if for all outputs.
    Invariant to orthogonal transforms of the input and to the scale of either network, not to its
    preprocessing. Costs a forward and ``c`` backward passes of both networks, and three products of
    (d + 1)² n multiplications for each output.

    Args:
        f: The first network.
        x: Examples, at least four.
        other: The second network; without one the result is "not applicable".
        other_x: The same examples as the second network takes them, where it takes another form.
        centred: Whether the summary is the debiased alignment of centred maps, or the uncentred.
        memory: Bytes that the working set of a batch may take; sums take up to 1 GiB beside it.

    >>> import torch
    >>> f = lambda x: x.relu().sum(1, keepdim=True)
    >>> points = torch.tensor([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [2.0, -1.0]])
    >>> round(map_alignment(f, points, other=lambda x: 3 * f(x)).summary().value, 12)
    1.0
    """
    checks.whole(1, memory=memory)
    checks.points(x)
    if other is None:
        return NotApplicable(what="map_alignment", reason=NO_OTHER)
    if len(x) < FEWEST:
        reason = f"the debiased alignment needs at least {FEWEST} examples, found {len(x)}"
        return NotApplicable(what="map_alignment", reason=reason)
    pair = paired_maps(f, x, other, other_x)
    alignments = _alignments(pair, memory)
    if all(math.isnan(a.debiased if centred else a.uncentred) for a in alignments):
        return NotApplicable(what="map_alignment", reason=EQUAL if centred else ZERO)
    names = ("debiased", "biased", "uncentred")
    columns = {name: [getattr(alignment, name) for alignment in alignments] for name in names}
    return MapAlignment(
        **{name: torch.tensor(column, dtype=torch.float64) for name, column in columns.items()},
        examples=len(x),
        coefficients=x[0].numel() + 1,
        centred=centred,
    )


def _alignments(pair: Pair, memory: int) -> list[LinearAlignment]:
    """Return the alignment of each output; as many at once as their sums fit into memory."""
    outputs, coefficients = pair.first.outputs, pair.x[0].numel() + 1
    together = max(1, min(outputs, SUMS // (3 * 8 * coefficients**2)))
    alignments = []
    for start in range(0, outputs, together):
        moments = [LinearMoments() for _ in range(start, min(start + together, outputs))]
        for first, second in pair.maps(max(FEWEST, pair.rows(memory))):
            for k, moment in enumerate(moments):
                moment.add(first[:, start + k], second[:, start + k])
        alignments += [moment.alignment() for moment in moments]
    return alignments
