"""Channel pruning: channels are removed one by one, as long as the network stays good."""

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
class ChannelPruning(UnitCurve):
    """Score of a network while channels of convolutions are removed."""


@instrument(
    reads="parameters",
    better="smaller",
    larger="less room to prune",
    cost="minutes",
    work=lambda n, c: 1000.0 * min(n, 1000),
    meaning="It is still as good with a fraction of {value} of its weights, after channels are "
    "removed one by one.",
    cites="sattelberg2026linearity, section 3.4.5",
    by_default=False,
    discrete=True,
)
def channel_pruning(
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
) -> ChannelPruning | NotApplicable:
    r"""Remove channels of convolutions from a network, one at a time.

    .. math:: j_t = \arg\min_j L(f_t \setminus j), \qquad
              f_{t+1} = \mathrm{tune}(f_t \setminus j_t)

    Structural pruning: the filters, the batch norms' numbers and the inputs of the next layer go
    for good, so that what is left is a smaller and faster network. Channels that a shortcut adds
    up go together. An upper bound: other orders may prune more. For the
    losses without each channel, activations are computed once for each step, and only the layers
    behind a channel's reader again for each channel.

    Args:
        model: A module in eval mode; it is not modified.
        x: Images or signals, for the losses and for fine-tuning.
        y: Their labels: class numbers, or real numbers for each output.
        choice: ``"lowest"``: the channel without which the loss is lowest; ``"drawn"``: fine-tune
            without each, and draw among the good ones by the inverse of the loss.
        tune: How to fine-tune after each cut: a function that trains a module in place, settings
            for ``inscape.training.fit``, or None.
        loss: Name or function; by default cross-entropy for class numbers, else squared error.
        test: Points and labels at which the curve is measured; x and y by default.
        points: How many points choose the channel, drawn once.
        steps: Largest number of channels to remove; all by default, but for one in each layer.
        until: Stop below this score.
        slack: How much lower than at the start the score of the chosen network may be.
        seed: Seed of all draws.
    """
    fields = greedy_pruning(
        model,
        x,
        y,
        Settings(
            kind="channel",
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
    return fields if isinstance(fields, NotApplicable) else ChannelPruning(**fields)
