"""Maxima of affine functions as text, in plain and in max-plus algebra."""

from collections.abc import Sequence

from torch import Tensor

Terms = tuple[Tensor, Tensor]


def difference(terms: tuple[Terms, Terms], digits: int) -> str:
    """Return the difference of two maxima."""
    plus, minus = (_maximum(*term, digits) for term in terms)
    return f"{plus} - {minus}"


def quotient(terms: tuple[Terms, Terms], digits: int) -> str:
    """Return the same in max-plus algebra, where it is a quotient of two polynomials."""
    plus, minus = (_polynomial(*term, digits) for term in terms)
    return f"({plus}) ⊘ ({minus})"


def _maximum(slopes: Tensor, constants: Tensor, digits: int) -> str:
    named = zip(slopes.tolist(), constants.tolist(), strict=True)
    return f"max{{{', '.join(_affine(slope, number, digits) for slope, number in named)}}}"


def _affine(slope: Sequence[float], number: float, digits: int) -> str:
    """Return ``2 x1 - x3 + 1``, without what is zero."""
    text = ""
    for term, sign in _summands(slope, number, digits):
        if text:
            text += f" {sign} {term}"
        else:
            text = term if sign == "+" else f"-{term}"
    return text or "0"


def _summands(slope: Sequence[float], number: float, digits: int) -> list[tuple[str, str]]:
    summands = []
    for k, value in enumerate(slope):
        size = _number(abs(value), digits)
        if size != "0":
            name = f"x{k + 1}" if size == "1" else f"{size} x{k + 1}"
            summands.append((name, "-" if value < 0 else "+"))
    if (size := _number(abs(number), digits)) != "0":
        summands.append((size, "-" if number < 0 else "+"))
    return summands


def _polynomial(slopes: Tensor, constants: Tensor, digits: int) -> str:
    named = zip(slopes.tolist(), constants.tolist(), strict=True)
    return " ⊕ ".join(_monomial(slope, number, digits) for slope, number in named)


def _monomial(slope: Sequence[float], number: float, digits: int) -> str:
    """Return ``1 ⊗ x1 ⊗ x2^2``; a constant of zero is left out beside powers."""
    powers = []
    for k, value in enumerate(slope):
        power = _number(value, digits)
        if power != "0":
            powers.append(f"x{k + 1}" if power == "1" else f"x{k + 1}^{power}")
    start = _number(number, digits)
    return " ⊗ ".join([start, *powers] if start != "0" or not powers else powers)


def _number(value: float, digits: int) -> str:
    """Return a number with that many digits; what rounds to nothing is 0."""
    text = f"{value:.{digits}g}" if abs(value) > 1e-12 else "0"
    return "0" if text == "-0" else text
