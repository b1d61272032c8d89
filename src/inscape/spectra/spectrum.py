"""The singular values of a linear map, each with how often it occurs."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int64
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Spectrum:
    """All singular values of a linear map, the largest first, each with how often it occurs.

    A map from n to m numbers has min(n, m) of them, zeros included.
    """

    values: Float64[Tensor, " k"]
    counts: Int64[Tensor, " k"]

    @classmethod
    def of(cls, values: Tensor, counts: Tensor | None = None) -> "Spectrum":
        """Return the spectrum of these values in any order."""
        order = values.argsort(descending=True, stable=True)
        counts = torch.ones(len(values), dtype=torch.long) if counts is None else counts
        return cls(values[order].cpu(), counts.to(order)[order].cpu())

    def with_zeros(self, total: int) -> "Spectrum":
        """Return the spectrum with so many zeros that there are ``total`` values in all."""
        missing = total - len(self)
        if not missing:
            return self
        values = torch.cat([self.values, self.values.new_zeros(1)])
        return Spectrum(values, torch.cat([self.counts, torch.tensor([missing])]))

    def times(self, count: int, factor: float = 1.0) -> "Spectrum":
        """Return the spectrum of so many copies of the map side by side, each times a factor."""
        return Spectrum(self.values * factor, self.counts * count)

    def __len__(self) -> int:
        return int(self.counts.sum())

    def power_sum(self, power: int) -> float:
        """Return the sum of all values to that power, of values relative to the largest."""
        top = self.largest or 1.0
        return float(((self.values / top) ** power * self.counts).sum())

    @property
    def largest(self) -> float:
        """Return the largest singular value."""
        return float(self.values[0])

    @property
    def smallest(self) -> float:
        """Return the smallest singular value."""
        return float(self.values[-1])

    def effective_rank(self) -> float:
        """Return the nuclear norm divided by the Frobenius norm; 0 for a map that is zero."""
        return self._ratio(self.power_sum(1), self.power_sum(2) ** 0.5)

    def stable_rank(self) -> float:
        """Return the squared Frobenius norm divided by the squared largest singular value."""
        return self.power_sum(2) if self.largest else 0.0

    def participation_ratio(self) -> float:
        """Return the squared sum of squares divided by the sum of fourth powers."""
        return self._ratio(self.power_sum(2) ** 2, self.power_sum(4))

    def _ratio(self, above: float, below: float) -> float:
        return above / below if self.largest else 0.0

    def expanded(self) -> Float64[Tensor, " n"]:
        """Return every value as often as it occurs."""
        return self.values.repeat_interleave(self.counts)
