"""Margins: the largest difference at which a reader would still call two results the same.

A margin depends on the kind of quantity and the printed number alone, neither on the noise of our
runs nor on that of the paper. The table was committed before any record was judged by it, and is
not changed after it.
"""

import math
from typing import Literal, get_args

#: What a quantity is, which decides how far apart two of them may be.
QuantityKind = Literal[
    "proportion", "percentage", "count", "heavy-tailed", "decades", "correlation", "number"
]
KINDS: tuple[QuantityKind, ...] = get_args(QuantityKind)

#: Accuracies and proportions: two percentage points.
PROPORTION = 0.02
#: Positive quantities with a heavy tail, such as a mean squared error: a factor.
FACTOR = 2.0
#: Kendall's tau and other correlations.
CORRELATION = 0.1
#: All else, and gaps between two rows of proportions: a fraction of the printed number.
FRACTION = 0.1


def margin(kind: QuantityKind, published: float, *, of: int | None = None) -> float:
    """Return the margin of a printed number; of a heavy-tailed one, in natural logarithms.

    Args:
        kind: What the quantity is.
        published: The printed number.
        of: How many runs a ``"count"`` is out of.

    >>> margin("proportion", 0.9), margin("count", 23, of=180), margin("number", -5.0)
    (0.02, 3.6, 0.5)
    """
    match kind:
        case "proportion":
            return PROPORTION
        case "percentage":
            return 100 * PROPORTION
        case "count":
            if of is None:
                raise ValueError(
                    f"the margin of a count needs the number of runs it is out of, found none for "
                    f"{published:g}: give of."
                )
            return PROPORTION * of
        case "heavy-tailed":
            return math.log(FACTOR)
        case "decades":
            return math.log10(FACTOR)
        case "correlation":
            return CORRELATION
        case "number":
            return FRACTION * abs(published)


def half_unit(printed: str) -> float:
    """Return half a unit of the last printed digit, the margin of an exact value.

    >>> half_unit("0.87"), half_unit("616126"), half_unit("1.6e-3")
    (0.005, 0.5, 5e-05)
    """
    digits, _, exponent = printed.strip().lower().partition("e")
    decimals = len(digits.partition(".")[2])
    return 0.5 * float(f"1e{int(exponent or 0) - decimals}")
