"""Node pruning: hidden units are removed one by one, as long as the network stays good."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import NotApplicable, instrument
from inscape.pruning.curve import UnitCurve
from inscape.pruning.fine_tuning import Tune
from inscape.pruning.greedy_pruning import Settings, greedy_pruning
from inscape.training.losses import Loss


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NodePruning(UnitCurve):
    """Score of a network while hidden units of dense layers are removed.

    >>> import torch
    >>> net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1)).eval()
    >>> _ = net[2].weight.data[0, 1:].fill_(0.0)  # two units do nothing
    >>> x = torch.linspace(-2, 2, 20)[:, None]
    >>> node_pruning(net, x, net(x).detach()).widths.flatten().tolist()
    [3, 2, 1]
    """


@instrument(
    reads="parameters",
    better="smaller",
    larger="less room to prune",
    cost="minutes",
    work=lambda n, c: 250.0 * min(n, 1000),
    meaning="It is still as good with a fraction of {value} of its weights, after hidden units "
    "are removed one by one.",
    cites="sattelberg2026linearity, section 3.4.4",
    by_default=False,
    discrete=True,
)
def node_pruning(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor,
    *,
    choice: Literal["lowest", "drawn"] = "lowest",
    tune: Tune = None,
    loss: str | Loss | None = None,
    test: tuple[Tensor, Tensor] | None = None,
    points: int = 1000,
    steps: int | None = None,
    until: float | None = None,
    slack: float = 0.01,
    seed: int = 0,
) -> NodePruning | NotApplicable:
    r"""Remove hidden units of dense layers from a network, one at a time.

    .. math:: j_t = \arg\min_j L(f_t \setminus j), \qquad
              f_{t+1} = \mathrm{tune}(f_t \setminus j_t)

    Structural pruning: tensors become smaller. An upper bound: other orders may prune more.
    ``"lowest"`` costs about one pass for each unit and later layer; ``"drawn"`` costs a fine-tuning
    for each unit and step.

    Args:
        model: A module in eval mode; it is not modified.
        x: Points, for the losses and for fine-tuning.
        y: Their labels: class numbers, or real numbers for each output.
        choice: ``"lowest"``: the unit without which the loss is lowest; ``"drawn"`` (as in the
            dissertation): fine-tune without each, and draw among those that stay good with
            probability proportional to the inverse loss, until none does.
        tune: How to fine-tune after each cut: a function that trains a module in place, settings
            for ``inscape.training.fit``, or None.
        loss: Name or function; by default cross-entropy for class numbers, else squared error.
        test: Points and labels at which the curve is measured; x and y by default.
        points: How many points choose the unit, drawn once.
        steps: Largest number of units to remove; all by default, but for one in each layer.
        until: Stop below this score.
        slack: How much lower than at the start the score of the chosen network may be.
        seed: Seed of all draws.
    """
    fields = greedy_pruning(
        model,
        x,
        y,
        Settings(
            kind="node",
            choice=choice,
            tune=tune,
            loss=loss,
            test=test,
            points=points,
            steps=steps,
            until=until,
            slack=slack,
            seed=seed,
        ),
    )
    return fields if isinstance(fields, NotApplicable) else NodePruning(**fields)
