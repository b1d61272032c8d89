"""Active subspace: along which few directions of the input space an output varies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.anytime import anytime, stoppable
from inscape._core.checks import Function
from inscape._core.result import PROPORTION, Range
from inscape._core.sampling import draw_numbers
from inscape.functional.jacobians import MEMORY, chunks, probe
from inscape.functional.precision import in_precision
from inscape.sensitivity._gradient_covariance import (
    LARGEST,
    GradientSample,
    LeadingDirections,
    leading_directions,
    resampled,
)
from inscape.sensitivity._projection_fit import FEWEST, explained, smooth_fit

#: Bytes that all gradients, or their covariances, may take.
ROOM = 2**28
#: Gradients of the first result; each later one has twice as many.
FIRST = 16
#: More outputs than these are measured by the largest one at each point.
EACH = 10
#: Fits are made on 1, 2, ... of the leading directions, up to so many.
FITTED = 3
#: Directions beyond those wanted in which the points are drawn anew.
BESIDE = 10
METHODS = ("auto", "exact", "randomised")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ActiveSubspace(Result):
    """Eigenvectors of the uncentred covariance of gradients, for each of some outputs.

    ``outputs`` numbers them; -1 is the largest at each point. ``eigenvalues`` fall, each too small
    by at most ``missed`` (0 where they are exact); ``energies`` are the sums of all. Directions are
    unit vectors, zero where their eigenvalue is rounding; the largest entry is positive. ``ends``
    hold 95% bootstrap intervals of the eigenvalues, ``fraction_ends`` that of the headline, and
    ``turns`` the sine of the angle that 95% of the resampled leading directions stay within: near
    1 there is no gap, and the direction means nothing.

    ``explained`` is the fraction of the variance of the output that a smooth function of the first
    1, 2, ... ``projections`` explains on the points ``held_out``, and ``fitted`` the one of the
    first alone; ``values`` are the outputs. None where fewer than four points are held out; 0
    where the output does not vary there.
    """

    range: ClassVar[Range] = PROPORTION

    outputs: tuple[int, ...]
    eigenvalues: Float64[Tensor, "c k"]
    directions: Float64[Tensor, "c k D"]
    energies: Float64[Tensor, " c"]
    missed: Float64[Tensor, " c"]
    ends: Float64[Tensor, "c k 2"]
    fraction_ends: Float64[Tensor, " 2"]
    turns: Float64[Tensor, " c"]
    explained: Float64[Tensor, "c q"] | None
    explained_ends: Float64[Tensor, "c q 2"] | None
    projections: Float64[Tensor, "m c"]
    values: Float64[Tensor, "m c"]
    fitted: Float64[Tensor, "m c"]
    held_out: Bool[Tensor, " m"]
    method: str
    shape: tuple[int, ...]
    resamples: int
    converted: str | None
    seed: int
    drawn_from: int

    @property
    def exact(self) -> bool:
        """Tell whether the eigenvalues are those of the sampled gradients, up to rounding."""
        return not bool((self.missed > 0).any())

    @property
    def fractions(self) -> Float64[Tensor, "c k"]:
        """Return the fraction of the squared gradient that lies along each direction."""
        return self.eigenvalues / torch.where(self.energies > 0, self.energies, 1.0)[:, None]

    @property
    def gaps(self) -> Float64[Tensor, "c k"]:
        """Return by which fraction of itself each eigenvalue exceeds the next that is known.

        It is 1 where the next is zero, 0 for the last one and where there is none.
        """
        following = torch.cat([self.eigenvalues[:, 1:], self.eigenvalues[:, -1:]], 1)
        return 1 - following / torch.where(self.eigenvalues > 0, self.eigenvalues, torch.inf)

    @property
    def images(self) -> Float64[Tensor, "c k *shape"]:
        """Return the directions in the shape of an input."""
        return self.directions.reshape(*self.directions.shape[:2], *self.shape)

    @property
    def total_variations(self) -> Float64[Tensor, "c k"] | None:
        r"""Return how rough each direction is as an image, None for inputs that are no images.

        The differences of neighbouring pixels over the pixels, all in absolute value: 0 for a
        constant image, about 2.8 for white noise; whatever the sign and the scale.
        """
        if len(self.shape) < 2:
            return None
        images = self.images
        rough = sum(images.diff(dim=axis).abs().flatten(2).sum(2) for axis in (-1, -2))
        sizes = images.abs().flatten(2).sum(2)
        return rough / torch.where(sizes > 0, sizes, 1.0)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each output and direction."""
        rough, shares = self.total_variations, self.explained
        fitted = 0 if shares is None else shares.shape[1]
        yield from (
            {
                "output": output,
                "direction": k,
                "eigenvalue": float(self.eigenvalues[j, k]),
                "low": float(self.ends[j, k, 0]),
                "high": float(self.ends[j, k, 1]),
                "fraction": float(self.fractions[j, k]),
                "gap": float(self.gaps[j, k]),
                "explained": float(shares[j, k]) if shares is not None and k < fitted else None,
                "total_variation": None if rough is None else float(rough[j, k]),
            }
            for j, output in enumerate(self.outputs)
            for k in range(self.eigenvalues.shape[1])
        )

    def summary(self) -> Summary:
        """Return the mean over outputs of the leading direction's fraction of the energy."""
        value = float(self.fractions[:, 0].mean())
        basis = f"{int((~self.held_out).sum())} gradients of {len(self.outputs)} outputs"
        if self.explained is not None:
            share = float(self.explained[:, 0].mean())
            basis = f"{basis}; it explains {share:.0%} of held-out variance"
        if self.resamples == 0 and self.exact:
            return Summary(value=value, kind="exact", basis=basis)
        low, high = self.fraction_ends.tolist()
        return Summary(value=value, kind="estimate", basis=basis, low=low, high=high)


@instrument(
    reads="function",
    larger="an output that varies along one direction",
    cost="seconds",
    work=lambda n, c: min(n, 1000) * (2 + 2 * min(c, EACH)),
    setup=1.0,
    meaning="Of the squared gradient, the fraction {value} lies along the leading direction of "
    "each output.",
    cites="constantine2014active; sattelberg2026linearity, section 6.4",
    example=lambda model, x, y: {"points": 300, "resamples": 50},
    least_rows=2,
)
@anytime
def active_subspace(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    outputs: Sequence[int] | None = None,
    count: int = 10,
    points: int = 1000,
    method: str = "auto",
    resamples: int = 200,
    seed: int = 0,
    room: int = ROOM,
    memory: int = MEMORY,
) -> Iterator[ActiveSubspace | NotApplicable]:
    r"""Compute the directions of the input space along which an output varies most.

    .. math:: C_j = \frac{1}{n} \sum_{i=1}^{n} \nabla f_j(x_i) \, \nabla f_j(x_i)^T
              = W \Lambda W^T

    Exact up to rounding for the sampled gradients, from the smaller of the Gram matrices of inputs
    and of points, so that no matrix of d x d is made where n < d. Where neither these nor the
    gradients fit into ``room``, or on demand, by a random subspace and two passes over the
    gradients, with a bound on the error of each eigenvalue. Intervals by bootstrap over the points
    within the leading directions. Points that are held out, a third of them at most, say how much
    of the output a Gaussian process of its first projections explains. Computed in float64. Costs a
    forward and a backward pass for each output and point, and one eigendecomposition. First results
    of ``active_subspace.refine`` are of fewer gradients, with larger fractions by chance.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Points of the data.
        outputs: Which outputs; all up to ten, else the largest at each point, unless they are
            given.
        count: How many directions.
        points: How many gradients, at points drawn without replacement; and how many held-out
            points at most.
        method: ``"exact"``, ``"randomised"`` or ``"auto"``, which is exact where that fits.
        resamples: Bootstrap samples; 0 for no intervals.
        seed: Seed of all draws.
        room: Bytes that all gradients, or their covariances, may take.
        memory: Bytes that the working set of a batch may take.

    >>> import torch
    >>> points = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    >>> result = active_subspace(lambda x: torch.sin(3 * x[:, :1] + 4 * x[:, 1:2]), points)
    >>> [round(entry, 6) for entry in result.directions[0, 0].tolist()]
    [0.6, 0.8, 0.0]
    >>> round(result.summary().value, 6)
    1.0
    """
    checks.whole(1, count=count, points=points, room=room, memory=memory)
    checks.whole(0, resamples=resamples)
    checks.seed(seed)
    checks.one_of(METHODS, method=method)
    f, x, converted = in_precision(f, x, "float64")
    probed = probe(f, x)
    probed.need_gradient()
    chosen = _outputs(outputs, probed.outputs)
    spared = min(points, len(x) // 3)
    numbers = draw_numbers(len(x), min(points, len(x) - spared) + spared, seed=seed).to(x.device)
    split = len(numbers) - spared
    rows = probed.rows(memory, gradients=len(chosen))
    sample = GradientSample(f=probed.f, x=x[:0], outputs=chosen, rows=rows, room=room)
    latest: Any = None
    for many in _growing(split):
        drawn = torch.cat([numbers[:many], numbers[split : split + many]])
        sample = sample.of_more(x[drawn[:many]])
        if stoppable() and sample.fits:
            for _ in sample.batches():
                yield latest
        latest = _of_sample(
            sample, x[drawn], min(count, x[0].numel()), method,
            resamples=resamples, seed=seed, converted=converted, drawn_from=len(x),
        )  # fmt: skip
        yield latest


def _growing(most: int) -> list[int]:
    """Return of how many gradients each result is: of twice as many, where somebody may stop."""
    sizes = [FIRST]
    while sizes[-1] < most:
        sizes.append(2 * sizes[-1])
    return [*sizes[:-1], most] if stoppable() else [most]


def _of_sample(
    sample: GradientSample, x: Tensor, count: int, method: str, **settings: Any
) -> ActiveSubspace | NotApplicable:
    """Return the directions for some gradients; the other points of ``x`` are held out."""
    split, resamples, seed = len(sample.x), settings["resamples"], settings["seed"]
    leading = leading_directions(sample, min(count + BESIDE, x[0].numel()), method, seed)
    if not bool((leading.energies > 0).any()):
        reason = "no output changes with the input at any point: there is no direction"
        return NotApplicable(what="active_subspace", reason=reason)
    return ActiveSubspace(
        **settings,
        **_uncertainty(sample, leading, count, resamples, seed),
        **_summary_plot(sample, leading, x, split, resamples, seed),
        outputs=sample.outputs,
        method="randomised" if bool((leading.missed > 0).any()) else "exact",
        shape=tuple(x.shape[1:]),
    )


def _outputs(outputs: Sequence[int] | None, known: int) -> tuple[int, ...]:
    if outputs is None:
        return tuple(range(known)) if known <= EACH else (LARGEST,)
    numbers = checks.wholes(LARGEST, outputs=outputs)
    if max(numbers) >= known or (LARGEST in numbers and len(numbers) > 1):
        raise ValueError(
            f"outputs must be some of 0 to {known - 1}, or -1 alone for the largest, found "
            f"{numbers}: choose among them."
        )
    return tuple(numbers)


def _uncertainty(
    sample: GradientSample, leading: LeadingDirections, count: int, resamples: int, seed: int
) -> dict[str, Any]:
    """Return the leading directions that are wanted, with their intervals."""
    values, energies = leading.eigenvalues[:, :count], leading.energies
    ends, turns = values[:, :, None].expand(-1, -1, 2), torch.zeros_like(energies)
    fractions = values[:, 0] / torch.where(energies > 0, energies, 1.0)
    around = fractions.mean().expand(2)
    if resamples:
        others = resampled(sample, leading, count, resamples, seed ^ 1)
        levels = torch.tensor([0.025, 0.975], dtype=torch.float64)
        ends = others.eigenvalues.quantile(levels, dim=0).movedim(0, 2)
        around = others.fractions.mean(1).quantile(levels)
        turns = others.turns.quantile(0.95, dim=0)
    spare = leading.missed / torch.where(energies > 0, energies, 1.0)
    low = torch.minimum(ends[:, :, 0], values)
    high = torch.maximum(ends[:, :, 1], values) + leading.missed[:, None]
    top = max(float(around[1]), float(fractions.mean())) + float(spare.mean())
    bottom = min(float(around[0]), float(fractions.mean()))
    return {
        "eigenvalues": values.contiguous(),
        "directions": leading.directions[:, :count].contiguous(),
        "energies": energies,
        "missed": leading.missed,
        "ends": torch.stack([low, high], 2),
        "fraction_ends": torch.tensor([bottom, min(1.0, top)], dtype=torch.float64),
        "turns": turns,
    }


def _summary_plot(
    sample: GradientSample, leading: LeadingDirections, x: Tensor, split: int, resamples: int,
    seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Return projections, outputs, and how much of them fits on the first points explain."""
    values, c = _values(sample, x), len(sample.outputs)
    dims = min(FITTED, leading.directions.shape[1])
    u = torch.einsum("nd,ckd->cnk", x.flatten(1), leading.directions[:, :dims])
    shares = torch.zeros(c, dims, 3, dtype=torch.float64)
    judged = min(split, len(x) - split) >= FEWEST
    fitted = values[:split].mean(0).expand(len(x), c).clone()
    for j in range(c):
        for k in range(dims if judged else 0):
            known, targets = u[j, :split, : k + 1], values[:split, j]
            predicted = smooth_fit(known, targets, u[j, :, : k + 1])
            fitted[:, j] = predicted if k == 0 else fitted[:, j]
            shares[j, k] = torch.tensor(
                explained(values[split:, j], predicted[split:], resamples, seed),
                dtype=torch.float64,
            )
    return {
        "explained": shares[:, :, 0].contiguous() if judged else None,
        "explained_ends": shares[:, :, 1:].contiguous() if judged else None,
        "projections": u[:, :, 0].T.contiguous(),
        "values": values,
        "fitted": fitted,
        "held_out": torch.arange(len(x)) >= split,
    }


@torch.no_grad()
def _values(sample: GradientSample, x: Tensor) -> Float64[Tensor, "m c"]:
    parts = [checks.call(sample.f, part.clone()) for part in chunks(x, sample.rows)]
    values = torch.cat([part.reshape(len(part), -1) for part in parts])
    if sample.outputs == (LARGEST,):
        return values.amax(1, keepdim=True)
    return values[:, list(sample.outputs)]
