"""Fourier-Walsh spectrum of a Boolean function: degree, influence, entropy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core import Result, Row, Summary
from inscape._core.result import NONNEGATIVE, Range
from inscape.boolean._words import MOST, words
from inscape.boolean.truth_table import TruthTable, check_inputs

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Fourier(Result):
    """Coefficients of a function with values -1 and +1, one for each set of inputs.

    Entry i is the coefficient of the set whose members are the ones of i in binary, the first
    input most significant; the squares add to one.
    """

    range: ClassVar[Range] = NONNEGATIVE

    n: int
    number: int
    coefficients: Float64[Tensor, " sets"]

    @property
    def sizes(self) -> Array:
        """How many inputs each set has."""
        return sizes(self.n)

    @property
    def degree(self) -> int:
        """Size of the largest set with a coefficient other than zero."""
        return int(self.sizes[self.coefficients.numpy() != 0].max())

    @property
    def influence(self) -> float:
        r"""Total influence: :math:`\sum_S |S| \hat f(S)^2` (Eq. 3.6)."""
        return float((self.sizes * self.coefficients.numpy() ** 2).sum())

    @property
    def influences(self) -> Float64[Tensor, " n"]:
        """Influence of each input: how often the output changes when that input does."""
        index = np.arange(1 << self.n)
        members = index >> np.arange(self.n - 1, -1, -1)[:, None] & 1
        return torch.from_numpy(members @ self.coefficients.numpy() ** 2)

    @property
    def entropy(self) -> float:
        r"""Entropy in bits: :math:`\sum_S \hat f(S)^2 \log_2 (1 / \hat f(S)^2)` (Eq. 3.7)."""
        return float(_entropy(self.coefficients.numpy()[None])[0])

    def rows(self) -> Iterator[Row]:
        """Yield one row for each set of inputs."""
        for index, value in enumerate(self.coefficients.tolist()):
            members = [k + 1 for k in range(self.n) if index >> (self.n - 1 - k) & 1]
            named = " ".join(f"x{k}" for k in members) or "1"
            yield {"set": named, "size": len(members), "coefficient": value}

    def summary(self) -> Summary:
        """Return the total influence."""
        basis = f"{self.n} inputs, degree {self.degree}, entropy {self.entropy:.3g}"
        return Summary(value=self.influence, kind="exact", basis=basis)


def fourier(function: TruthTable) -> Fourier:
    r"""Return the Fourier-Walsh spectrum of a Boolean function.

    .. math:: \hat f(S) = 2^{-n} \sum_x f(x) \prod_{i \in S} x_i, \qquad x_i, f(x) \in \{-1, 1\}

    The factor is missing in the printed Eq. (3.5) (S1). Exact: every coefficient is an
    integer over 2^n. Cost: n 2^n additions.

    Args:
        function: The function.

    >>> from inscape.boolean.truth_table import parity
    >>> spectrum = fourier(parity(4))
    >>> spectrum.degree, spectrum.influence, spectrum.entropy
    (4, 4.0, 0.0)
    """
    spectrum = _transformed(function.values[None])[0]
    return Fourier(n=function.n, number=function.number, coefficients=torch.from_numpy(spectrum))


def metrics(numbers: Sequence[int] | Array, n: int) -> dict[str, Array]:
    """Return degree, influence and entropy of many functions of ``n`` inputs, by name."""
    check_inputs(n)
    parts = [_metrics(block, n) for block in _blocks(numbers, n)]
    names = ("degree", "influence", "entropy")
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def sizes(n: int) -> Array:
    """Return how many inputs each of the 2^n sets has."""
    index = np.arange(1 << n)
    return np.asarray((index[:, None] >> np.arange(n) & 1).sum(1))


def _metrics(values: Array, n: int) -> dict[str, Array]:
    spectra = _transformed(values)
    size = sizes(n)
    return {
        "degree": np.where(spectra != 0, size, 0).max(1),
        "influence": spectra**2 @ size.astype(float),
        "entropy": _entropy(spectra),
    }


def _blocks(numbers: Sequence[int] | Array, n: int) -> Iterator[Array]:
    """Yield tables of -1 and +1, some thousand functions at a time."""
    if n > MOST:
        yield np.array([TruthTable(n, number).values for number in numbers]).reshape(-1, 1 << n)
        return
    tables = words(numbers, n)
    places = np.arange((1 << n) - 1, -1, -1, dtype=np.uint64)
    for start in range(0, max(len(tables), 1), 4096):
        digits = tables[start : start + 4096, None] >> places & np.uint64(1)
        yield 2.0 * digits.astype(float) - 1.0


def _transformed(values: Array) -> Array:
    """Transform each row; a set's sign is that of the product of its inputs (-1 and +1)."""
    many, size = values.shape
    n = size.bit_length() - 1
    spectra = values.copy()
    for step in range(n):
        pairs = spectra.reshape(many, size >> step + 1, 2, 1 << step)
        low, high = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
        pairs[:, :, 0], pairs[:, :, 1] = low + high, high - low
    return np.asarray(spectra / size)


def _entropy(spectra: Array) -> Array:
    squares = spectra**2
    logs = np.log2(np.where(squares > 0, squares, 1.0))
    return np.asarray(-(squares * logs).sum(1)) + 0.0
