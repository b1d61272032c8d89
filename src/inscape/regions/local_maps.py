"""Local maps: the first-order expansion of a network at each point of the data."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64, Integer, Shaped
from jaxtyping import Float as AnyFloat
from torch import Tensor

from inscape._core import (
    BudgetError,
    Result,
    Row,
    Summary,
    UnsupportedModelError,
    checks,
    instrument,
)
from inscape._core.anytime import anytime, stoppable
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape._core.sampling import FIRST, Draw
from inscape.functional.jacobians import MEMORY, Probe, jacobians, probe
from inscape.functional.precision import in_precision
from inscape.piecewise.graph.network import Piecewise, piecewise
from inscape.regions._affine_values import affine_values, ties
from inscape.runtime.progress import progress

#: Bytes that all Jacobians together may take.
LARGEST = 4 * 2**30
#: Coefficients nearer than this, relative to the largest of a point, are one map.
SAME = 1e-9


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LocalMaps(Result):
    """The affine map v(x0) + J(x0) (x - x0) at each point x0, and which units are on there.

    ``labels`` numbers the maps in the order of the points: by their patterns where
    the network is piecewise linear, by their coefficients otherwise. ``patterns`` holds the state
    of every unit, operation after operation (``units`` of them each), or None with the reason in
    ``note``. On a kink (``on_kink``) the map is that of the pattern there: a unit at zero is off,
    of equal ones the first is the largest. Of ``drawn_from`` points that were given, those in
    ``points`` were used.
    """

    range: ClassVar[Range] = NONNEGATIVE

    points: Float64[Tensor, "n D"]
    values: Float64[Tensor, "n c"]
    jacobians: Float64[Tensor, "n c D"]
    labels: Int64[Tensor, " n"]
    on_kink: Bool[Tensor, " n"]
    patterns: Integer[Tensor, "n units"] | None
    units: tuple[int, ...]
    places: tuple[str, ...]
    shape: tuple[int, ...]
    converted: str | None
    note: str
    seed: int
    drawn_from: int

    @property
    def intercepts(self) -> Float64[Tensor, "n c"]:
        """Return v(x0) - J(x0) x0, the constant of each map."""
        return self.values - torch.einsum("ncd,nd->nc", self.jacobians, self.points)

    @property
    def images(self) -> Float64[Tensor, "n c *shape"]:
        """Return the coefficients in the shape of an input: what each pixel adds to an output."""
        return self.jacobians.reshape(*self.jacobians.shape[:2], *self.shape)

    def hamming(self) -> Int64[Tensor, "n n"]:
        """Return the Hamming distance of the activation patterns of each two points."""
        if self.patterns is None:
            raise ValueError(
                f"Hamming distances need activation patterns, found none ({self.note}): "
                "compare the Jacobians instead."
            )
        patterns = self.patterns.float()
        return torch.cdist(patterns, patterns, p=0).round().long()

    def rows(self) -> Iterator[Row]:
        """Yield one row for each point and output."""
        slopes = self.jacobians.norm(dim=2).tolist()
        intercepts, values = self.intercepts.tolist(), self.values.tolist()
        for k, label in enumerate(self.labels.tolist()):
            for j, slope in enumerate(slopes[k]):
                yield {
                    "point": k,
                    "output": j,
                    "map": label,
                    "value": values[k][j],
                    "intercept": intercepts[k][j],
                    "slope": slope,
                }

    def summary(self) -> Summary:
        """Return how many different maps the points have."""
        count = int(self.labels.max()) + 1
        kind = "patterns" if self.patterns is not None else "maps"
        basis = f"different {kind} at {len(self.labels)} points"
        if self.drawn_from > len(self.labels):
            basis = f"{basis}, drawn from {self.drawn_from}"
        return Summary(value=float(count), kind="exact", basis=basis)


@instrument(
    reads="function",
    larger="more linear regions",
    cost="seconds",
    work=lambda n, c: min(n, 1000) * (2 + 2 * c),
    samples="points",
    setup=1.0,
    meaning="The data points that were used have {value} different affine maps.",
    cites="sattelberg2026linearity, Eqs. (5.3), (5.7), (5.25)",
    exempt=("patterns",),
    by_default=False,
)
@anytime
def local_maps(
    f: Function,
    x: AnyFloat[Tensor, "n *d"],
    *,
    points: int = 1000,
    patterns: bool = True,
    image: tuple[int, ...] | None = None,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[LocalMaps]:
    r"""Compute the affine map of ``f`` at each point: its value and its Jacobian.

    .. math:: v(x) = v(x_0) + J(x_0) (x - x_0), \quad J \in \mathbb{R}^{c \times d}

    Exact up to rounding on the linear region of the point for a piecewise-linear network, the
    first-order expansion for any other module. Computed in float64, on a copy where the model has
    another precision. Costs one backward pass for each output and point.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Points of the data.
        points: How many of them to use: of more, this many are drawn without replacement, and all
            in their order if there are no more. By default at most 1000 are used.
        patterns: Whether to read the activation patterns too, where the network has them.
        image: Shape of the coefficient images; the shape of one input unless given.
        seed: Seed of the draw of points.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> found = local_maps(torch.relu, torch.tensor([[-1.0], [0.0], [2.0], [3.0]]))
    >>> found.jacobians.flatten().tolist(), found.labels.tolist(), found.on_kink.tolist()
    ([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1], [False, True, False, False])
    """
    checks.whole(1, points=points, memory=memory)
    f, x, converted = in_precision(f, x, "float64")
    probed = probe(f, x)
    probed.need_gradient()
    draw = Draw(len(x), points, seed=seed)
    _check_sizes(x, len(draw), probed.outputs, image)
    net, note = _read(f, x) if patterns else (None, "not asked for")
    maps = _Maps(probed, net, x, draw)
    with progress(len(draw), label="local maps") as bar:
        for part in draw.growing(FIRST, probed.rows(memory)):
            maps.add(x[part])
            bar.advance(len(x[part]))
            if stoppable() or maps.done == len(draw):
                yield LocalMaps(
                    **maps.fields(),
                    units=tuple(len(p[0]) for p in net.patterns(x[:1])) if net is not None else (),
                    places=tuple(op.place for op in net.ops) if net is not None else (),
                    shape=tuple(image or x.shape[1:]),
                    converted=converted,
                    note=note,
                    seed=seed,
                    drawn_from=len(x),
                )


def _check_sizes(x: Tensor, count: int, outputs: int, image: tuple[int, ...] | None) -> None:
    if image is not None and prod(image) != x[0].numel():
        raise ValueError(
            f"image must have {x[0].numel()} pixels as each input has, found {image} with "
            f"{prod(image)}: pass the shape of one input."
        )
    size = 8 * outputs * count * x[0].numel()
    if size > LARGEST:
        raise BudgetError(
            f"all Jacobians together must take at most {LARGEST / 2**30:.0f} GiB, but {count} "
            f"points with {outputs} outputs and {x[0].numel()} inputs take "
            f"{size / 2**30:.1f} GiB: take fewer points."
        )


class _Maps:
    """The maps at the points so far."""

    def __init__(self, probed: Probe, net: Piecewise | None, x: Tensor, draw: Draw) -> None:
        n, c = len(draw), probed.outputs
        self._probed, self._net, self._draw = probed, net, draw
        self._points = x.new_empty(n, x[0].numel())  # at once: small parts would split the heap
        self._values, self._slopes = x.new_empty(n, c), x.new_empty(n, c, x[0].numel())
        self._sums = x.new_empty(n)
        self._on_kink = torch.zeros(n, dtype=torch.bool)
        self._patterns: list[Tensor] = []
        self.done = 0

    def add(self, part: Tensor) -> None:
        """Add the maps at some points."""
        at = slice(self.done, self.done + len(part))
        self._points[at] = part.flatten(1)
        with torch.no_grad():
            self._values[at] = self._probed.f(part.clone()).reshape(len(part), -1)
        self._slopes[at] = jacobians(self._probed.f, part).detach()
        self._sums[at] = self._slopes[at].flatten(1).sum(1)
        if self._net is not None:
            chosen, self._on_kink[at] = _patterns(self._net, part)
            self._patterns.append(chosen)
            _settle(self._net, part, self._on_kink[at], self._slopes[at])
        self.done = at.stop
        checks.finite(self._draw.in_order(self._sums[: at.stop]), "points")

    def fields(self) -> dict[str, Any]:
        """Return the fields of a result, in the order of the points once all are there."""
        flat = (self._points, self._values, self._slopes, self._on_kink)
        points, values, slopes, on_kink = (self._draw.in_order(t[: self.done]) for t in flat)
        chosen = self._draw.in_order(torch.cat(self._patterns)) if self._patterns else None
        keys = chosen if chosen is not None else _rounded(points, values, slopes)
        return {
            "points": points,
            "values": values,
            "jacobians": slopes,
            "on_kink": on_kink,
            "patterns": chosen,
            "labels": _labels(keys),
        }


def _read(f: Function, x: Tensor) -> tuple[Piecewise | None, str]:
    try:
        net = piecewise(f, x)
    except UnsupportedModelError as error:
        return None, str(error)
    return (net, "") if net.ops else (None, "the network has no kinks")


def _patterns(net: Piecewise, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the activation patterns, and which points lie exactly on a kink."""
    chosen = net.patterns(x)
    return torch.cat(chosen, 1), ties(net, x, chosen)


def _settle(net: Piecewise, x: Tensor, on_kink: Tensor, slopes: Tensor) -> None:
    """Replace the maps on kinks by those of their patterns: autograd's conventions differ."""
    for k in on_kink.nonzero().flatten().tolist():
        slopes[k] = affine_values(net, x[k], net.patterns(x[k : k + 1]))[0]


def _rounded(x: Tensor, values: Tensor, slopes: Tensor) -> Tensor:
    """Return the coefficients of each map as integer multiples of its tolerance."""
    intercepts = values - torch.einsum("ncd,nd->nc", slopes, x.flatten(1))
    maps = torch.cat([slopes.flatten(1), intercepts], 1)
    scale = SAME * float(maps.abs().max()) or 1.0
    return (maps / scale).round()


def _labels(keys: Shaped[Tensor, "n _"]) -> Int64[Tensor, " n"]:
    """Return the number of each row's kind, in the order in which the kinds are met."""
    if keys.shape[1] == 0:
        return torch.zeros(len(keys), dtype=torch.int64)
    _, first, kind = np.unique(keys.numpy(), axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return torch.from_numpy(rank[kind.reshape(-1)])
