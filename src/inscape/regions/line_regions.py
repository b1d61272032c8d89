"""Line regions: the linear regions of a network along straight lines, exactly."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Float64, Int64, Integer
from torch import Tensor

from inscape._core import (
    NotApplicable,
    Result,
    Row,
    Summary,
    UnsupportedModelError,
    checks,
    draw_pairs,
    instrument,
)
from inscape._core.anytime import anytime, stoppable
from inscape._core.checks import Function
from inscape._core.inference import no_grad
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.jacobians import norm
from inscape.functional.precision import name_of
from inscape.piecewise.graph.network import piecewise
from inscape.piecewise.lines.evaluation import ROOM, SegmentEvaluation
from inscape.piecewise.lines.rounding import NOISE
from inscape.piecewise.lines.segments import CutSegments, Cutting, cutting_of
from inscape.piecewise.stepping import StepClock
from inscape.regions._line_maps import PieceDetails
from inscape.regions._refusal import refusal
from inscape.runtime.progress import progress

#: How many times as many pieces the next result has, where results come step by step.
MORE = 1.25

#: How often pairs are drawn anew while some of them join a point to itself.
DRAWS = 100


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LineRegions(Result):
    """Segments of the input space, cut at the breakpoints of a network; flat arrays with offsets.

    Segment i goes from ``starts[i]`` to ``stops[i]`` and owns the knots from ``offsets[i]`` to
    ``offsets[i + 1]``: ``t`` is the fraction of the segment, ``values`` the outputs there. Its
    pieces lie between neighbouring knots; ``slopes`` are the derivatives along the line by arc
    length. A cell is a piece of constant activation pattern; merged are neighbours with equal
    slopes. ``variation`` is that of f inside each segment, ``slope_variation`` that of its
    derivative along the segment, and ``gradient_variation`` that of its whole gradient (Frobenius
    norms of the jumps of the Jacobian). ``vertex_jumps`` are the jumps of the gradient from one
    segment of a polyline to the next, zero where both go on in one piece; none of several segments
    apart. ``maps`` and ``biases`` give f(x) = A x + b on each piece, in input space. ``converted``
    names the precision of the model where it was another than float64, in which everything is
    computed.

    ``covered`` is the fraction of the length of all ``asked`` segments that was cut. Where it is
    less than 1, ``ended_by`` names the budget that was spent, or says that the user interrupted the
    call: the first segments are there, the last of them up to its last knot.
    """

    range: ClassVar[Range] = NONNEGATIVE

    t: Float64[Tensor, " knots"]
    offsets: Int64[Tensor, " segments_and_one"]
    values: Float64[Tensor, "knots c"]
    slopes: Float64[Tensor, "pieces c"]
    cells: Int64[Tensor, " segments"]
    merged: Int64[Tensor, " segments"]
    lengths: Float64[Tensor, " segments"]
    variation: Float64[Tensor, " segments"]
    slope_variation: Float64[Tensor, " segments"]
    starts: Float64[Tensor, "segments *d"]
    stops: Float64[Tensor, "segments *d"]
    patterns: Integer[Tensor, "pieces units"] | None = None
    maps: Float64[Tensor, "pieces c D"] | None = None
    biases: Float64[Tensor, "pieces c"] | None = None
    gradient_variation: Float64[Tensor, " segments"] | None = None
    vertex_jumps: Float64[Tensor, " joints"] | None = None
    converted: str | None = None
    seed: int | None = None
    covered: float = 1.0
    asked: int | None = None
    ended_by: Literal["complete", "seconds", "interrupted"] = "complete"

    @property
    def complete(self) -> bool:
        """Tell whether all segments are cut from end to end."""
        return self.ended_by == "complete"

    def total_gradient_variation(self) -> float:
        """Return the total variation of the gradient along all of a polyline, vertices included."""
        if self.gradient_variation is None or self.vertex_jumps is None:
            raise ValueError(
                "the gradient was not computed along these lines: call line_regions with "
                "gradients=True."
            )
        return float(self.gradient_variation.sum() + self.vertex_jumps.sum())

    def rows(self) -> Iterator[Row]:
        """Yield one row for each piece: where it lies and how steep it is."""
        lengths, offsets = self.lengths.tolist(), self.offsets.tolist()
        steepness = norm(self.slopes, dim=1).tolist()
        for segment, (first, stop) in enumerate(pairwise(offsets)):
            t = self.t[first:stop].tolist()
            for k, (low, high) in enumerate(pairwise(t)):
                yield {
                    "segment": segment,
                    "piece": k,
                    "from": low,
                    "to": high,
                    "length": (high - low) * lengths[segment],
                    "slope": steepness[first - segment + k],
                }

    def per_sample(self) -> Tensor | None:
        """Return the cells of each line between random pairs of points, where all are cut."""
        return self.cells.double() if self.complete and self.seed is not None else None

    def summary(self) -> Summary:
        """Return the mean number of cells of a segment; an estimate where the time was spent."""
        if not self.complete:
            return self._partial_summary()
        basis = f"{len(self.cells)} segments, {float(self.merged.double().mean()):.4g} when merged"
        return Summary(value=float(self.cells.double().mean()), kind="exact", basis=basis)

    def _partial_summary(self) -> Summary:
        """Return the mean over the segments that are cut to their end, or what one has so far."""
        is_finished = self.t[self.offsets[1:] - 1] == 1.0
        spent = f"the budget ({self.ended_by}) was spent"
        end = "it was interrupted" if self.ended_by == "interrupted" else spent
        basis = f"{self.covered:.1%} of {self.asked} line{'s' * (self.asked != 1)}, then {end}"
        if bool(is_finished.any()):
            mean = float(self.cells[is_finished].double().mean())
            return Summary(value=mean, kind="estimate", basis=basis)
        return Summary(value=float(self.cells[0]), kind="lower bound", basis=basis)

    def points(self) -> Float64[Tensor, "knots *d"]:
        """Return the knots in input space."""
        segment = torch.repeat_interleave(torch.arange(len(self.cells)), self.offsets.diff())
        t = self.t.reshape(-1, *[1] * (self.starts.ndim - 1))
        return torch.lerp(self.starts[segment], self.stops[segment], t)


@instrument(
    reads="function",
    larger="more linear regions",
    cost="instant",
    work=lambda n, c: 10 * n,
    setup=1.0,
    meaning="On the straight line from one data point to the next, the number of linear regions "
    "is {value} on average.",
    cites="sattelberg2026linearity, chapter 5",
    least_rows=2,
    example=lambda model, x, y: {"pairs": 100},
    exempt=("patterns",),
)
@anytime
@no_grad
def line_regions(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    to: Float[Tensor, "n *d"] | None = None,
    closed: bool = False,
    pairs: int | None = None,
    patterns: bool = False,
    maps: bool = False,
    gradients: bool = False,
    seed: int = 0,
    seconds: float | None = None,
    memory: int = ROOM,
) -> Iterator[LineRegions | NotApplicable]:
    r"""Cut lines through the input space into the segments on which ``f`` is linear.

    .. math:: f(a + t (b - a)) = y_k + (t - t_k) \, s_k \quad (t_k \leq t \leq t_{k+1}), \quad
              TV_{[a,b]}(f) = \sum_k (t_{k+1} - t_k) \, \lVert s_k \rVert

    Exact up to the rounding of float64: every breakpoint of every unit, the outputs there, and the
    slope of every segment; with ``gradients`` the total variation of the gradient. The rows of
    ``x`` are the vertices of a polyline, unless ``to`` or ``pairs`` say otherwise. A chain of dense
    layers costs less than its evaluation at the breakpoints; any other graph two to three such
    evaluations, less where most breakpoints are in its last layers. Lines are cut from their
    beginning on, window by window, each exact through all layers: what is covered when the time is
    over is exact. ``line_regions.refine`` yields growing prefixes. A call that is interrupted
    (Ctrl-C) returns what it has covered, with a warning.

    Args:
        f: A piecewise-linear network in eval mode.
        x: The vertices of a polyline; or the starts of segments; or what pairs are drawn from.
        to: Where the segment that starts at each row of ``x`` stops.
        closed: Whether the polyline returns to its first vertex.
        pairs: Number of segments between random rows of ``x``.
        patterns: Whether to keep the activation pattern of every piece.
        maps: Whether to keep the affine map of every piece in input space.
        gradients: Whether to sum the jumps of the whole gradient, at the vertices too; costs a
            forward and ``c`` backward passes for each piece.
        seed: Seed of the draw of pairs.
        seconds: Stop after this time, with what is covered; ``BudgetError`` where it is too short
            for a single piece. Only the export of the network is never left.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> corners = torch.tensor([[-1.0], [3.0]])
    >>> found = line_regions(torch.relu, corners)
    >>> found.t.tolist(), found.slopes.flatten().tolist()
    ([0.0, 0.25, 1.0], [0.0, 1.0])
    """
    turn = StepClock(seconds)
    checks.whole(1, memory=memory)
    checks.points(x)
    a, b = _segments(x, to, closed=closed, pairs=pairs, seed=seed)
    try:
        net = piecewise(f, x)
    except UnsupportedModelError as error:
        yield refusal("line_regions", f, x, error)
        return
    turn.exported()
    rows = SegmentEvaluation(net, a, b, memory)
    details = PieceDetails(rows, patterns=patterns, maps=maps, gradients=gradients)
    try:
        joined = to is None and pairs is None
        result: Any = None  # yielded again where a step is over
        for cuts in _growing(rows, details, turn):
            if cuts is not None:
                checks.finite(cuts.slopes.sum(1), "pieces")
                result = _result(
                    rows,
                    cuts,
                    details,
                    joined=joined,
                    closed=closed,
                    seed=seed if pairs else None,
                    ended_by="interrupted" if turn.interrupted else "seconds",
                )
            yield result
    except UnsupportedModelError as error:
        if error is details.error:
            raise
        yield refusal("line_regions", f, x, error)


def _growing(
    rows: SegmentEvaluation, details: PieceDetails, turn: StepClock
) -> Iterator[CutSegments | None]:
    """Yield a growing number of pieces, by a quarter each time; None where a step is over.

    Without a waiting caller, only the final pieces.
    """
    cutting = cutting_of(rows.net, rows.a, rows.b, memory=rows.memory)
    shown, shows = 0, stoppable()
    steps = _work(cutting, details, turn)
    for _ in steps if shows else _shown_and_interruptible(steps, cutting, details, turn):
        known = details.known(cutting.pieces)
        if turn.deadline.passed():
            if not known:
                raise turn.spent("one linear region", "take fewer inputs, as by smaller images")
            break
        if shows and known > MORE * shown:
            shown = known
            yield details.of(cutting.lines())
            turn.begin()
        elif shows and turn.is_over():
            yield None
            turn.begin()
    if details.known(cutting.pieces) > shown:
        yield details.of(cutting.lines())


def _shown_and_interruptible(
    steps: Iterator[None], cutting: Cutting, details: PieceDetails, turn: StepClock
) -> Iterator[None]:
    """Take steps with a progress bar, and end where the user interrupts them with a result."""
    segments = len(details.starts)
    with progress(100, label="cutting lines") as bar:
        try:
            for _ in steps:
                bar.advance(int(100 * cutting.reached / segments) - bar.done)
                yield
        except KeyboardInterrupt:
            if not details.known(cutting.pieces):
                raise
            turn.interrupted = True
            warnings.warn(
                f"line_regions was interrupted after {cutting.reached:.4g} of {segments} segments: "
                "the result covers these alone.",
                stacklevel=2,
            )


def _work(cutting: Cutting, details: PieceDetails, turn: StepClock) -> Iterator[None]:
    """Cut the segments and process the pieces; in alternation where the time is limited."""
    watched, begun = turn.is_watched, 0
    for _ in cutting.steps(turn.deadline, watched=watched):
        yield
        if watched and details.is_asked_for and cutting.pieces > begun:
            begun = cutting.pieces
            yield from details.steps(cutting.lines(), watched=True)
    if details.is_asked_for:
        yield from details.steps(cutting.lines(), watched=watched)


def _result(
    rows: SegmentEvaluation,
    cuts: CutSegments,
    details: PieceDetails,
    *,
    joined: bool,
    closed: bool,
    seed: int | None,
    ended_by: Literal["seconds", "interrupted"],
) -> LineRegions:
    """Return what is known of the segments, and what ended the work where that is not all."""
    pieces, asked, covered = len(cuts.slopes), len(rows.a), cuts.covered
    is_complete = len(covered) == asked and float(covered[-1]) == 1.0
    variation, jumps = details.turned(cuts, joined=joined, closed=closed and is_complete)
    matrices, constants = details.maps(pieces)
    lengths = norm((rows.b - rows.a).flatten(1), dim=1)
    total, begun = float(lengths.sum()), slice(len(covered))
    lengths = lengths[begun]
    return LineRegions(
        t=cuts.t,
        offsets=cuts.offsets,
        values=cuts.values,
        slopes=cuts.slopes / lengths[cuts.segment, None],
        cells=cuts.pieces,
        merged=cuts.merged(),
        lengths=lengths,
        variation=cuts.variation(),
        slope_variation=cuts.turning() / lengths,
        starts=rows.a[begun],
        stops=rows.b[begun],
        patterns=details.patterns(pieces),
        maps=matrices,
        biases=constants,
        gradient_variation=variation,
        vertex_jumps=jumps,
        converted=name_of(rows.net.converted),
        seed=seed,
        covered=1.0 if is_complete else float((covered * lengths).sum()) / total,
        asked=asked,
        ended_by="complete" if is_complete else ended_by,
    )


def _segments(
    x: Tensor, to: Tensor | None, *, closed: bool, pairs: int | None, seed: int
) -> tuple[Float64[Tensor, "m *d"], Float64[Tensor, "m *d"]]:
    """Return both ends of every requested segment."""
    if (to is not None) + closed + (pairs is not None) > 1:
        raise ValueError(
            "at most one of to, closed and pairs may be given, found several: x is one polyline, "
            "the starts of segments, or what pairs are drawn from."
        )
    if pairs is not None:
        return _distinct_pairs(x.double(), pairs, seed)
    if to is not None:
        checks.points(to, "to")
        if to.shape != x.shape:
            raise ValueError(
                f"to must hold one point for each row of x, found shape {tuple(to.shape)} for "
                f"{tuple(x.shape)}: pass two batches of one shape."
            )
        a, b = x.double(), to.double()
    else:
        if len(x) < 2:
            raise ValueError("x must hold at least 2 vertices, found 1: pass a line, or use to.")
        a, b = x.double(), x.double().roll(-1, 0)
        a, b = (a, b) if closed else (a[:-1], b[:-1])
    short = torch.nonzero((a == b).flatten(1).all(1))[:, 0]
    if len(short):
        raise ValueError(
            f"a segment must join two different points, found {len(short)} of {len(a)} that do "
            f"not, the first at row {int(short[0])}: drop repeated points."
        )
    size = torch.maximum(a.abs(), b.abs()).flatten(1).amax(1)
    hidden = torch.nonzero((b - a).abs().flatten(1).amax(1) <= NOISE * size)[:, 0]
    if len(hidden):
        raise ValueError(
            "a segment must be longer than the rounding of its ends, or no linear region on it "
            f"could be told from another, found {len(hidden)} of {len(a)} that are not, the first "
            f"at row {int(hidden[0])}: take points farther apart, or nearer to zero."
        )
    return a, b


def _distinct_pairs(x: Tensor, pairs: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw pairs of different points: a pair of equal points is drawn again."""
    checks.whole(1, pairs=pairs)
    a, b = draw_pairs(x, pairs, seed=seed)
    for again in range(DRAWS):
        same = (a == b).flatten(1).all(1)
        if not bool(same.any()):
            return a, b
        a[same], b[same] = draw_pairs(x, int(same.sum()), seed=seed + again + 1)
    raise ValueError(
        f"x must hold different points to draw pairs from, found nearly none in {len(x)} rows: "
        "pass more data."
    )
