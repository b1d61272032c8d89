"""The best linear model of the data: least squares or logistic regression, as a module."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from inscape._core import generator
from inscape._core.anytime import anytime, patience, stoppable

#: Examples that the linear model is fitted to at most; drawn from the training examples, and said.
ROWS = 10_000
#: Floating-point operations in a second that a fit may count on.
SPEED = 4e9
#: Directions whose singular value is below one of these fractions of the largest may be left out.
FRACTIONS = (1e-10, 1e-6, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
#: Steps after which a logistic regression is taken as it is, and those between two answers.
STEPS, CHUNK = 300, 10
#: Examples of the first fits, where time may end any of them.
STAGES = (500, 2500)
#: Weights that a linear model may have.
WEIGHTS = 50_000_000


class UnavailableError(ValueError):
    """A reference that does not exist for this model or these data; the text says why."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearFit:
    """A linear model of the data, as a module that takes the network's place."""

    model: nn.Module
    label: str
    note: str


class Solution(NamedTuple):
    """The weights of a linear model, what it is called, and how it was fitted."""

    weight: Float[Tensor, "c d"]
    bias: Float[Tensor, " c"]
    label: str
    how: str


def some_rows(n: int, most: int, *, seed: int) -> Int[Tensor, " m"]:
    """Return the numbers of at most ``most`` of ``n`` examples, drawn if there are more."""
    if n <= most:
        return torch.arange(n)
    return torch.randperm(n, generator=generator(seed))[:most]


def fit_seconds(x: Tensor, *, outputs: int, task: str) -> float:
    """Return about how long a fit to all of the examples takes, at most."""
    n, d = min(len(x), ROWS), x[0].numel() + 1
    operations = 2 * n * d * (outputs * STEPS if task == "classes" else 4 * min(n, d))
    return operations / SPEED


@anytime
def linear_fit(
    x: Tensor,
    y: Tensor | None,
    *,
    task: str,
    outputs: int,
    seed: int = 0,
    probability: bool = False,
) -> Iterator[LinearFit]:
    """Return the best linear model: least squares for regression, logistic for classes.

    Least squares has an intercept and, of all minima, the smallest weights; directions in which
    the data hardly vary are left out where examples that are left out are then predicted better.
    Logistic regression has an unpenalised intercept and a ridge of ½‖W‖² on the summed log loss,
    scikit-learn's default; ``probability`` puts its sigmoid behind a single score. Both are solved
    in float64 and returned in the precision of ``x``. Its steps fit ever more examples, each stage
    from where the last one ended.
    """
    if y is None or task == "unlabelled":
        raise UnavailableError("the data have no labels")
    weights = outputs * x[0].numel()
    if weights > WEIGHTS:
        raise UnavailableError(
            f"the linear model would have {weights:,} weights, more than {WEIGHTS:,}"
        )
    order = some_rows(len(x), ROWS, seed=seed).to(x.device)
    sizes = [n for n in STAGES if 2 * n < len(order)] if stoppable() else []
    solve = _logistic if task == "classes" else _least_squares
    last: Solution | None = None
    fit: LinearFit | None = None
    for size in (*sizes, len(order)):
        rows = order[:size]
        if size == len(x):
            rows = rows.sort().values
        while fit is not None and _needed(x, size, outputs, task) > patience():
            yield fit
        for solution in solve(x[rows].flatten(1).double(), y[rows], outputs, last):
            fit = _fit(solution, x, size, probability=probability)
            last = solution
            yield fit


def _needed(x: Tensor, rows: int, outputs: int, task: str) -> float:
    """Return the seconds of the longest step that a stage takes at least."""
    if task == "classes":
        return fit_seconds(x[:rows], outputs=outputs, task=task) * CHUNK / STEPS
    return fit_seconds(x[:rows], outputs=outputs, task=task)


def _fit(solution: Solution, x: Tensor, rows: int, *, probability: bool) -> LinearFit:
    weight, bias = solution.weight, solution.bias
    drawn = f"{rows:,} of {len(x):,}" if rows < len(x) else f"{len(x):,}"
    model, how = _linear(weight, bias, reference=x), solution.how
    if probability:
        model, how = nn.Sequential(model, nn.Sigmoid()).eval(), f"probabilities, {how}"
    return LinearFit(model=model, label=solution.label, note=f"{how}, fitted to {drawn} examples")


def _linear(weight: Tensor, bias: Tensor, *, reference: Tensor) -> nn.Module:
    # On the meta device a layer draws no first weights from the global random state.
    linear = nn.Linear(weight.shape[1], weight.shape[0], dtype=reference.dtype, device="meta")
    linear = linear.to_empty(device=reference.device)
    with torch.no_grad():
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
    return nn.Sequential(nn.Flatten(), linear).eval()


def _least_squares(
    x: Float[Tensor, "n d"], y: Tensor, outputs: int, last: Solution | None
) -> Iterator[Solution]:
    y = y.reshape(len(y), -1).double()
    if y.shape[1] != outputs:
        raise UnavailableError(
            f"the model has {outputs} outputs and the labels have {y.shape[1]} columns"
        )
    centre, level = x.mean(0), y.mean(0)
    # Centred, so that the intercept is not part of what is made small.
    u, singular_values, v = torch.linalg.svd((x - centre).cpu(), full_matrices=False)
    scores = u.T @ (y - level).cpu()
    rank = _best_rank(u, singular_values, scores, (y - level).cpu())
    weight = (v[:rank].T @ (scores[:rank] / singular_values[:rank, None])).T.to(x.device)
    how = "with intercept"
    if rank < min(len(x) - 1, x.shape[1]):
        how += f", along the {rank} widest directions, which predict examples left out best"
    yield Solution(weight, level - weight @ centre, "the linear model (least squares)", how)


def _best_rank(
    u: Float[Tensor, "n k"],
    singular_values: Float[Tensor, " k"],
    scores: Float[Tensor, "k c"],
    y: Float[Tensor, "n c"],
) -> int:
    """Return along how many directions the fit best predicts examples that are left out.

    The error of an example left out is its residual over one minus its leverage.
    """
    ranks = {
        int((singular_values > fraction * singular_values[0]).sum()) for fraction in FRACTIONS
    } - {0}
    errors = {}
    for rank in ranks:
        complement = 1 - 1 / len(y) - u[:, :rank].square().sum(1, keepdim=True)
        residual = y - u[:, :rank] @ scores[:rank]
        errors[rank] = float((residual / complement.clamp(min=1e-9)).square().mean())
    if not errors or min(errors.values()) > float(y.square().mean()):
        return max(ranks, default=0)
    return min(errors, key=lambda rank: (errors[rank], -rank))


def _logistic(
    x: Float[Tensor, "n d"], y: Int[Tensor, "n *one"], outputs: int, last: Solution | None
) -> Iterator[Solution]:
    y = y.flatten().long()
    classes = int(y.max()) + 1
    if classes > max(outputs, 2):
        raise UnavailableError(f"the model has {outputs} outputs for {classes} classes")
    centre = x.mean(0)
    x = x - centre  # changes nothing but the speed: the intercept takes it up
    begun = x.new_zeros(outputs, x.shape[1]) if last is None else last.weight
    weight = begun.clone().requires_grad_()
    bias = x.new_zeros(outputs) if last is None else last.bias + last.weight @ centre
    bias = bias.detach().requires_grad_()
    for done in _minimised([weight, bias], lambda: _ridge_loss(x, y, weight, bias)):
        how = "ridge ½‖W‖² on the summed log loss"
        if not done:
            how += ", stopped before its minimum"
        w = weight.detach().clone()
        yield Solution(w, bias.detach() - w @ centre, "logistic regression", how)


def _ridge_loss(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> Float[Tensor, ""]:
    """Return the log loss with its ridge, over the number of examples."""
    return (_log_loss(x @ weight.T + bias, y) + weight.square().sum() / 2) / len(x)


def _minimised(parameters: list[Tensor], loss: Callable[[], Tensor]) -> Iterator[bool]:
    """Minimise a loss by L-BFGS, some steps at a time; yield whether the minimum is reached."""
    solver = torch.optim.LBFGS(
        parameters,
        max_iter=CHUNK if stoppable() else STEPS,
        tolerance_grad=1e-7,
        tolerance_change=1e-12,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        with torch.enable_grad():
            solver.zero_grad()
            value = loss()
            value.backward()  # type: ignore[no-untyped-call]
        return value

    steps = 0
    while steps < STEPS:
        most = solver.param_groups[0]["max_iter"]
        solver.step(closure)  # type: ignore[no-untyped-call]
        iterations = solver.state[parameters[0]]["n_iter"] - steps
        steps += most
        reached = iterations < most or steps >= STEPS
        yield reached
        if reached:
            return


def _log_loss(scores: Float[Tensor, "n c"], y: Int[Tensor, " n"]) -> Float[Tensor, ""]:
    if scores.shape[1] == 1:  # one score for two classes
        return nn.functional.binary_cross_entropy_with_logits(
            scores[:, 0], y.to(scores.dtype), reduction="sum"
        )
    return nn.functional.cross_entropy(scores, y, reduction="sum")
