"""Magnitude pruning: the smallest weights become zero and stay so."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from inscape._core import NotApplicable, checks, instrument
from inscape.functional.substitution import checked_copy
from inscape.pruning.curve import PruningCurve, last_good
from inscape.pruning.fine_tuning import Tune, check_tune, tuned
from inscape.pruning.scoring import Criterion, Measured, checked, criterion_for, measured, tested
from inscape.pruning.unit_removal import flat_state, load_flat, weight_tensors
from inscape.runtime.progress import progress
from inscape.training.losses import Loss

Masks = dict[str, Tensor]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MagnitudePruning(PruningCurve):
    """Score of a network while its smallest weights are set to zero."""

    fraction: float
    scope: str

    def network(self, model: nn.Module) -> nn.Module:
        """Return the chosen network: a copy of ``model`` whose weights are partly zero."""
        return load_flat(copy.deepcopy(model), self.state)


@instrument(
    reads="parameters",
    better="smaller",
    larger="less room to prune",
    cost="seconds",
    work=lambda n, c: 11.0 * n,
    meaning="It is still as good with a fraction of {value} of its weights, after the smallest "
    "ones are set to zero.",
    cites="sattelberg2026linearity, section 3.4.5",
    by_default=False,
    discrete=True,
)
def magnitude_pruning(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor,
    *,
    fraction: float = 0.2,
    steps: int = 10,
    scope: Literal["global", "layer"] = "global",
    tune: Tune = None,
    loss: str | Loss | None = None,
    test: tuple[Tensor, Tensor] | None = None,
    until: float | None = None,
    slack: float = 0.01,
    seed: int = 0,
) -> MagnitudePruning | NotApplicable:
    r"""Set the smallest weights of a network to zero, more of them at each step.

    .. math:: w \mapsto w \cdot [\, |w| > q_m(|W|) \,]

    where :math:`q_m` is the quantile at ``fraction`` of the weights that are not zero yet. Biases
    and batch norms are not pruned. An upper bound: other choices may prune more.

    Args:
        model: A module in eval mode; it is not modified.
        x: Points, for the curve and for fine-tuning.
        y: Their labels: class numbers, or real numbers for each output.
        fraction: Fraction of the remaining weights that is pruned at each step.
        steps: Largest number of steps.
        scope: Whether to prune the smallest weights of the whole network (``"global"``) or the same
            fraction of each layer (``"layer"``).
        tune: How to fine-tune after each step: a function that trains a module in place, settings
            for ``inscape.training.fit``, or None.
        loss: Name or function; by default cross-entropy for class numbers, else squared error.
        test: Points and labels at which the curve is measured; x and y by default.
        until: Stop below this score.
        slack: How much lower than at the start the score of the chosen network may be.
        seed: Seed of the shuffles of ``fit``, raised by one with each step.

    >>> net = nn.Linear(4, 1, bias=False).eval()
    >>> net.weight.data = torch.tensor([[0.1, 3.0, -0.2, 2.0]])
    >>> x = torch.eye(4)
    >>> magnitude_pruning(net, x, net(x).detach(), fraction=0.5, steps=1).network(net).weight.data
    tensor([[0., 3., 0., 2.]])
    """
    _check(fraction, steps, scope, slack, tune, seed)
    criterion = criterion_for(y, checked(model, x, y), loss)
    run = _Run(checked_copy(model, x), x, criterion, fraction=fraction, scope=scope, slack=slack)
    if (count := _count_nonzero(run.masks)) < 2:
        reason = f"nothing is left to prune: {count} weights are not zero"
        return NotApplicable(what="magnitude_pruning", reason=reason)
    return run.result(tested(model, x, criterion, test), tune, steps, until, seed)


def _check(fraction: float, steps: int, scope: str, slack: float, tune: Tune, seed: int) -> None:
    checks.one_of(("global", "layer"), scope=scope)
    checks.whole(1, steps=steps)
    checks.at_least(0, slack=slack)
    check_tune(tune)
    checks.seed(seed)
    checks.number(fraction=fraction)
    if not 0 < fraction < 1:
        raise ValueError(
            f"fraction must lie between 0 and 1, found {fraction}: it is the fraction of the "
            "remaining weights that is pruned at each step, e.g. 0.2."
        )


class _Run:
    """A network that is pruned step by step; pruned weights stay zero through fine-tuning."""

    def __init__(
        self,
        body: nn.Module,
        x: Float[Tensor, "n *d"],
        criterion: Criterion,
        *,
        fraction: float,
        scope: str,
        slack: float,
    ) -> None:
        self.body, self.x, self.criterion = body, x, criterion
        self.fraction, self.scope, self.slack = fraction, scope, slack
        self.masks: Masks = {name: p.detach() != 0 for name, p in weight_tensors(body).items()}

    def result(
        self,
        test: tuple[Tensor, Criterion],
        tune: Tune,
        steps: int,
        until: float | None,
        seed: int,
    ) -> MagnitudePruning:
        """Prune and fine-tune up to ``steps`` times, and return the curve."""
        body = self.body
        curve: list[Measured] = [measured(body, *test)]
        sizes, removed, state = [_count_nonzero(self.masks)], [""], flat_state(body)
        with progress(steps, label="pruning") as bar:
            for step in range(steps):
                pruned = _prune_step(body, self.masks, self.fraction, self.scope)
                if not pruned:
                    break
                with masked(body, self.masks):
                    tuned(body, tune, self.x, self.criterion, seed + step)
                curve.append(measured(body, *test))
                sizes.append(_count_nonzero(self.masks))
                removed.append(f"{pruned} weights")
                if curve[-1][1] >= curve[0][1] - self.slack:
                    state = flat_state(body)
                if until is not None and curve[-1][1] < until:
                    break
                bar.advance(note=f"{self.criterion.score} {curve[-1][1]:.3g}")
        losses, scores = torch.tensor(curve, dtype=torch.float64).T
        return MagnitudePruning(
            weights=torch.tensor(sizes),
            losses=losses.contiguous(),
            scores=scores.contiguous(),
            score=self.criterion.score,
            removed=tuple(removed),
            chosen=last_good(scores, self.slack),
            slack=float(self.slack),
            state=state,
            seed=seed,
            fraction=float(self.fraction),
            scope=self.scope,
        )


@contextmanager
def masked(body: nn.Module, masks: Mapping[str, Bool[Tensor, "..."]]) -> Iterator[None]:
    """Keep weights at zero where a mask is false, while the block trains ``body``."""
    tensors: dict[str, Any] = dict(weight_tensors(body))
    handles = [
        tensors[name].register_hook(lambda gradient, mask=mask: gradient * mask)
        for name, mask in masks.items()
        if tensors[name].requires_grad
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        # Undo what a training function has done to pruned weights beside gradients.
        with torch.no_grad():
            for name, parameter in weight_tensors(body).items():
                parameter.masked_fill_(~masks[name], 0.0)


@torch.no_grad()
def _prune_step(body: nn.Module, masks: Masks, fraction: float, scope: str) -> int:
    """Set the smallest weights to zero, also in the masks; return how many."""
    before = _count_nonzero(masks)
    names = list(masks)
    for part in [names] if scope == "global" else [[name] for name in names]:
        _zero_smallest(body, masks, part, fraction)
    return before - _count_nonzero(masks)


def _zero_smallest(body: nn.Module, masks: Masks, names: list[str], fraction: float) -> None:
    tensors = weight_tensors(body)
    alive = torch.cat([masks[name].reshape(-1) for name in names])
    count = int(alive.sum())
    removed = min(max(1, round(fraction * count)), count - 1)
    if removed < 1:
        return
    sizes = torch.cat([tensors[name].reshape(-1).abs() for name in names])
    sizes = sizes.masked_fill(~alive, torch.inf)
    alive[sizes.sort(stable=True).indices[:removed]] = False
    parts = torch.split(alive, [masks[name].numel() for name in names])
    for name, part in zip(names, parts, strict=True):
        masks[name] = part.reshape(masks[name].shape)
        tensors[name].masked_fill_(~masks[name], 0.0)


def _count_nonzero(masks: Masks) -> int:
    return sum(int(mask.sum()) for mask in masks.values())
