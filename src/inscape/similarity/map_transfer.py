"""Map transfer: how well an affine map of one network's local maps represents those of another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.checks import Function
from inscape._core.result import PROPORTION, Range, share_summary
from inscape.functional.jacobians import MEMORY
from inscape.similarity._pair import NO_OTHER, Other, Pair, paired_maps, perturbed


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MapTransfer(Result):
    """The class that each example gets from transferred maps, and those of both networks.

    ``determined`` tells whether the maps of the examples that the fit is made on determine it;
    otherwise it is the smallest of all fits that are as good.
    """

    range: ClassVar[Range] = PROPORTION

    transferred: Int64[Tensor, " n"]
    own: Int64[Tensor, " n"]
    target: Int64[Tensor, " n"]
    labels: Int64[Tensor, " n"] | None
    residuals: Float64[Tensor, " c"]
    fitted_on: int
    determined: bool
    ridge: float

    def per_sample(self) -> Float64[Tensor, " n"]:
        """Return 1 where the transferred maps give the label (or the second network's class)."""
        wanted = self.target if self.labels is None else self.labels
        return (self.transferred == wanted).double()

    def rows(self) -> Iterator[Row]:
        """Yield one row for each example."""
        for k in range(len(self.transferred)):
            yield {
                "example": k,
                "transferred": int(self.transferred[k]),
                "class": int(self.own[k]),
                "other_class": int(self.target[k]),
                "label": None if self.labels is None else int(self.labels[k]),
            }

    def summary(self) -> Summary:
        """Return the accuracy with the transferred maps, with Wilson's interval."""
        wanted = self.target if self.labels is None else self.labels
        accuracy = float((self.target == wanted).double().mean())
        against = f"the second network: {accuracy:.3g}"
        if self.labels is None:
            against = "against the second network's classes"
        basis = f"{len(self.target)} examples, fitted on {self.fitted_on}; {against}"
        return share_summary(self.per_sample(), kind="estimate", basis=basis)


@instrument(
    reads="pair",
    larger="the first network's maps represent the second better",
    cost="minutes",
    work=lambda n, c: 2 * n * (2 + 2 * c),
    meaning="With its local maps fitted from those of the first network, the second classifies the "
    "fraction {value} rightly.",
    cites="sattelberg2026linearity, Eq. (7.4)",
    example=perturbed,
    by_default=False,
    least_rows=4,
)
def map_transfer(
    f: Function,
    x: Float[Tensor, "n *d"],
    y: Tensor | None = None,
    *,
    other: Other = None,
    other_x: Float[Tensor, "m *e"] | None = None,
    fit_on: Float[Tensor, "k *d"] | None = None,
    fit_on_other: Float[Tensor, "k *e"] | None = None,
    ridge: float = 0.0,
    level: float = 0.0,
    memory: int = MEMORY,
) -> MapTransfer | NotApplicable:
    r"""Measure how well the local maps of one network represent those of another.

    .. math:: M_j = \arg\min_M \lVert C_j M - C'_j \rVert_F^2 + \lambda n \lVert M \rVert_F^2

    where row ``i`` of :math:`C_j` holds gradient and intercept of output ``j`` at example ``i`` of
    ``fit_on``. Each example of ``x`` is then classified by :math:`C_j M_j`, its own map of the
    first network transferred to the second. An estimate with Wilson's interval. From a linear
    network every map becomes the mean map of the second. The fit is least squares in float64 by a
    complete orthogonal factorisation, so that of several equally good maps the smallest is taken.

    Args:
        f: The network whose maps are transferred.
        x: Examples to classify.
        y: Their labels; floating-point labels and None compare with the second network's classes.
        other: The network that is to be represented; without one the result is "not applicable".
        other_x: The same examples as the second network takes them, where it takes another form.
        fit_on: Training examples for the fit; by default each half of ``x`` for the other half.
        fit_on_other: These examples as the second network takes them.
        ridge: Penalty :math:`\lambda` on the squares of the map's entries, for each example.
        level: Level that separates the classes of a single output.
        memory: Bytes that the working set of a batch may take.

    >>> import torch
    >>> f = lambda x: torch.stack([x.relu().sum(1), 1 - x[:, 0]], 1)
    >>> points = torch.randn(40, 2, generator=torch.Generator().manual_seed(0))
    >>> map_transfer(f, points, other=f).summary().value
    1.0
    """
    checks.at_least(0.0, ridge=ridge)
    checks.number(ridge=ridge, level=level)
    checks.whole(1, memory=memory)
    checks.points(x)
    if other is None:
        return NotApplicable(what="map_transfer", reason=NO_OTHER)
    if y is not None:
        checks.labels(y, x)
    if fit_on is None and len(x) < 4:
        reason = f"halves need at least four examples, found {len(x)}: pass fit_on"
        return NotApplicable(what="map_transfer", reason=reason)
    pair = paired_maps(f, x, other, other_x)
    maps, training = _all_maps(pair, memory), None
    if fit_on is not None:
        training = _all_maps(paired_maps(f, fit_on, other, fit_on_other), memory)
    fits = _fits(maps, training, ridge)
    return _result(pair, maps, fits, _labels(y, pair.first.outputs), level, ridge)


def _result(
    pair: Pair, maps: list[Tensor], fits: "list[_Fit]", labels: Tensor | None, level: float,
    ridge: float,
) -> MapTransfer:  # fmt: skip
    """Return the classes that all examples get, from fits whose examples follow each other."""
    ones = torch.ones(len(pair), 1, dtype=torch.float64)
    inputs = torch.cat([pair.x.flatten(1).cpu(), ones], 1)

    def classes(coefficients: Tensor) -> Tensor:
        return _classes(torch.einsum("ncd,nd->nc", coefficients, inputs), level)

    return MapTransfer(
        transferred=classes(torch.cat([fit.maps for fit in fits])),
        own=classes(maps[0]),
        target=classes(maps[1]),
        labels=labels,
        residuals=torch.stack([fit.residuals for fit in fits]).mean(0),
        fitted_on=fits[0].examples,
        determined=all(fit.determined for fit in fits),
        ridge=ridge,
    )


class _Fit:
    """Least squares from the maps of one network to those of another, output by output."""

    def __init__(self, maps: Float64[Tensor, "n c D"]) -> None:
        self.maps = torch.empty_like(maps)
        self.residuals = maps.new_zeros(maps.shape[1])
        self.determined = True
        self.examples = 0


def _fits(maps: list[Tensor], training: list[Tensor] | None, ridge: float) -> list[_Fit]:
    """Return the fit on other examples, or without such from each half to the other."""
    if training is not None:
        return [_fitted(training, maps[0], ridge)]
    half = len(maps[0]) // 2
    halves = slice(half), slice(half, None)
    return [
        _fitted([side[other] for side in maps], maps[0][own], ridge)
        for own, other in (halves, halves[::-1])
    ]


def _fitted(training: list[Tensor], maps: Float64[Tensor, "n c D"], ridge: float) -> _Fit:
    """Return the transferred maps of other examples, and the relative residual on the training."""
    fit = _Fit(maps)
    fit.examples = len(training[0])
    for j in range(maps.shape[1]):
        source, target = (side[:, j] for side in training)
        transfer, rank = _least_squares(source, target, ridge)
        fit.maps[:, j] = maps[:, j] @ transfer
        scale = float(target.norm()) or 1.0
        fit.residuals[j] = float((source @ transfer - target).norm()) / scale
        fit.determined &= rank == source.shape[1] or ridge > 0
    return fit


def _least_squares(
    source: Float64[Tensor, "n D"], target: Float64[Tensor, "n D"], ridge: float
) -> tuple[Float64[Tensor, "D D"], int]:
    from scipy.linalg import lstsq

    if ridge > 0:
        width = source.shape[1]
        weight = ridge**0.5 * len(source) ** 0.5 * torch.eye(width, dtype=source.dtype)
        source = torch.cat([source, weight])
        target = torch.cat([target, target.new_zeros(width, target.shape[1])])
    # torch.linalg.lstsq starts this driver from pivots that are not set: other bits in each call
    solution, _, rank, _ = lstsq(source.numpy(), target.numpy(), cond=1e-12, lapack_driver="gelsy")
    return torch.from_numpy(solution), int(rank)


def _all_maps(pair: Pair, memory: int) -> list[Float64[Tensor, "n c D"]]:
    first, second = zip(*pair.maps(pair.rows(memory)), strict=True)
    return [torch.cat(first).cpu(), torch.cat(second).cpu()]


def _labels(y: Tensor | None, outputs: int) -> Int64[Tensor, " n"] | None:
    """Return class numbers; None for labels that are no classes."""
    if y is None or y.is_floating_point():
        return None
    return checks.class_numbers(y, max(2, outputs)).long().cpu()


def _classes(outputs: Float64[Tensor, "n c"], level: float) -> Int64[Tensor, " n"]:
    return outputs.argmax(1) if outputs.shape[1] > 1 else (outputs[:, 0] > level).long()
