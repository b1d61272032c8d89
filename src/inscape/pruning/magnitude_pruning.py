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
from inscape._core.progress import progress
from inscape.functional.substitution import copied
from inscape.pruning.curve import PruningCurve, last_good
from inscape.pruning.cutting import flat_state, load_flat, weight_tensors
from inscape.pruning.scoring import Measured, checked, measured, tested, yardstick
from inscape.pruning.tuning import Tune, check_tune, tuned
from inscape.training.losses import Loss

Masks = dict[str, Tensor]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MagnitudePruning(PruningCurve):
    """How good a network stays while its smallest weights are set to zero."""

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
    r"""Set the smallest weights of a network to zero, some more at each step.

    .. math:: w \mapsto w \cdot [\, |w| > q_m(|W|) \,]

    where :math:`q_m` is the quantile below which the share ``fraction`` of the weights lies that
    are not zero yet. Biases and batch norms are left alone. What was set to zero stays zero through
    fine-tuning: its gradient is. What it finds is an upper bound: other choices may lead further
    down. Costs one evaluation and one fine-tuning for each step.

    Args:
        model: A module in eval mode; it is not touched.
        x: Points, for the curve and for fine-tuning.
        y: Their labels: class numbers, or real numbers for each output.
        fraction: Share of the weights left that goes at each step.
        steps: Largest number of steps.
        scope: Whether the smallest weights of the whole network go (``"global"``) or the same
            share of each layer (``"layer"``).
        tune: How to fine-tune after each step: a function that trains a module in place, settings
            for ``inscape.training.fit``, or None.
        loss: Loss by name or as a function; by default cross-entropy for class numbers and the
            squared error for real ones.
        test: Points and labels that the curve is measured at; x and y by default.
        until: Stop below this score.
        slack: How much lower than at the start the score may be in the network that is chosen.
        seed: Seed of the shuffles of ``fit``, raised by one with each step.

    >>> net = nn.Linear(4, 1, bias=False).eval()
    >>> net.weight.data = torch.tensor([[0.1, 3.0, -0.2, 2.0]])
    >>> x = torch.eye(4)
    >>> magnitude_pruning(net, x, net(x).detach(), fraction=0.5, steps=1).network(net).weight.data
    tensor([[0., 3., 0., 2.]])
    """
    checks.one_of(("global", "layer"), scope=scope)
    checks.whole(1, steps=steps)
    checks.at_least(0, slack=slack)
    check_tune(tune)
    checks.seed(seed)
    checks.number(fraction=fraction)
    if not 0 < fraction < 1:
        raise ValueError(
            f"fraction must lie between 0 and 1, found {fraction}: it is the share of the weights "
            "left that goes at each step, e.g. 0.2."
        )
    by = yardstick(y, checked(model, x, y), loss)
    body = copied(model, x)
    masks: Masks = {name: p.detach() != 0 for name, p in weight_tensors(body).items()}
    if _left(masks) < 2:
        reason = f"nothing is left to prune: {_left(masks)} weights are not zero"
        return NotApplicable(what="magnitude_pruning", reason=reason)
    test_x, test_by = tested(model, x, by, test)
    curve: list[Measured] = [measured(body, test_x, test_by)]
    sizes, removed, state = [_left(masks)], [""], flat_state(body)
    with progress(steps, label="pruning") as bar:
        for step in range(steps):
            gone = _shrink(body, masks, fraction, scope)
            if not gone:
                break
            with masked(body, masks):
                tuned(body, tune, x, by, seed + step)
            curve.append(measured(body, test_x, test_by))
            sizes.append(_left(masks))
            removed.append(f"{gone} weights")
            if curve[-1][1] >= curve[0][1] - slack:
                state = flat_state(body)
            if until is not None and curve[-1][1] < until:
                break
            bar.advance(note=f"{by.score} {curve[-1][1]:.3g}")
    losses, scores = torch.tensor(curve, dtype=torch.float64).T
    return MagnitudePruning(
        weights=torch.tensor(sizes),
        losses=losses.contiguous(),
        scores=scores.contiguous(),
        score=by.score,
        removed=tuple(removed),
        chosen=last_good(scores, slack),
        slack=float(slack),
        state=state,
        seed=seed,
        fraction=float(fraction),
        scope=scope,
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
        # Whatever a training of the user's own has done beside gradients is undone.
        with torch.no_grad():
            for name, parameter in weight_tensors(body).items():
                parameter.masked_fill_(~masks[name], 0.0)


@torch.no_grad()
def _shrink(body: nn.Module, masks: Masks, fraction: float, scope: str) -> int:
    """Take the smallest weights out of network and masks; return how many."""
    before = _left(masks)
    names = list(masks)
    for part in [names] if scope == "global" else [[name] for name in names]:
        _shrink_together(body, masks, part, fraction)
    return before - _left(masks)


def _shrink_together(body: nn.Module, masks: Masks, names: list[str], fraction: float) -> None:
    tensors = weight_tensors(body)
    alive = torch.cat([masks[name].reshape(-1) for name in names])
    left = int(alive.sum())
    goes = min(max(1, round(fraction * left)), left - 1)
    if goes < 1:
        return
    sizes = torch.cat([tensors[name].reshape(-1).abs() for name in names])
    sizes = sizes.masked_fill(~alive, torch.inf)
    alive[sizes.sort(stable=True).indices[:goes]] = False
    parts = torch.split(alive, [masks[name].numel() for name in names])
    for name, part in zip(names, parts, strict=True):
        masks[name] = part.reshape(masks[name].shape)
        tensors[name].masked_fill_(~masks[name], 0.0)


def _left(masks: Masks) -> int:
    return sum(int(mask.sum()) for mask in masks.values())
