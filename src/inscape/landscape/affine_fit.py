"""The best affine map, of limited rank if wanted: the linear problem of theorem 1."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor
from torch.nn import functional

from inscape._core import BudgetError, checks

#: Newton steps before the problem is taken to have no minimum.
STEPS = 200
#: Conjugate gradient steps for each.
INNER = 400


def reduced_rank_regression(
    x: Float[Tensor, "n *d"],
    y: Float[Tensor, "n c"],
    *,
    rank: int,
    choice: Sequence[int] | None = None,
) -> tuple[Float64[Tensor, "c d"], Float64[Tensor, " c"]]:
    r"""Return the affine map of least squared error among those of limited rank.

    .. math:: \min_{\mathrm{rank} A \le r} \lVert Y - X A^T - 1 b^T \rVert^2, \quad
              A = V_r V_r^T \hat A

    In closed form: :math:`\hat A` is ordinary least squares, :math:`V_r` the leading right singular
    vectors of its fitted values. Another ``choice`` of them gives a critical point that is a
    saddle.
    """
    checks.points(x)
    checks.whole(1, rank=rank)
    inputs, targets = x.flatten(1).double(), y.double()
    mean, level = inputs.mean(0), targets.mean(0)
    full = torch.linalg.lstsq(inputs - mean, targets - level, driver="gelsd").solution.T
    _, _, right = torch.linalg.svd((inputs - mean) @ full.T, full_matrices=False)
    chosen = list(range(min(rank, len(right)))) if choice is None else list(choice)
    directions = right[chosen]
    weight = directions.T @ directions @ full
    return weight, level - weight @ mean


def softmax_regression(
    x: Float[Tensor, "n *d"],
    y: Int64[Tensor, " n"] | Float[Tensor, "n c"],
    *,
    gradient: float = 1e-9,
    weight_decay: float = 0.0,
) -> tuple[Float64[Tensor, "c d"], Float64[Tensor, " c"]]:
    r"""Return the affine map of least cross-entropy, to a gradient norm below ``gradient``.

    .. math:: \min_{A, b} \frac1n \sum_i \ell(A x_i + b, y_i)
              + \tfrac{\lambda}{2} (\lVert A \rVert^2 + \lVert b \rVert^2)

    By Newton steps with conjugate gradients. Without weight decay separable classes have no
    minimum, which raises an error: use label smoothing (probabilities as ``y``), or more data.
    """
    checks.points(x)
    checks.at_least(0, weight_decay=weight_decay)
    inputs = torch.cat([x.flatten(1).double(), torch.ones(len(x), 1).double()], dim=1)
    targets = y.double() if y.is_floating_point() else functional.one_hot(y).double()
    theta = torch.zeros(targets.shape[1], inputs.shape[1], dtype=torch.float64)
    for _ in range(STEPS):
        p = (inputs @ theta.T).softmax(1)
        slope = (p - targets).T @ inputs / len(inputs) + weight_decay * theta
        if float(slope.norm()) <= gradient:
            return theta[:, :-1].clone(), theta[:, -1].clone()
        step = _newton_step(inputs, p, slope, weight_decay)
        theta = _line_search(inputs, targets, theta, step, slope, weight_decay)
    raise BudgetError(
        f"the gradient of the cross-entropy must fall to {gradient:g}, found "
        f"{float(slope.norm()):.2g} after {STEPS} Newton steps: separable classes have no minimum; "
        "use label smoothing, or more data."
    )


def _newton_step(inputs: Tensor, p: Tensor, slope: Tensor, decay: float) -> Tensor:
    """Return the solution of the Newton equation by conjugate gradients."""
    step, rest = torch.zeros_like(slope), slope.clone()
    direction, squared = rest.clone(), float(rest.square().sum())
    first = squared
    for _ in range(INNER):
        scores = inputs @ direction.T
        curved = p * (scores - (p * scores).sum(1, keepdim=True))
        image = curved.T @ inputs / len(inputs) + decay * direction
        curvature = float((direction * image).sum())
        if curvature <= 0:
            break
        rate = squared / curvature
        step, rest = step + rate * direction, rest - rate * image
        before, squared = squared, float(rest.square().sum())
        if squared <= 1e-16 * first:
            break
        direction = rest + squared / before * direction
    return step


def _line_search(
    inputs: Tensor, targets: Tensor, theta: Tensor, step: Tensor, slope: Tensor, decay: float
) -> Tensor:
    """Return the parameters after the longest of halved steps that lowers the loss."""

    def loss(at: Tensor) -> float:
        scores = inputs @ at.T
        logsum = scores.logsumexp(1) * targets.sum(1)
        squared = float(at.square().sum())
        return float((logsum - (targets * scores).sum(1)).mean()) + decay / 2 * squared

    start, decrease, rate = loss(theta), float((slope * step).sum()), 1.0
    while rate > 1e-6 and not loss(theta - rate * step) <= start - 1e-4 * rate * decrease + 1e-15:
        rate /= 2
    return theta - rate * step
