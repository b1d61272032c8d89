"""One number for each pair of layers of two networks, and the same for permuted examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core import Result, Row, Summary

#: What the outputs of a network are called among its layers.
OUTPUT = "output"
UNDEFINED = "NaN where the features of a layer are equal for all examples, or fewer than it needs"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LayerMatrix(Result):
    """A measure of every layer of one network (rows) against every layer of another (columns).

    ``baseline`` is its mean where the examples of one network are in random order: what it gives
    to representations of the same kind that have nothing to do with each other.
    """

    nonfinite: ClassVar = dict.fromkeys(("values", "baseline"), UNDEFINED)

    layers: tuple[str, ...]
    other_layers: tuple[str, ...]
    values: Float64[Tensor, "k m"]
    baseline: Float64[Tensor, "k m"]
    examples: int

    @property
    def headline(self) -> tuple[int, int]:
        """Return the pair of the last hidden layers, of the outputs where one has no other.

        Where that is undefined, the last pair that is defined.
        """
        both = (self.layers, self.other_layers)
        behind = 2 if min(map(len, both)) > 1 else 1  # a hidden layer beside outputs says nothing
        last = [len(names) - behind for names in both]
        if bool(self.values[last[0], last[1]].isfinite()):
            return last[0], last[1]
        i, j = self.values.isfinite().nonzero()[-1].tolist()
        return i, j

    def rows(self) -> Iterator[Row]:
        """Yield one row for each pair of layers."""
        for i, layer in enumerate(self.layers):
            for j, other in enumerate(self.other_layers):
                yield {
                    "layer": layer,
                    "other_layer": other,
                    "value": float(self.values[i, j]),
                    "permuted": float(self.baseline[i, j]),
                }

    def summary(self) -> Summary:
        """Return the number of the last hidden layers."""
        i, j = self.headline
        return Summary(value=float(self.values[i, j]), kind="exact", basis=self.basis)

    def by_chance(self) -> float:
        """Return what the number of the summary is where examples are permuted."""
        i, j = self.headline
        return float(self.baseline[i, j])

    @property
    def basis(self) -> str:
        """Return which layers the summary is of, on how many examples, and their baseline."""
        i, j = self.headline
        return (
            f"{self.examples} examples, {self.layers[i]} and {self.other_layers[j]}; "
            f"permuted examples: {self.by_chance():.3g}"
        )


def empty(first: int, second: int) -> Float64[Tensor, "k m"]:
    """Return a matrix of NaN."""
    return torch.full((first, second), torch.nan, dtype=torch.float64)
