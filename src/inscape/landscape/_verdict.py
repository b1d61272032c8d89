"""What kind of point some parameters are: five verdicts, each with what shows it."""

import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core import checks
from inscape.landscape._affine_certificate import affine_certificate
from inscape.landscape._curvature_rounding import EPSILON, LEAST_ROUNDING, matrix_rounding
from inscape.landscape._dense_network import (
    DenseLayer,
    ball_bounds,
    dense_layers,
    kink_margin,
)
from inscape.landscape._descent import (
    curvature_step,
    expected_gain,
    gradient_step,
    loss_rounding,
)
from inscape.landscape._ends import EndSearch, extreme_ends
from inscape.landscape._flat_directions import (
    CAUSES,
    IDLE,
    FlatDirections,
    IdleUnits,
    extended,
    flat_directions,
    idle_units,
)
from inscape.landscape._inertia import inertia_below
from inscape.landscape._loss_function import LossFunction

AFFINE = "proved, affine on the data"
MODULO = "proved modulo known flat directions"
SADDLE = "saddle"
MOVING = "not stationary"
UNDECIDED = "undecided"
#: A pre-activation this near to zero, relative to the largest of its layer, is at a kink.
AT_KINK = 1e-12
#: Part of the smallest curvature that is left to rounding when it is proved by inertia.
SLACK = 0.1


@dataclass(frozen=True)
class JudgeSettings:
    """The settings of ``local_minimum`` that the verdict depends on."""

    tolerance: float
    dense: int
    products: int
    seed: int
    memory: int

    def __post_init__(self) -> None:
        """Refuse settings that cannot be."""
        checks.whole(0, dense=self.dense)
        checks.whole(1, products=self.products, memory=self.memory)
        checks.seed(self.seed)


@dataclass(frozen=True, kw_only=True)
class PointVerdict:
    """The verdict on one version of the loss, and the numbers behind it."""

    loss: float
    gradient: float
    verdict: str = UNDECIDED
    reason: str = ""
    smallest: float = 0.0
    radius: float = 0.0
    lowered: float = 0.0
    step: float = 0.0
    flat: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*CAUSES, IDLE), 0))
    unexplained: int = 0


def point_verdict(problem: LossFunction, judge: JudgeSettings) -> PointVerdict:
    """Return the verdict on the parameters as they are."""
    loss, gradient = problem.value(), problem.gradient()
    checks.finite(gradient, "parameters")
    norm, product = float(gradient.norm()), problem.products()
    curved = product(gradient)
    checks.finite(curved, "parameters")
    step = gradient_step(problem, loss, gradient, curved)
    least = max(judge.tolerance * abs(loss), loss_rounding(problem, loss))
    if step.lowered > least:
        reason = f"a step of length {step.length:.3g} down the gradient lowers the loss by "
        reason += f"{step.lowered:.3g}"
        return PointVerdict(
            loss=loss,
            gradient=norm,
            verdict=MOVING,
            reason=reason,
            lowered=step.lowered,
            step=step.length,
        )
    if expected_gain(problem, gradient, curved) > least:
        return PointVerdict(
            loss=loss,
            gradient=norm,
            reason=f"kinks on the data: the gradient is {norm:.3g}, but no step down it lowers the "
            "loss",
        )
    layers, remark = _layers(problem), ""
    if layers is not None:
        certificate = affine_certificate(problem, layers)
        if certificate.certified:
            return PointVerdict(
                loss=loss,
                gradient=norm,
                verdict=AFFINE,
                reason="theorem 1: all pre-activations are positive on the data, and a minimum of "
                "the convex problem of the affine map lies within the radius",
                smallest=certificate.curvature,
                radius=certificate.radius,
            )
        if certificate.affine:
            remark = f"; it is affine on the data, but {certificate.reason}"
    if problem.size > judge.dense:
        point = _large(problem, judge, loss, gradient)
    else:
        point = _small(problem, layers, loss, gradient)
    if point.verdict == UNDECIDED:
        return replace(point, reason=point.reason + remark)
    return point


def _layers(problem: LossFunction) -> list[DenseLayer] | None:
    """Return the layers of a chain whose loss and functions have known derivatives."""
    known = problem.module_loss is None and problem.loss in ("mse", "cross_entropy")
    return dense_layers(problem) if known else None


def _large(
    problem: LossFunction, judge: JudgeSettings, loss: float, gradient: Float64[Tensor, " p"]
) -> PointVerdict:
    """Return the verdict where the Hessian does not fit: a saddle, or undecided."""
    search = EndSearch(
        products=judge.products, dense=0, seed=judge.seed, memory=judge.memory, tolerance=1e-4
    )
    *_, ends = extreme_ends(problem, search)
    norm = float(gradient.norm())
    assert ends.vectors is not None
    if ends.negative:
        saddle = _saddle(problem, loss, gradient, ends.vectors[0], ends.smallest)
        if saddle is not None:
            return saddle
    bound = f"{ends.below:.3g}" if math.isfinite(ends.below) else "any number"
    return PointVerdict(
        loss=loss,
        gradient=norm,
        reason=f"too many parameters for inertia ({problem.size:,}): the smallest Ritz value is "
        f"{ends.smallest:.3g}, and with probability {1 - ends.failure:.1%} no curvature is below "
        f"{bound}",
        smallest=ends.smallest,
    )


def _small(
    problem: LossFunction,
    layers: list[DenseLayer] | None,
    loss: float,
    gradient: Float64[Tensor, " p"],
) -> PointVerdict:
    """Return the verdict from the whole Hessian."""
    hessian = problem.products().matrix()
    checks.finite(hessian, "parameters")
    values, vectors = torch.linalg.eigh(hessian)
    rounding = LEAST_ROUNDING * len(values) * EPSILON * float(values.abs().max())
    rounding += matrix_rounding(problem)
    idle = idle_units(problem, layers, hessian) if layers else None
    descents = [vectors[:, 0]] if float(values[0]) < -rounding else []
    if idle is not None and idle.worst is not None and idle.cross > rounding:
        descents.append(idle.worst)
    for direction in descents:
        curvature = float(direction @ hessian @ direction)
        saddle = _saddle(problem, loss, gradient, direction, curvature)
        if saddle is not None:
            return saddle
    flat = _known_flats(problem, layers)
    counted = flat if idle is None else extended(flat, idle.directions)
    spectrum = torch.linalg.eigvalsh(_projected(hessian, counted.basis))
    projected = _projected(hessian, flat.basis)
    reason, radius, curvature = _proof(problem, layers, flat, projected, gradient, rounding)
    if descents:
        reason = f"no step along the negative curvature {float(values[0]):.3g} lowers the loss by "
        reason += "more than its rounding"
    return PointVerdict(
        loss=loss,
        gradient=float(gradient.norm()),
        verdict=UNDECIDED if reason else MODULO,
        reason=reason + _about(idle)
        if reason
        else "Newton-Kantorovich: a critical point within the radius, where the Hessian is "
        "positive definite orthogonal to the flat directions, by inertia",
        smallest=float(spectrum[0]) if reason else curvature,
        radius=0.0 if reason else radius,
        flat=counted.counts,
        unexplained=int((spectrum.abs() <= rounding).sum()),
    )


def _about(idle: IdleUnits | None) -> str:
    """Return what there is to say about active units without outgoing weights."""
    if idle is None or not idle.count:
        return ""
    return (
        f"; {idle.count} active units have no outgoing weights, with cross terms up to "
        f"{idle.cross:.2g}"
    )


def _saddle(
    problem: LossFunction,
    loss: float,
    gradient: Float64[Tensor, " p"],
    direction: Float64[Tensor, " p"],
    curvature: float,
) -> PointVerdict | None:
    """Return the verdict of a saddle, if a walk along the direction lowers the loss."""
    step = curvature_step(problem, loss, direction, gradient)
    if step.lowered <= loss_rounding(problem, loss):
        return None
    return PointVerdict(
        loss=loss,
        gradient=float(gradient.norm()),
        verdict=SADDLE,
        reason=f"negative curvature {curvature:.3g} along a direction in which a step of length "
        f"{step.length:.3g} lowers the loss by {step.lowered:.3g}",
        smallest=curvature,
        lowered=step.lowered,
        step=step.length,
    )


def _known_flats(problem: LossFunction, layers: list[DenseLayer] | None) -> FlatDirections:
    if layers is not None:
        return flat_directions(problem, layers)
    empty = torch.zeros(problem.size, 0, dtype=torch.float64)
    return FlatDirections(basis=empty, counts=dict.fromkeys((*CAUSES, IDLE), 0), least=1.0)


def _projected(
    hessian: Float64[Tensor, "p p"], basis: Float64[Tensor, "p k"]
) -> Float64[Tensor, "p p"]:
    """Return the Hessian orthogonal to a basis, in which its curvature becomes the largest."""
    if basis.shape[1] == 0:
        return hessian
    outer = basis @ basis.T
    complement = torch.eye(len(hessian), dtype=torch.float64) - outer
    size = float(torch.linalg.matrix_norm(hessian, 2)) or 1.0
    projected = complement @ hessian @ complement + size * outer
    return (projected + projected.T) / 2


def _proof(
    problem: LossFunction,
    layers: list[DenseLayer] | None,
    flat: FlatDirections,
    projected: Float64[Tensor, "p p"],
    gradient: Float64[Tensor, " p"],
    rounding: float,
) -> tuple[str, float, float]:
    """Return why there is no proof (or nothing), the radius and the proved curvature."""
    smallest = float(torch.linalg.eigvalsh(projected)[0])
    if layers is not None:
        size = max(float(layer.outputs.abs().max()) for layer in layers)
        if kink_margin(layers) <= AT_KINK * size:
            return "a pre-activation is at a kink on the data", 0.0, smallest
    if smallest <= 2 * rounding:
        zeros = int((torch.linalg.eigvalsh(projected) <= 2 * rounding).sum())
        return f"flat directions without a known cause: {zeros}", 0.0, smallest
    if layers is None:
        return "the network is no chain of linear layers whose derivatives are bounded", 0.0, 0.0
    below, error = inertia_below(projected, (1 - SLACK) * smallest)
    curvature = (1 - SLACK) * smallest - error - rounding
    if below or curvature <= 0:
        return "the smallest curvature is too small for inertia", 0.0, smallest
    return _newton_kantorovich(problem, layers, flat, gradient, curvature)


def _newton_kantorovich(
    problem: LossFunction,
    layers: list[DenseLayer],
    flat: FlatDirections,
    gradient: Float64[Tensor, " p"],
    curvature: float,
) -> tuple[str, float, float]:
    r"""Return why the test fails (or nothing), the radius and the curvature.

    .. math:: h = \frac{M \eta}{\mu} \le \frac12, \quad
              r = \frac{\mu}{M} \bigl( 1 - \sqrt{1 - 2 h} \bigr) \le 2 \eta,
              \quad \eta = \lVert P g \rVert / \mu

    The radius must not reach a kink, nor a point where the flat directions could be fewer.
    """
    steep = gradient - flat.basis @ (flat.basis.T @ gradient)
    bounds = ball_bounds(problem, layers, 0.0)
    rounding = LEAST_ROUNDING * EPSILON * bounds.gradient * len(layers)
    eta = (float(steep.norm()) + rounding) / curvature
    bounds = ball_bounds(problem, layers, 2 * eta)
    if not bounds.free_of_kinks:
        return "a kink may lie between the point and the minimum", 0.0, curvature
    h = bounds.lipschitz * eta / curvature
    if h >= 0.5:
        reason = (
            f"the gradient {float(steep.norm()):.2g} is too large for Newton-Kantorovich at the "
            f"curvature {curvature:.2g} (h = {h:.2g}, not below 0.5)"
        )
        return reason, 0.0, curvature
    radius = 2 * eta / (1 + math.sqrt(1 - 2 * h))
    if flat.basis.shape[1] and math.sqrt(2) * radius >= flat.least:
        return "flat directions may meet between the point and the minimum", 0.0, curvature
    return "", radius, curvature
