"""Local minimum: whether a network sits at one, and the theorem or the step that shows it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.inference import no_grad
from inscape._core.result import NONNEGATIVE, Range
from inscape.landscape._loss_function import GRAPHS, ModuleLoss, loss_function_of
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
from inscape.training import Loss

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

    @property
    def verdict(self) -> str:
        """Return the verdict of the loss that is trained: with the regulariser, if there is one."""
        return self.verdicts[-1]

    @property
    def is_proved(self) -> bool:
        """Tell whether a local minimum is proved."""
        return self.verdict in (AFFINE, MODULO)

    @property
    def sentence(self) -> str:
        """Return the verdict in a sentence, with what shows it."""
        text = f"{IN_WORDS[self.verdict]}: {self.reasons[-1]}"
        if self.verdict == MOVING and self.losses[-1] > 0:
            fraction = float(self.lowered[-1] / self.losses[-1])
            text += f", {fraction:.0%} of it" if fraction >= 0.01 else f", {fraction:.2g} of it"
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
        return Summary(value=fraction, kind="lower bound", basis=self.verdict)


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
) -> LocalMinimum | NotApplicable:
    r"""Decide whether the parameters are at a local minimum, by proof or by counterexample.

    .. math:: \exists \theta^{\star}: \; \lVert \theta^{\star} - \theta \rVert \leq r, \quad
              \nabla L(\theta^{\star}) = 0, \quad v \cdot \nabla^2 L(\theta^{\star}) v > 0
              \; \mathrm{for} \; v \perp T

    Five verdicts, in float64: *not stationary* or *saddle*, shown by a step that lowers the loss;
    *proved, affine on the data* by theorem 1; *proved modulo known flat directions* T by inertia
    and a Newton-Kantorovich test; *undecided* with the reason. Proofs apply to chains of linear
    layers with ReLU, tanh or sigmoid under ``"mse"`` or ``"cross_entropy"``.

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
    problem = loss_function_of(
        model,
        x,
        y,
        loss=loss,
        module_loss=module_loss,
        weight_decay=weight_decay,
        double=True,
        memory=memory,
    )
    if problem is None:
        return NotApplicable(what="local_minimum", reason=NO_PARAMETERS)
    judge = JudgeSettings(tolerance, dense, products, seed, memory)
    bare = problem.without_decay()
    versions = [bare] if weight_decay == 0.0 else [bare, problem]
    points = [point_verdict(version, judge) for version in versions]
    return _result(points, problem.size, float(weight_decay), problem.loss_name)


def _result(points: list[PointVerdict], size: int, decay: float, loss: str) -> LocalMinimum:
    causes = tuple(points[0].flat)

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
        parameters=size,
        weight_decay=decay,
        loss=loss,
    )
