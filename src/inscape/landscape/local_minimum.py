"""Local minimum: whether a network sits at one, and the theorem or the step that shows it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.anytime import anytime, patience, stoppable
from inscape._core.inference import no_grad
from inscape._core.result import NONNEGATIVE, Range
from inscape.landscape._loss_function import GRAPHS, LossFunction, ModuleLoss, loss_function_of
from inscape.landscape._sampled_descent import SampledStep, sampled_steps
from inscape.landscape._verdict import (
    AFFINE,
    MODULO,
    MOVING,
    SADDLE,
    UNDECIDED,
    JudgeSettings,
    PointVerdict,
    point_verdict,
)
from inscape.landscape.hessian_extremes import NO_PARAMETERS
from inscape.runtime.deadline import now
from inscape.training import Loss

#: How many times as long all samples take as the same number for a step and its judges.
WHOLE = 3.0
#: Each verdict as the beginning of a sentence, which the reason ends.
IN_WORDS = {
    AFFINE: "It sits at a local minimum of the loss on these data, which is proved",
    MODULO: "It sits at a local minimum of the loss on these data, which is proved up to known "
    "flat directions",
    SADDLE: "It sits at a saddle of the loss on these data",
    MOVING: "It does not sit at a minimum of the loss on these data",
    UNDECIDED: "It is undecided whether it sits at a minimum of the loss on these data",
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LocalMinimum(Result):
    r"""What kind of point a network sits at, with and without the regulariser.

    Each field has one entry for the loss without regulariser and, if there is weight decay, one
    with it. ``radius`` is the distance within which a true minimum lies, zero without proof;
    ``lowered`` by how much a step of length ``step`` was seen to lower the loss. ``flat`` counts
    the known flat directions by ``causes``; ``unexplained`` the curvatures that are zero up to
    rounding beside them. ``smallest`` is the smallest curvature orthogonal to the known flat ones.

    Of a call that was stopped early only ``samples`` of the ``drawn_from`` samples may be known:
    half of them made the step, ``lowered`` is by how much it lowers the loss on the others at
    least, and ``losses`` and ``gradients`` are those of the samples, ``lowered`` with a probability
    of 97.5%.
    """

    range: ClassVar[Range] = NONNEGATIVE

    verdicts: tuple[str, ...]
    reasons: tuple[str, ...]
    losses: Float64[Tensor, " versions"]
    gradients: Float64[Tensor, " versions"]
    smallest: Float64[Tensor, " versions"]
    radius: Float64[Tensor, " versions"]
    lowered: Float64[Tensor, " versions"]
    step: Float64[Tensor, " versions"]
    flat: Float64[Tensor, "versions causes"]
    unexplained: Float64[Tensor, " versions"]
    causes: tuple[str, ...]
    parameters: int
    weight_decay: float
    loss: str
    samples: int
    drawn_from: int

    @property
    def covered(self) -> float:
        """Return the fraction of the samples that the verdict is of."""
        return self.samples / self.drawn_from

    @property
    def verdict(self) -> str:
        """Return the verdict of the loss that is trained: with the regulariser, if there is one."""
        return self.verdicts[-1]

    @property
    def is_proved(self) -> bool:
        """Tell whether a local minimum is proved."""
        return self.verdict in (AFFINE, MODULO)

    @property
    def is_moving(self) -> bool:
        """Tell whether a step down the gradient is seen to lower the loss."""
        return self.verdict == MOVING

    @property
    def sentence(self) -> str:
        """Return the verdict in a sentence, with what shows it."""
        text = f"{IN_WORDS[self.verdict]}: {self.reasons[-1]}"
        if self.verdict == MOVING and self.losses[-1] > 0:
            text += f", {100 * float(self.lowered[-1] / self.losses[-1]):.2g}% of it"
        return f"{text}."

    def rows(self) -> Iterator[Row]:
        """Yield one row for each version of the loss."""
        for k, verdict in enumerate(self.verdicts):
            yield {
                "regulariser": k > 0,
                "verdict": verdict,
                "reason": self.reasons[k],
                "loss": float(self.losses[k]),
                "gradient": float(self.gradients[k]),
                "smallest": float(self.smallest[k]),
                "radius": float(self.radius[k]),
                "lowered": float(self.lowered[k]),
                "flat": int(self.flat[k].sum()),
                "unexplained": int(self.unexplained[k]),
            }

    def summary(self) -> Summary:
        """Return by which fraction a step lowers the loss; zero where none was found."""
        loss, lowered = abs(float(self.losses[-1])), float(self.lowered[-1])
        fraction = min(1.0, lowered / loss) if loss > 0 else 0.0
        part = "" if self.covered == 1 else f", {self.samples:,} of {self.drawn_from:,} samples"
        return Summary(value=fraction, kind="lower bound", basis=self.verdict + part)


@instrument(
    reads="parameters",
    better="smaller",
    larger="farther from a minimum",
    cost="seconds",
    work=lambda n, c: 1500 * n,
    meaning="A short step from here lowers the loss by the fraction {value}.",
    cites="goldblum2020truth, Theorem 1; kantorovich1948functional; laurent2018deep",
    of_training=True,
)
@anytime
@no_grad
def local_minimum(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor | None = None,
    *,
    loss: str | Loss | None = None,
    module_loss: ModuleLoss | None = None,
    weight_decay: float = 0.0,
    tolerance: float = 1e-6,
    dense: int = 600,
    products: int = 100,
    seed: int = 0,
    memory: int = 2 * GRAPHS,
) -> Iterator[LocalMinimum | NotApplicable]:
    r"""Decide whether the parameters are at a local minimum, by proof or by counterexample.

    .. math:: \exists \theta^{\star}: \; \lVert \theta^{\star} - \theta \rVert \leq r, \quad
              \nabla L(\theta^{\star}) = 0, \quad v \cdot \nabla^2 L(\theta^{\star}) v > 0
              \; \mathrm{for} \; v \perp T

    Five verdicts, in float64: *not stationary* or *saddle*, shown by a step that lowers the loss;
    *proved, affine on the data* by theorem 1; *proved modulo known flat directions* T by inertia
    and a Newton-Kantorovich test; *undecided* with the reason. Proofs apply to chains of linear
    layers with ReLU, tanh or sigmoid under ``"mse"`` or ``"cross_entropy"``. First results of
    ``local_minimum.refine`` are those of some samples, judged by others.

    Args:
        model: A module in eval mode.
        x: Points of the data, all of which count.
        y: Their labels; not needed for a ``module_loss``.
        loss: As in ``fit``, a mean over samples; ``"cross_entropy"`` by default for integer labels.
        module_loss: Instead of a loss of outputs, any scalar function of the module.
        weight_decay: As in ``fit``; both losses are judged, without it and with it.
        tolerance: Fraction of the loss that a gradient step must take off to be not stationary.
        dense: Up to so many parameters the whole Hessian is computed.
        products: Most Hessian-vector products where it is not.
        seed: Seed of the random start of these.
        memory: Bytes that the vectors and graphs may take.
    """
    checks.at_least(0.0, tolerance=tolerance)
    judge = JudgeSettings(tolerance, dense, products, seed, memory)
    problem = loss_function_of(
        model,
        x,
        y,
        loss=loss,
        module_loss=module_loss,
        weight_decay=weight_decay,
        memory=memory,
    )
    if problem is None:
        yield NotApplicable(what="local_minimum", reason=NO_PARAMETERS)
        return
    if stoppable() and module_loss is None and weight_decay == 0.0:
        yield from _of_samples(problem, judge)
    problem = problem.in_double()
    bare = problem.without_decay()
    versions = [bare] if weight_decay == 0.0 else [bare, problem]
    points = [point_verdict(version, judge) for version in versions]
    yield _result(points, problem)


def _of_samples(problem: LossFunction, judge: JudgeSettings) -> Iterator[LocalMinimum]:
    """Yield what ever more samples show, then the last of it while all would take too long."""
    latest: Any = None
    needed, begun = 0.0, now()
    for step in sampled_steps(problem, judge.seed):
        if step is not None:
            took, begun = now() - begun, now()
            latest = _of_step(step, problem, judge)
            needed = WHOLE * took * len(problem.x) / step.count
        yield latest
    while patience() < needed:
        yield latest


def _of_step(step: SampledStep, problem: LossFunction, judge: JudgeSettings) -> LocalMinimum:
    """Return what a step shows that some samples made and others judge."""
    count = f"{step.count:,}"
    point = PointVerdict(
        loss=step.loss,
        gradient=step.gradient,
        reason=f"down the gradient of {count} samples, the loss on {count} others falls by no more "
        "than chance explains",
    )
    if step.lowered > judge.tolerance * abs(step.loss):
        reason = f"a step of length {step.length:.3g} down the gradient of {count} samples lowers "
        reason += f"the loss on {count} others by at least {step.lowered:.3g}"
        lowered, length = step.lowered, step.length
        point = replace(point, verdict=MOVING, reason=reason, lowered=lowered, step=length)
    return _result([point], problem, samples=2 * step.count)


def _result(
    points: list[PointVerdict], problem: LossFunction, *, samples: int | None = None
) -> LocalMinimum:
    causes, n = tuple(points[0].flat), len(problem.x)

    def column(name: str) -> Float64[Tensor, " versions"]:
        return torch.tensor([float(getattr(point, name)) for point in points]).double()

    return LocalMinimum(
        verdicts=tuple(point.verdict for point in points),
        reasons=tuple(point.reason for point in points),
        losses=torch.tensor([point.loss for point in points], dtype=torch.float64),
        gradients=torch.tensor([point.gradient for point in points], dtype=torch.float64),
        smallest=torch.tensor([point.smallest for point in points], dtype=torch.float64),
        radius=torch.tensor([point.radius for point in points], dtype=torch.float64),
        lowered=torch.tensor([point.lowered for point in points], dtype=torch.float64),
        step=torch.tensor([point.step for point in points], dtype=torch.float64),
        flat=torch.tensor(
            [[float(point.flat[cause]) for cause in causes] for point in points],
            dtype=torch.float64,
        ),
        unexplained=column("unexplained"),
        causes=causes,
        parameters=problem.size,
        weight_decay=problem.decay,
        loss=problem.loss_name,
        samples=n if samples is None else samples,
        drawn_from=n,
    )
