"""Pruning curves: loss and score of a network against its number of weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from inscape._core import Result, Row, Summary
from inscape._core.result import PROPORTION, Range
from inscape.pruning.unit_removal import cut, load_flat


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PruningCurve(Result):
    """Weights left, loss and score of each step, from the network as it was given.

    ``scores`` are fractions of points that are right (``score`` is ``"accuracy"``) or of variance
    explained (``"r2"``). ``chosen`` is the last step whose score is at most ``slack`` below the
    first; ``state`` holds the weights of that network.
    """

    range: ClassVar[Range] = PROPORTION

    weights: Int64[Tensor, " steps"]
    losses: Float64[Tensor, " steps"]
    scores: Float64[Tensor, " steps"]
    score: str
    removed: tuple[str, ...]
    chosen: int
    slack: float
    state: Float[Tensor, " s"]
    seed: int

    @property
    def shares(self) -> Float64[Tensor, " steps"]:
        """Return the fraction of the weights that remains at each step."""
        return self.weights.double() / int(self.weights[0])

    def rows(self) -> Iterator[Row]:
        """Yield one row for each step."""
        for k, removed in enumerate(self.removed):
            yield {
                "step": k,
                "weights": int(self.weights[k]),
                "share": float(self.shares[k]),
                "loss": float(self.losses[k]),
                self.score: float(self.scores[k]),
                "removed": removed,
                "chosen": k == self.chosen,
            }

    def summary(self) -> Summary:
        """Return the fraction of weights of the smallest network that is good enough."""
        basis = (
            f"{int(self.weights[self.chosen]):,} of {int(self.weights[0]):,} weights, {self.score} "
            f"{float(self.scores[self.chosen]):.4g} from {float(self.scores[0]):.4g}"
        )
        return Summary(value=float(self.shares[self.chosen]), kind="upper bound", basis=basis)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnitCurve(PruningCurve):
    """A curve of unit removals; ``units`` are those of the chosen network.

    ``widths`` are the units that each of ``layers`` has at each step; ``fixed`` names the layers
    that had to stay whole, with the reason.
    """

    layers: tuple[str, ...]
    widths: Int64[Tensor, "steps layers"]
    units: tuple[tuple[int, ...], ...]
    fixed: tuple[str, ...]

    def network(self, model: nn.Module, x: Float[Tensor, "n *d"]) -> nn.Module:
        """Return the chosen network, a plain smaller module with its fine-tuned weights.

        Args:
            model: The network that was pruned; it is not modified.
            x: Data; two rows of it give the shapes.
        """
        keep = {name: list(units) for name, units in zip(self.layers, self.units, strict=True)}
        return load_flat(cut(model, x, keep), self.state)


def last_good(scores: Float64[Tensor, " steps"], slack: float) -> int:
    """Return the last step whose score is at most ``slack`` below the first."""
    return int(torch.nonzero(scores >= scores[0] - slack)[-1])
