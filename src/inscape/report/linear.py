"""The best linear model of the data: least squares or logistic regression, as a module."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from inscape._core import generator

#: Rows that the linear model is fitted to at most; drawn from the training rows, and said.
ROWS = 10_000
#: Floating-point operations in a second that a fit may count on.
SPEED = 4e9
#: Directions whose spread is below one of these shares of the widest may be left out.
SHARES = (1e-10, 1e-6, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
#: Steps after which a logistic regression is taken as it is.
STEPS = 300


class UnavailableError(ValueError):
    """A reference that does not exist for this model or these data; the text says why."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """A linear model of the data, as a module that takes the network's place."""

    model: nn.Module
    label: str
    note: str


def some_rows(n: int, most: int, *, seed: int) -> Int[Tensor, " m"]:
    """Return the numbers of at most ``most`` of ``n`` rows, drawn if there are more."""
    if n <= most:
        return torch.arange(n)
    return torch.randperm(n, generator=generator(seed))[:most]


def fit_seconds(x: Tensor, *, outputs: int, task: str) -> float:
    """Return about how long ``linear_fit`` takes."""
    n, d = min(len(x), ROWS), x[0].numel() + 1
    operations = 2 * n * d * (outputs * STEPS if task == "classes" else min(n, d))
    return operations / SPEED


def linear_fit(
    x: Tensor,
    y: Tensor | None,
    *,
    task: str,
    outputs: int,
    seed: int = 0,
    probability: bool = False,
) -> Fit:
    """Return the best linear model: least squares for regression, logistic for classes.

    Least squares has an intercept and, of all minima, the smallest weights; directions in which
    the data hardly spread are left out where rows that are left out are then predicted better.
    Logistic regression has an unpenalised intercept and a ridge of ½‖W‖² on the summed log loss,
    scikit-learn's default; ``probability`` puts its sigmoid behind a single score. Both are solved
    in float64 and given back in the precision of ``x``.
    """
    if y is None or task == "unlabelled":
        raise UnavailableError("the data have no labels")
    kept = some_rows(len(x), ROWS, seed=seed).to(x.device)
    flat = x[kept].flatten(1).double()
    labels = y[kept]
    if task == "classes":
        weight, bias = _logistic(flat, labels, outputs)
        label, how = "logistic regression", "ridge ½‖W‖² on the summed log loss"
    else:
        weight, bias, rank = _least_squares(flat, labels, outputs)
        label, how = "the linear model (least squares)", "with intercept"
        if rank < min(len(flat) - 1, flat.shape[1]):
            how += f", along the {rank} widest directions, which predict rows left out best"
    some = f"{len(kept):,} of {len(x):,}" if len(kept) < len(x) else f"{len(x):,}"
    linear = _linear(weight, bias, like=x)
    if probability:
        linear, how = nn.Sequential(linear, nn.Sigmoid()).eval(), f"probabilities, {how}"
    return Fit(model=linear, label=label, note=f"{how}, fitted to {some} rows")


def _linear(weight: Tensor, bias: Tensor, *, like: Tensor) -> nn.Module:
    # On the meta device a layer draws no first weights from the global random state.
    linear = nn.Linear(weight.shape[1], weight.shape[0], dtype=like.dtype, device="meta")
    linear = linear.to_empty(device=like.device)
    with torch.no_grad():
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
    return nn.Sequential(nn.Flatten(), linear).eval()


def _least_squares(
    x: Float[Tensor, "n d"], y: Tensor, outputs: int
) -> tuple[Float[Tensor, "c d"], Float[Tensor, " c"], int]:
    y = y.reshape(len(y), -1).double()
    if y.shape[1] != outputs:
        raise UnavailableError(
            f"the model has {outputs} outputs and the labels have {y.shape[1]} columns"
        )
    centre, level = x.mean(0), y.mean(0)
    # Centred, so that the intercept is not part of what is made small.
    u, spread, v = torch.linalg.svd((x - centre).cpu(), full_matrices=False)
    scores = u.T @ (y - level).cpu()
    rank = _best_rank(u, spread, scores, (y - level).cpu())
    weight = (v[:rank].T @ (scores[:rank] / spread[:rank, None])).T.to(x.device)
    return weight, level - weight @ centre, rank


def _best_rank(
    u: Float[Tensor, "n k"],
    spread: Float[Tensor, " k"],
    scores: Float[Tensor, "k c"],
    y: Float[Tensor, "n c"],
) -> int:
    """Return along how many directions the fit best predicts rows that are left out.

    The error of a row left out is its residual over one minus its leverage.
    """
    ranks = {int((spread > share * spread[0]).sum()) for share in SHARES} - {0}
    errors = {}
    for rank in ranks:
        left = 1 - 1 / len(y) - u[:, :rank].square().sum(1, keepdim=True)
        residual = y - u[:, :rank] @ scores[:rank]
        errors[rank] = float((residual / left.clamp(min=1e-9)).square().mean())
    if not errors or min(errors.values()) > float(y.square().mean()):
        return max(ranks, default=0)
    return min(errors, key=lambda rank: (errors[rank], -rank))


def _logistic(
    x: Float[Tensor, "n d"], y: Int[Tensor, "n *one"], outputs: int
) -> tuple[Float[Tensor, "c d"], Float[Tensor, " c"]]:
    y = y.flatten().long()
    classes = int(y.max()) + 1
    if classes > max(outputs, 2):
        raise UnavailableError(f"the model has {outputs} outputs for {classes} classes")
    centre = x.mean(0)
    x = x - centre  # changes nothing but the speed: the intercept takes it up
    weight = x.new_zeros(outputs, x.shape[1], requires_grad=True)
    bias = x.new_zeros(outputs, requires_grad=True)
    solver = torch.optim.LBFGS(
        [weight, bias],
        max_iter=STEPS,
        tolerance_grad=1e-7,
        tolerance_change=1e-12,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        solver.zero_grad()
        total = _log_loss(x @ weight.T + bias, y) + weight.square().sum() / 2
        mean = total / len(x)
        mean.backward()  # type: ignore[no-untyped-call]
        return mean

    solver.step(loss)  # type: ignore[no-untyped-call]
    weight, bias = weight.detach(), bias.detach()
    return weight, bias - weight @ centre


def _log_loss(scores: Float[Tensor, "n c"], y: Int[Tensor, " n"]) -> Float[Tensor, ""]:
    if scores.shape[1] == 1:  # one score for two classes
        return nn.functional.binary_cross_entropy_with_logits(
            scores[:, 0], y.to(scores.dtype), reduction="sum"
        )
    return nn.functional.cross_entropy(scores, y, reduction="sum")
