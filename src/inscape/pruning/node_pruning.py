"""Node pruning: hidden units go one by one, as long as the network stays good."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import NotApplicable, instrument
from inscape.pruning.curve import UnitCurve
from inscape.pruning.descent import Settings, descend
from inscape.pruning.tuning import Tune
from inscape.training.losses import Loss


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NodePruning(UnitCurve):
    """How good a network stays while hidden units of dense layers are taken out of it."""


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
    r"""Take hidden units of dense layers out of a network, one at a time.

    .. math:: j_t = \arg\min_j L(f_t \setminus j), \qquad
              f_{t+1} = \mathrm{tune}(f_t \setminus j_t)

    A unit that is taken out leaves real, smaller tensors behind. With ``choice="drawn"`` (the
    dissertation's way) the network is fine-tuned without each unit in turn, and of those that stay
    good one is drawn, with probability proportional to the inverse of its loss; the descent ends
    where none stays good. What it finds is an upper bound: other ways may lead further down. The
    losses of ``"lowest"`` cost little more than one pass for each layer and unit behind it;
    ``"drawn"`` costs a fine-tuning for each unit and step.

    Args:
        model: A module in eval mode; it is not touched.
        x: Points, for the losses and for fine-tuning.
        y: Their labels: class numbers, or real numbers for each output.
        choice: ``"lowest"``: the unit without which the loss is lowest; ``"drawn"``: see above.
        tune: How to fine-tune after each cut: a function that trains a module in place, settings
            for ``inscape.training.fit``, or None.
        loss: Loss by name or as a function; by default cross-entropy for class numbers and the
            squared error for real ones.
        test: Points and labels that the curve is measured at; x and y by default.
        points: How many points choose the unit, drawn once.
        steps: Largest number of units to take out; all by default, but for one in each layer.
        until: Stop below this score.
        slack: How much lower than at the start the score may be in the network that is chosen.
        seed: Seed of all draws.

    >>> import torch
    >>> net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1)).eval()
    >>> _ = net[2].weight.data[0, 1:].fill_(0.0)  # two units do nothing
    >>> x = torch.linspace(-2, 2, 20)[:, None]
    >>> node_pruning(net, x, net(x).detach()).widths.flatten().tolist()
    [3, 2, 1]
    """
    found = descend(
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
    return found if isinstance(found, NotApplicable) else NodePruning(**found)
