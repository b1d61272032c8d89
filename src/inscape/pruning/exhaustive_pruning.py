"""Exhaustive pruning: all sub-networks of one hidden layer, from the smallest on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from inscape._core import BudgetError, NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.result import NONNEGATIVE, Range
from inscape.errors import UnsupportedModelError
from inscape.pruning.fine_tuning import Tune, check_tune, tuned
from inscape.pruning.greedy_pruning import reason_not_prunable
from inscape.pruning.groups import Group, Structure, structure
from inscape.pruning.scoring import (
    Criterion,
    Measured,
    Removals,
    checked,
    criterion_for,
    measured,
    tested,
)
from inscape.pruning.unit_removal import cut, cut_groups, flat_state, load_flat
from inscape.runtime.progress import progress
from inscape.training.losses import Loss

#: Sub-networks that are measured between two signs of progress, where none are tuned.
AT_ONCE = 256


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ExhaustivePruning(Result):
    """All sub-networks of a hidden layer, size by size, up to the first size with good ones.

    For each of ``sizes``: how many sub-networks were ``tried``, how many are ``good``, and the best
    loss and score. ``subsets`` are the units of the good ones of the last size, best first;
    ``state`` holds the weights of the best.
    """

    range: ClassVar[Range] = NONNEGATIVE

    sizes: Int64[Tensor, " k"]
    tried: Int64[Tensor, " k"]
    good: Int64[Tensor, " k"]
    losses: Float64[Tensor, " k"]
    scores: Float64[Tensor, " k"]
    score: str
    subsets: Int64[Tensor, "found units"]
    start: float
    layer: str
    width: int
    slack: float
    state: Float[Tensor, " s"]
    seed: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each size."""
        for k, size in enumerate(self.sizes.tolist()):
            yield {
                "units": size,
                "sub-networks": int(self.tried[k]),
                "good": int(self.good[k]),
                "lowest_loss": float(self.losses[k]),
                f"best_{self.score}": float(self.scores[k]),
            }

    def summary(self) -> Summary:
        """Return the smallest number of units with which some sub-network is good."""
        basis = (
            f"{int(self.good[-1])} of {int(self.tried[-1])} sub-networks of {self.width} units in "
            f"{self.layer!r}"
        )
        return Summary(value=float(self.sizes[-1]), kind="upper bound", basis=basis)

    def network(self, model: nn.Module, x: Float[Tensor, "n *d"], index: int = 0) -> nn.Module:
        """Return a good sub-network, a plain smaller module; the best has its fine-tuned weights.

        Args:
            model: The network that was pruned; it is not touched.
            x: Data; two rows of it give the shapes.
            index: Place among ``subsets``; any but the first comes as it was cut.
        """
        body = cut(model, x, {self.layer: self.subsets[index].tolist()})
        return load_flat(body, self.state) if index == 0 else body


@instrument(
    reads="parameters",
    better="smaller",
    larger="less room to prune",
    cost="minutes",
    work=lambda n, c: 2000.0 * n,
    meaning="Some sub-network with {value} units in one hidden layer is as good as the whole one.",
    cites="sattelberg2026linearity, section 3.4.4",
    by_default=False,
    discrete=True,
)
def exhaustive_pruning(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor,
    *,
    layer: str | None = None,
    tune: Tune = None,
    loss: str | Loss | None = None,
    test: tuple[Tensor, Tensor] | None = None,
    slack: float = 0.01,
    budget: int = 20_000,
    seed: int = 0,
) -> ExhaustivePruning | NotApplicable:
    r"""Try all sub-networks of a hidden layer, from the smallest on, until some are good.

    .. math:: p = \min \{ |S| : \mathrm{score}(\mathrm{tune}(f_S)) \geq \mathrm{score}(f)
              - \mathrm{slack} \}

    There are :math:`\binom{w}{p}` sub-networks with ``p`` of ``w`` units. Each is fine-tuned from
    the weights that it has in the whole network. No sub-network with fewer units is good after this
    fine-tuning; another one may make it so, hence an upper bound.

    Args:
        model: A module in eval mode; it is not touched.
        x: Points, for scores and for fine-tuning.
        y: Their labels: class numbers, or real numbers for each output.
        layer: Path of the hidden layer, dense or convolutional; by default the first dense one.
        tune: How to fine-tune a sub-network: a function that trains a module in place, settings
            for ``inscape.training.fit``, or None.
        loss: Loss by name or as a function; by default cross-entropy for class numbers and the
            squared error for real ones.
        test: Points and labels that scores are measured at; x and y by default.
        slack: How much lower than that of the whole network the score of a good one may be.
        budget: Most sub-networks that may be tried in all.
        seed: Seed of the shuffles of ``fit``.

    >>> _ = torch.manual_seed(1)  # the first unit does something
    >>> net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1)).eval()
    >>> _ = net[2].weight.data[0, 1:].fill_(0.0)  # two units do nothing
    >>> x = torch.linspace(-2, 2, 20)[:, None]
    >>> exhaustive_pruning(net, x, net(x).detach()).subsets.tolist()
    [[0]]
    """
    checks.at_least(0, slack=slack)
    checks.whole(1, budget=budget)
    check_tune(tune)
    criterion = criterion_for(y, checked(model, x, y), loss)
    try:
        groups = structure(model, x)
    except UnsupportedModelError as error:
        return NotApplicable(what="exhaustive_pruning", reason=str(error).rstrip("."))
    if layer is None and (reason := reason_not_prunable(groups, "node")):
        return NotApplicable(what="exhaustive_pruning", reason=reason)
    group = groups.of("node")[0] if layer is None else groups.group(layer)
    search = _Search(
        model, groups, group, tune, (x, criterion), tested(model, x, criterion, test), seed
    )
    return search.result(slack, budget)


class _Search:
    """The sub-networks of one layer."""

    def __init__(
        self,
        model: nn.Module,
        groups: Structure,
        group: Group,
        tune: Tune,
        data: tuple[Tensor, Criterion],
        test: tuple[Tensor, Criterion],
        seed: int,
    ) -> None:
        self.model, self.group, self.tune = model, group, tune
        self.data, self.test, self.seed = data, test, seed
        self.removals = Removals(groups, *test)

    def result(self, slack: float, budget: int) -> ExhaustivePruning:
        """Go through the sizes until some sub-networks are good; the whole one always is."""
        _, start = measured(self.model, *self.test)
        lines: list[tuple[int, int, float, float]] = []
        for size in range(1, self.group.units + 1):
            _afford(self.group, size, budget)
            subsets = list(combinations(range(self.group.units), size))
            measurements = self._measured(subsets)
            good = [k for k, (_, score) in enumerate(measurements) if score >= start - slack]
            best = min(loss for loss, _ in measurements), max(score for _, score in measurements)
            lines.append((len(subsets), len(good), *best))
            if good or size == self.group.units:
                break
        good = sorted(good or [0], key=lambda k: (-measurements[k][1], measurements[k][0], k))
        tried, counts, losses, scores = zip(*lines, strict=True)
        return ExhaustivePruning(
            sizes=torch.arange(1, len(lines) + 1),
            tried=torch.tensor(tried),
            good=torch.tensor(counts),
            losses=torch.tensor(losses, dtype=torch.float64),
            scores=torch.tensor(scores, dtype=torch.float64),
            score=self.test[1].score,
            subsets=torch.tensor([subsets[k] for k in good]),
            start=start,
            layer=self.group.name,
            width=self.group.units,
            slack=float(slack),
            state=flat_state(self._tuned(subsets[good[0]])),
            seed=self.seed,
        )

    def _measured(self, subsets: Sequence[tuple[int, ...]]) -> list[Measured]:
        """Return loss and score of each sub-network, after fine-tuning if there is any."""
        measurements: list[Measured] = []
        step = AT_ONCE if self.tune is None else 1
        with progress(len(subsets), label=f"sub-networks of {len(subsets[0])} units") as bar:
            for begin in range(0, len(subsets), step):
                measurements += self._measured_batch(subsets[begin : begin + step])
                bar.advance(min(step, len(subsets) - begin))
        return measurements

    def _measured_batch(self, subsets: Sequence[tuple[int, ...]]) -> list[Measured]:
        if self.tune is not None:
            return [measured(self._tuned(units), *self.test) for units in subsets]
        all_units = set(range(self.group.units))
        removed = [sorted(all_units - set(subset)) for subset in subsets]
        return self.removals.measured([(self.group, units) for units in removed])

    def _tuned(self, units: Sequence[int]) -> nn.Module:
        body = cut_groups(self.model, [(self.group, units)])
        return tuned(body, self.tune, *self.data, self.seed)


def _afford(group: Group, size: int, budget: int) -> None:
    """Refuse a size whose sub-networks are too many."""
    total = sum(comb(group.units, k) for k in range(1, size + 1))
    if total > budget:
        raise BudgetError(
            f"all sub-networks with up to {size} of the {group.units} units of {group.name!r} are "
            f"{total:,}, more than the budget of {budget:,}: raise budget, or use node_pruning."
        )
