"""Lipschitz constant: a bound that no slope exceeds, and the steepest place that was found."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import (
    Result,
    Row,
    Summary,
    UnsupportedModelError,
    checks,
    instrument,
)
from inscape._core.anytime import anytime, most_rows
from inscape._core.precision import converted_copy
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape._core.sampling import draw_numbers
from inscape.controls._linear_maps import Graph
from inscape.controls._lipschitz_bounds import upper_bounds
from inscape.controls._steepest_chord import ROUNDING, Chord, steepest_chords
from inscape.functional.jacobians import MEMORY, probe


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Lipschitz(Result):
    """The steepest chord that was found, and upper bounds of all chords.

    ``bounds`` are all those that apply, by ``methods``; ``upper`` is the least of them, None where
    there is none, for the ``reason`` given. ``pair`` is the chord; ``lower`` is at most ``upper``.

    From below: the largest ratio over chords that climb from where the Jacobian is largest; where
    differences would be rounding (an offset far above all slopes) the norm of the Jacobian there.
    From above, the least of

    - the product of the norms of the affine maps between activations, for graphs with residual
      sums their sums and products;
    - the same with every slope written as the centre of its interval plus a remainder: never more
      than the product, and exact where all activations are straight;
    - the norm of the Jacobian over all patterns of slopes, for up to 12 units;
    - the hull of all gradients, for one hidden layer of any width, at most 2 inputs, one output.

    All are proved up to rounding; norms of maps that are too large to be assembled as matrices
    (above 512 inputs and outputs) come from Lanczos bidiagonalisation, to a residual of a few
    rounding errors. Where an operation has no known slopes (attention, layer norm) there is only
    the lower bound, and the reason.
    """

    range: ClassVar[Range] = NONNEGATIVE

    lower: float
    upper: float | None
    methods: tuple[str, ...]
    bounds: tuple[float, ...]
    reason: str
    pair: Float[Tensor, "2 *d"]
    outputs: int
    seed: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for what was found, and one for each bound."""
        yield {"what": "steepest chord found", "kind": "lower bound", "value": self.lower}
        for method, bound in zip(self.methods, self.bounds, strict=True):
            yield {"what": method, "kind": "upper bound", "value": bound}

    def summary(self) -> Summary:
        """Return the least upper bound; what was found where there is none."""
        if self.upper is None:
            return Summary(value=self.lower, kind="lower bound", basis="steepest chord found")
        met = self.upper - self.lower <= ROUNDING * self.upper
        kind: Kind = "exact" if met else "upper bound"
        best = self.methods[self.bounds.index(self.upper)]
        return Summary(value=self.upper, kind=kind, basis=f"{best}; found {self.lower:.4g}")


@instrument(
    reads="parameters",
    better="smaller",
    larger="a weaker guarantee",
    cost="seconds",
    work=lambda n, c: 4 * min(n, 256) * (1 + 2 * c) + 8000,
    setup=1.0,
    samples="points",
    meaning="The outputs of two inputs are {value} times as far apart as the inputs.",
    cites="virmaux2018lipschitz; klindt2023controlling, section 2",
    by_default=False,
)
@anytime
def lipschitz(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    *,
    points: int = 256,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[Lipschitz]:
    r"""Bound the Lipschitz constant of a network from above and from below.

    .. math:: \sup_{a \neq b} \frac{\lVert f(a) - f(b) \rVert}{\lVert a - b \rVert}
              \;\leq\; \min_m B_m

    Over the whole space, in the Euclidean norm, in float64; see :class:`Lipschitz` for the bounds.
    Exact for affine networks. ``lipschitz.refine`` yields ever steeper chords, one for each batch,
    beside the same upper bounds.

    Args:
        model: A module in eval mode.
        x: Data; the search starts there.
        points: How many of them to start from.
        seed: Seed of their draw, and of points around them.
        memory: Bytes that the working set may take.

    >>> net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)).double().eval()
    >>> weights = ([[1.0], [-1.0]], [0.0, 0.0], [[3.0, -2.0]], [0.0])
    >>> for parameter, value in zip(net.parameters(), weights):
    ...     _ = parameter.data.copy_(torch.tensor(value))
    >>> found = lipschitz(net, torch.tensor([[-1.0], [1.0]], dtype=torch.float64))
    >>> round(found.lower, 6), round(found.upper, 6)
    (3.0, 5.0)
    """
    checks.whole(1, points=points, memory=memory)
    checks.module(model)
    probed = probe(model, x)
    probed.need_gradient()
    exact = converted_copy(model, torch.float64)
    data = x.detach()[draw_numbers(len(x), points, seed=seed).to(x.device)].double()
    double = probe(exact, data)
    bounds: dict[str, float] | None = None
    reason = ""
    for chord in steepest_chords(
        lambda z: double.f(z).reshape(len(z), -1), data, memory=memory, seed=seed
    ):
        checks.finite(torch.tensor([chord.value]), "chords")
        if bounds is None:
            bounds, reason = _bounds(exact, data[: most_rows(len(data))])
        upper = min(bounds.values(), default=None)
        yield Lipschitz(
            lower=_lower(chord, upper),
            upper=upper,
            methods=tuple(bounds),
            bounds=tuple(bounds.values()),
            reason=reason,
            pair=chord.pair.to(x.dtype),
            outputs=probed.outputs,
            seed=seed,
        )


def _lower(chord: Chord, upper: float | None) -> float:
    """Return how steep a chord is, never above the bound: it may be by rounding."""
    lower = chord.value
    if upper is None or lower <= upper:
        return lower
    return min(upper, lower if lower <= upper * (1 + ROUNDING) else chord.jacobian)


def _bounds(model: nn.Module, x: Tensor) -> tuple[dict[str, float], str]:
    """Return the bounds that apply, and why there are none."""
    try:
        bounds = upper_bounds(Graph(model, x))
    except UnsupportedModelError as error:
        return {}, f"slopes cannot be bounded: {error}"
    return bounds, "" if bounds else "the norm of a map was not found by the iteration"
