"""Saliency: what each input contributes to an output, by three gradients."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from inscape._core import BudgetError, Result, Row, Summary, checks, instrument, mean_summary
from inscape._core.anytime import anytime, stoppable
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape._core.sampling import FIRST, Draw
from inscape.functional.jacobians import MEMORY, probe
from inscape.functional.precision import in_precision
from inscape.runtime.progress import progress
from inscape.sensitivity._path_integrals import (
    PathIntegrals,
    checked_baseline,
    chosen_gradients,
    read_piecewise,
)

#: Bytes that the attributions of all points may take.
LARGEST = 4 * 2**30
#: Pieces up to which a segment is cut in a look: with more, ten points take as long as a minute of
#: everything else, and quadrature tells the same to a thousandth.
PIECES = 300

Kind = Literal["gradient", "gradient_times_input", "integrated"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Saliency(Result):
    """What each input contributes to one output at each point: three attributions.

    ``outputs`` says which output is explained, ``values`` and ``baseline_values`` its value there
    and at the baseline. ``integrated`` is the mean gradient along the segment from the baseline
    times its direction: exact on the ``pieces`` linear pieces of a segment, by ``steps``
    Gauss-Legendre nodes where ``pieces`` is 0 (``note`` says why, if the network is not piecewise
    linear).
    """

    range: ClassVar[Range] = NONNEGATIVE

    points: Float64[Tensor, "n D"]
    baseline: Float64[Tensor, " D"]
    outputs: Int64[Tensor, " n"]
    values: Float64[Tensor, " n"]
    baseline_values: Float64[Tensor, " n"]
    gradients: Float64[Tensor, "n D"]
    integrated: Float64[Tensor, "n D"]
    pieces: Int64[Tensor, " n"]
    steps: int
    shape: tuple[int, ...]
    converted: str | None
    note: str
    seed: int
    drawn_from: int

    @property
    def exact(self) -> Bool[Tensor, " n"]:
        """Tell at which points the integrated gradients are exact up to rounding."""
        return self.pieces > 0

    @property
    def residuals(self) -> Float64[Tensor, " n"]:
        """Return by how much the integrated gradients miss f(x) - f(baseline), with its sign."""
        return self.integrated.sum(1) - (self.values - self.baseline_values)

    @property
    def residual(self) -> float:
        """Return the largest residual over the largest difference from the baseline."""
        largest = float((self.values - self.baseline_values).abs().max())
        return float(self.residuals.abs().max()) / (largest or 1.0)

    def attributions(self, kind: Kind = "integrated") -> Float64[Tensor, "n D"]:
        """Return one of the three attributions."""
        checks.one_of(("gradient", "gradient_times_input", "integrated"), kind=kind)
        if kind == "integrated":
            return self.integrated
        return self.gradients if kind == "gradient" else self.gradients * self.points

    def images(self, kind: Kind = "integrated") -> Float64[Tensor, "n *shape"]:
        """Return one of the three attributions in the shape of an input."""
        return self.attributions(kind).reshape(-1, *self.shape)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each point."""
        sizes = [effective_inputs(self.attributions(kind)).tolist() for kind in KINDS]
        residuals, pieces = self.residuals.tolist(), self.pieces.tolist()
        for k, output in enumerate(self.outputs.tolist()):
            yield {
                "point": k,
                "output": output,
                "value": float(self.values[k]),
                "baseline_value": float(self.baseline_values[k]),
                "residual": residuals[k],
                "pieces": pieces[k],
                **{f"inputs_{kind}": size[k] for kind, size in zip(KINDS, sizes, strict=True)},
            }

    def per_sample(self) -> Float64[Tensor, " n"]:
        """Return over how many inputs the integrated gradients of each point are spread."""
        return effective_inputs(self.integrated)

    def summary(self) -> Summary:
        """Return the mean effective number of inputs, with the completeness residual."""
        exact, count = int(self.exact.sum()), len(self.outputs)
        which = f"{count} points" if exact == count else f"{count} points, {exact} exact"
        basis = f"{which}, completeness residual {self.residual:.0e}"
        return mean_summary(self.per_sample(), kind="estimate", basis=basis)


KINDS: tuple[Kind, ...] = ("gradient", "gradient_times_input", "integrated")


def effective_inputs(attributions: Float64[Tensor, "n D"]) -> Float64[Tensor, " n"]:
    r"""Return the participation ratio of each row: 1 for one input, D for equal ones, 0 for none.

    .. math:: \left( \sum_i |a_i| \right)^2 / \sum_i a_i^2
    """
    sizes = attributions.abs()
    largest = sizes.amax(1, keepdim=True)
    sizes = sizes / torch.where(largest > 0, largest, 1.0)
    squares = sizes.square().sum(1)
    return sizes.sum(1).square() / torch.where(squares > 0, squares, 1.0)


@instrument(
    reads="function",
    larger="an output that depends on more inputs",
    cost="seconds",
    work=lambda n, c: min(n, 50) * 64 * 3,
    samples="points",
    setup=1.0,
    example=lambda model, x, y: {"pieces": PIECES},
    meaning="What it says of a point is attributed to {value} inputs, by the effective number.",
    cites="sundararajan2017axiomatic; simonyan2014deep; sattelberg2026linearity, section 7.1",
)
@anytime
def saliency(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    baseline: Float[Tensor, "*d"] | None = None,
    output: int | None = None,
    points: int = 50,
    pieces: int = 4000,
    steps: int = 64,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[Saliency | None]:
    r"""Compute what each input contributes to an output: gradient, times input, and integrated.

    .. math:: IG_i(x) = (x_i - b_i) \int_0^1
              \frac{\partial f_j}{\partial x_i} (b + t (x - b)) \, dt, \quad
              \sum_i IG_i(x) = f_j(x) - f_j(b)

    The integral is exact up to rounding for a piecewise-linear network: every kink on the segment
    is known, and between two the gradient is constant. Any other module, and a segment with too
    many pieces, is integrated by Gauss-Legendre quadrature. The completeness residual says by how
    much the sum on the right is missed. The headline is over how many inputs the integrated
    gradients are spread (their participation ratio), a mean with its interval. Computed in
    float64. Costs a gradient for each piece or node of each segment.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Points of the data.
        baseline: Where all segments start; zero unless it is given.
        output: Which output to explain; the largest at each point unless it is given.
        points: How many of the points to use, drawn without replacement; all if there are no more.
        pieces: A segment with more linear pieces than these is integrated by quadrature, and so are
            all segments of a network with more than ten times as many units.
        steps: Nodes of the quadrature.
        seed: Seed of the draw of points.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> result = saliency(lambda x: torch.relu(x).sum(1, keepdim=True), torch.tensor([[3.0, -1.0]]))
    >>> result.gradients.tolist(), result.integrated.tolist(), result.residuals.tolist()
    ([[1.0, 0.0]], [[3.0, 0.0]], [0.0])
    """
    checks.whole(1, points=points, pieces=pieces, steps=steps, memory=memory)
    f, x, converted = in_precision(f, x, "float64")
    probed = probe(f, x)
    probed.need_gradient()
    start = checked_baseline(baseline, x)
    _check_output(output, probed.outputs)
    draw = Draw(len(x), points, seed=seed)
    _check_size(len(draw), x[0].numel())
    net, note = read_piecewise(f, x)
    rows = probed.rows(memory, gradients=1)
    integrals = PathIntegrals(
        f=probed.f, net=net, note=note, pieces=pieces, steps=steps, rows=rows, memory=memory
    )
    settings: dict[str, Any] = {
        "steps": steps,
        "converted": converted,
        "seed": seed,
        "drawn_from": len(x),
    }
    attributed = _Attributions(integrals, x, start, output, draw)
    with progress(len(draw), label="saliency") as bar:
        for part in draw.growing(FIRST, rows):
            for _ in attributed.add(x[part]):
                if stoppable():
                    yield attributed.latest
            bar.advance(len(x[part]))
            if stoppable() or attributed.done == len(draw):
                attributed.latest = Saliency(**attributed.fields(), **settings, note=note)
                yield attributed.latest


class _Attributions:
    """The attributions at the points so far."""

    def __init__(
        self, integrals: PathIntegrals, x: Tensor, start: Tensor, output: int | None, draw: Draw
    ) -> None:
        self._integrals, self._start, self._output, self._draw = integrals, start, output, draw
        n, width = len(draw), x[0].numel()
        self._shape = tuple(x.shape[1:])
        self._points, self._gradients = x.new_empty(n, width), x.new_empty(n, width)
        self._integrated = x.new_empty(n, width)
        self._values, self._baseline_values = x.new_empty(n), x.new_empty(n)
        self._outputs = torch.zeros(n, dtype=torch.int64)
        self._pieces = torch.zeros(n, dtype=torch.int64)
        with torch.no_grad():
            self._at_start = checks.call(integrals.f, start[None].clone()).reshape(-1)
        self.done = 0
        self.latest: Saliency | None = None

    def add(self, part: Float64[Tensor, "m *d"]) -> Iterator[None]:
        """Add the attributions at some points, and pause on the way."""
        at = slice(self.done, self.done + len(part))
        chosen = None if self._output is None else torch.full((len(part),), self._output)
        gradients, outputs, values = chosen_gradients(self._integrals.f, part, chosen)
        self._points[at], self._gradients[at] = part.flatten(1), gradients
        self._outputs[at], self._values[at] = outputs, values
        self._baseline_values[at] = self._at_start[outputs]
        for k, (stop, output) in enumerate(zip(part, outputs.tolist(), strict=True)):
            mean, count = yield from self._integrals.mean_gradient(self._start, stop, output)
            moved = (stop - self._start).flatten()
            self._integrated[at.start + k] = mean * moved + 0.0  # and no -0.0
            self._pieces[at.start + k] = count
        self.done = at.stop
        sums = self._gradients[: at.stop].sum(1) + self._integrated[: at.stop].sum(1)
        checks.finite(self._draw.in_order(sums), "points")

    def fields(self) -> dict[str, Any]:
        """Return the fields of a result, in the order of the points once all are there."""
        named = {
            "points": self._points,
            "outputs": self._outputs,
            "values": self._values,
            "baseline_values": self._baseline_values,
            "gradients": self._gradients,
            "integrated": self._integrated,
            "pieces": self._pieces,
        }
        ordered = {name: self._draw.in_order(t[: self.done]) for name, t in named.items()}
        return {**ordered, "baseline": self._start.flatten(), "shape": self._shape}


def _check_output(output: int | None, outputs: int) -> None:
    if output is None:
        return
    checks.whole(0, output=output)
    if output >= outputs:
        raise ValueError(
            f"output must be one of the {outputs} outputs, 0 to {outputs - 1}, found {output}: "
            "choose one of them, or leave it out for the largest."
        )


def _check_size(count: int, inputs: int) -> None:
    size = 3 * 8 * count * inputs
    if size > LARGEST:
        raise BudgetError(
            f"all attributions together must take at most {LARGEST / 2**30:.0f} GiB, but {count} "
            f"points with {inputs} inputs take {size / 2**30:.1f} GiB: take fewer points."
        )
