"""Tables 1 and 2: a network from an unusual beginning, its loss and curvature before and after."""

import math
from collections.abc import Mapping
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from inscape.lab.quantities import Column, Difference, LogRatio, Mean, Quantities, Quantity
from inscape.lab.records import Record, Records

DECAY, LR = 5e-4, 0.01
#: At which fractions of the 600 epochs the rate falls (A.3).
DROPS = (150 / 600, 250 / 600, 350 / 600)
PROBES = ("init", "final")
LOG10 = math.log(10)


def state_of(
    net: nn.Module, x: Float[Tensor, "n *d"], y: Int[Tensor, " n"], *, decay: float, name: str
) -> dict[str, float]:
    """Return loss and norm of the gradient on all data, without weight decay and with it.

    Args:
        net: A network in eval mode.
        x: All training images.
        y: Their classes.
        decay: Weight decay.
        name: ``"init"`` or ``"final"``, for the names of the numbers.
    """
    from inscape.landscape import stationarity
    from inscape.papers.goldblum._training import mean_loss

    found: Any = stationarity(net, x, y, loss="cross_entropy", weight_decay=decay)
    return {
        f"loss_{name}": mean_loss(net, x, y),
        f"grad_{name}": found.without_regulariser,
        f"grad_decay_{name}": found.total,
    }


def quantities(starts: Mapping[str, str], numbers: tuple[str, ...]) -> dict[str, Quantity]:
    """Return the mean of each number for each beginning, by its name in the claims."""
    return {
        f"{number}_{probe}/{start}": Mean(f"{number}_{probe}").where(start=start)
        for start in starts
        for number in numbers
        for probe in PROBES
    }


def fall(record: Record) -> float:
    """Return by how much training has lowered the loss."""
    return float(record.values["loss_init"] - record.values["loss_final"])


def freed(trapped: str, free: str) -> Quantity:
    """Return how much lower one of two trainings from the same biases ends."""
    return Difference(Column("loss_final", start=trapped), Column("loss_final", start=free))


def sharper(start: str) -> Quantity:
    """Return how many decades larger the largest eigenvalue is than after default training."""
    return LogRatio(Column("max_ev_final", start=start), Column("max_ev_final", start="default"))


def rows(records: Records, starts: Mapping[str, str], analysis: Quantities) -> list[str]:
    """Say the loss and the gradient at the end of each beginning."""
    known = analysis(records)
    said = []
    for start, words in starts.items():
        loss, slope = (known.get(f"{name}_final/{start}") for name in ("loss", "grad"))
        if loss is not None and slope is not None:
            said.append(f"{words}: loss {loss.value:.4g}, gradient {slope.value:.2g}")
    return [f"After training: {'; '.join(said)}."] if said else []
