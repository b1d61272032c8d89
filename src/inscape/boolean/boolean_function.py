"""The Boolean function that a network computes, and its complexity."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape.boolean._words import MOST
from inscape.boolean.fourier import fourier
from inscape.boolean.npn import canonical
from inscape.boolean.swaps import swaps
from inscape.boolean.truth_table import TruthTable, from_bits, points
from inscape.functional.jacobians import probe


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BooleanFunction(Result):
    """A Boolean function: its number, NPN class, Fourier metrics and swaps with their weights."""

    range: ClassVar[Range] = NONNEGATIVE

    n: int
    number: str
    npn_class: str
    swaps: int
    weights: Int64[Tensor, " n"]
    degree: int
    influence: float
    entropy: float

    @property
    def table(self) -> TruthTable:
        """The function itself."""
        return TruthTable(self.n, int(self.number))

    def rows(self) -> Iterator[Row]:
        """Yield one row with all fields."""
        yield {
            "n": self.n,
            "number": self.number,
            "class": self.npn_class,
            "swaps": self.swaps,
            "weights": " ".join(map(str, self.weights.tolist())),
            "degree": self.degree,
            "influence": self.influence,
            "entropy": self.entropy,
        }

    def summary(self) -> Summary:
        """Return the swaps."""
        basis = f"function {self.number} of {self.n} inputs, class {self.npn_class}"
        return Summary(value=float(self.swaps), kind="exact", basis=basis)


def analysis(function: TruthTable) -> BooleanFunction:
    """Return class, Fourier metrics and swaps of a function of at most six inputs.

    Exact. Numbers are kept as text, since those of six inputs have 64 bits.

    >>> from inscape.boolean.truth_table import parity
    >>> result = analysis(parity(4))
    >>> result.npn_class, result.swaps, result.degree, result.influence
    ('27030', 4, 4, 4.0)
    """
    spectrum, line = fourier(function), swaps(function)
    return BooleanFunction(
        n=function.n,
        number=str(function.number),
        npn_class=str(canonical(function.number, function.n)),
        swaps=line.swaps,
        weights=line.weights,
        degree=spectrum.degree,
        influence=spectrum.influence,
        entropy=spectrum.entropy,
    )


@instrument(
    reads="function",
    larger="a more complex function",
    cost="seconds",
    work=lambda n, c: 64,
    setup=2.0,
    meaning="On inputs of -1 and +1 the network computes a Boolean function with {value} swaps.",
    cites="sattelberg2026linearity, sections 3.2 and 3.3.1, Eqs. (3.5)-(3.10)",
    by_default=False,
)
@torch.no_grad()
def boolean_function(
    f: Function, x: Float[Tensor, "n *d"], *, level: float = 0.0
) -> BooleanFunction | NotApplicable:
    r"""Read the Boolean function that a network computes at the corners of the cube.

    .. math:: b(x) = [f(x) > \text{level}], \qquad x \in \{-1, 1\}^n

    Exact: all corners are evaluated, so that the network may have at most six inputs. Of two
    outputs the second stands for true where it is the larger. Not applicable to other numbers.
    Cost: 2^n forward passes and the search for the swaps, which takes milliseconds and, in the
    first call with six inputs, a second.

    Args:
        f: The network, in eval mode.
        x: Points of the data, which give shape and dtype of an input.
        level: Where an output alone begins to count as true.
    """
    checks.number(level=level)
    checks.points(x)
    checks.in_eval_mode(f)
    inputs = x[0].numel()
    if inputs > MOST:
        reason = f"it reads the corners of a cube of at most {MOST} inputs, found {inputs}"
        return NotApplicable(what="boolean_function", reason=reason)
    corners = torch.from_numpy(points(inputs)).to(x).reshape(-1, *x.shape[1:])
    f = probe(f, corners).f
    y = checks.call(f, corners).reshape(len(corners), -1)
    if y.shape[1] > 2:
        reason = f"it supports one output, or two that compete, found {y.shape[1]}"
        return NotApplicable(what="boolean_function", reason=reason)
    true = y[:, 1] > y[:, 0] if y.shape[1] == 2 else y[:, 0] > level
    return analysis(from_bits(true.int().cpu().numpy()))
