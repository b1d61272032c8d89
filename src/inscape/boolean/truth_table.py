"""Truth tables: Boolean functions as numbers, in the dissertation's order of bits."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape._core.sampling import generator

Array = npt.NDArray[Any]

#: More inputs than this make tables of more than a million entries.
MOST_INPUTS = 20
#: Values of a table as they may be given.
_DIGITS = {0: "0", 1: "1", "0": "0", "1": "1"}


@dataclass(frozen=True)
class TruthTable:
    """A Boolean function of ``n`` inputs by its number: the printed table, read as binary.

    The leftmost digit is the value where all inputs are false, and the first input is the most
    significant digit of an index, so that 27030 is the parity of four inputs.

    >>> str(TruthTable(2, 6)), TruthTable(2, 6)(True, False)
    ('0110', True)
    """

    n: int
    number: int

    def __post_init__(self) -> None:
        """Raise ValueError for a number of inputs or of the function that is out of range."""
        check_inputs(self.n)
        object.__setattr__(self, "number", index(self.number))  # NumPy's have no to_bytes
        if not 0 <= self.number < 1 << (1 << self.n):
            raise ValueError(
                f"a function of {self.n} inputs must have a number from 0 to 2^{1 << self.n} - 1, "
                f"found {_shown(self.number)}: change the number or raise n."
            )

    @cached_property
    def bits(self) -> Array:
        """Values 0 or 1 of all inputs, the one with all inputs false first."""
        size = 1 << self.n
        raw = self.number.to_bytes(max(size // 8, 1), "big")
        return np.unpackbits(np.frombuffer(raw, dtype=np.uint8))[-size:]

    @cached_property
    def values(self) -> Array:
        """Values -1 or +1 of all inputs, as float64."""
        return 2.0 * self.bits - 1.0

    @cached_property
    def points(self) -> Array:
        """The inputs themselves, one row of -1 and +1 each, as float64."""
        return points(self.n)

    def __call__(self, *inputs: bool) -> bool:
        """Evaluate the function."""
        if len(inputs) != self.n:
            raise ValueError(
                f"this function requires {self.n} inputs, found {len(inputs)}: give one truth "
                "value for each."
            )
        return bool(self.bits[int("".join("01"[bool(value)] for value in inputs), 2)])

    def __invert__(self) -> "TruthTable":
        """Negate the output."""
        return TruthTable(self.n, self.number ^ ((1 << (1 << self.n)) - 1))

    def __xor__(self, other: "TruthTable") -> "TruthTable":
        """Return where two functions of the same inputs differ."""
        if self.n != other.n:
            raise ValueError(
                f"two functions must have the same inputs, found {self.n} and {other.n}: see "
                "with_parity to widen one."
            )
        return TruthTable(self.n, self.number ^ other.number)

    def __repr__(self) -> str:
        """Return the expression of the table, or its first digits where the number is very long."""
        return f"TruthTable(n={self.n}, number={_shown(self.number)})"

    def __str__(self) -> str:
        """Return the printed table."""
        return f"{self.number:0{1 << self.n}b}"


def points(n: int) -> Array:
    """Return all inputs in order, one row of -1 and +1 each, the first input changing slowest."""
    check_inputs(n)
    index = np.arange(1 << n)[:, None]
    return (index >> np.arange(n - 1, -1, -1) & 1) * 2.0 - 1.0


def table(number: int, n: int) -> TruthTable:
    """Return the function of ``n`` inputs with a number."""
    return TruthTable(n, number)


def from_bits(bits: Sequence[int] | Array) -> TruthTable:
    """Return the function with these values (0 or 1), the one with all inputs false first.

    >>> from_bits([0, 1, 1, 0]).number
    6
    """
    values = bits.tolist() if isinstance(bits, np.ndarray) else list(bits)
    n = len(values).bit_length() - 1
    if len(values) < 2 or len(values) != 1 << n:
        raise ValueError(
            f"a truth table must have 2, 4, 8, 16, ... values, found {len(values)}: give one for "
            "each combination of the inputs."
        )
    for value in values:
        if isinstance(value, list) or value not in _DIGITS:
            raise ValueError(
                f"a truth table must hold 0 and 1 only, found {value}: write 1 for true, 0 for "
                "false."
            )
    return TruthTable(n, int("".join([_DIGITS[value] for value in values]), 2))


def variable(k: int, n: int) -> TruthTable:
    """Return the function of ``n`` inputs that is its ``k``-th input, counted from 1."""
    check_inputs(n)
    if not 1 <= k <= n:
        raise ValueError(f"an input must be one of x1 to x{n}, found x{k}: raise n or rename it.")
    half = 1 << (n - k)
    number, width = (1 << half) - 1, 2 * half
    for _ in range(k - 1):
        number |= number << width
        width *= 2
    return TruthTable(n, number)


def parity(n: int) -> TruthTable:
    """Return the function that is true where an odd number of its inputs is.

    >>> parity(4).number
    27030
    """
    check_inputs(n)
    number, width = 0b01, 2
    for _ in range(n - 1):
        number = number << width | (number ^ ((1 << width) - 1))
        width *= 2
    return TruthTable(n, number)


def disjunction(n: int) -> TruthTable:
    """Return OR: true unless all inputs are false."""
    check_inputs(n)
    return TruthTable(n, (1 << ((1 << n) - 1)) - 1)


def bent(n: int) -> TruthTable:
    """Return a function as far as can be from every parity, for even ``n``.

    It is the inner product x1 x2 + x3 x4 + ... modulo 2: all its Fourier coefficients have the
    same size, so that its entropy is n (S6).
    """
    check_inputs(n)
    if n % 2:
        raise ValueError(f"bent functions need an even number of inputs, found {n}: take {n + 1}.")
    number = 0
    for k in range(1, n, 2):
        number ^= variable(k, n).number & variable(k + 1, n).number
    return TruthTable(n, number)


def random(n: int, seed: int = 0) -> TruthTable:
    """Return a function whose values are fair coin flips."""
    import torch

    check_inputs(n)
    return from_bits(torch.randint(0, 2, (1 << n,), generator=generator(seed)).numpy())


def with_parity(function: TruthTable, n: int) -> TruthTable:
    """Return a function of the first inputs, XORed with the parity of all ``n`` (section 3.4.3)."""
    if n < function.n:
        raise ValueError(
            f"the parity must have at least the {function.n} inputs of the function, found {n}: "
            "raise n."
        )
    spare = 1 << (n - function.n)
    block = (1 << spare) - 1
    widened = sum(block << spare * at for at in range(1 << function.n) if function.number >> at & 1)
    return TruthTable(n, widened ^ parity(n).number)


def check_inputs(n: int) -> None:
    """Raise ValueError for numbers of inputs that are too small or too large for a table."""
    if not 1 <= n <= MOST_INPUTS:
        raise ValueError(
            f"n must be from 1 to {MOST_INPUTS} inputs, found {n}: a table has 2^n values."
        )


def _shown(number: int) -> str:
    """Return a number as text, shortened if it is very long."""
    size = number.bit_length()
    return str(number) if size <= 1024 else f"{hex(number)[:14]}... ({size} bits)"
