"""The errors that Inscape raises beside ValueError and TypeError, and the names they offer."""

from collections.abc import Sequence


class UnsupportedModelError(ValueError):
    """A model holds something that an analysis cannot read; the text names it and its place."""


class DataError(ValueError):
    """A data set or a file of it is missing, damaged or not what its name says."""


class BudgetError(RuntimeError):
    """A computation would pass the memory or time that it was given."""


def did_you_mean(
    name: str, known: Sequence[str], *, otherwise: str | None = None, quoted: bool = False
) -> str:
    """Return the end of an error about an unknown name: the nearest known ones, or all of them.

    Args:
        name: What was written; capitals do not matter.
        known: The names that there are.
        otherwise: What to say where none is near; by default all known names are offered.
        quoted: Whether the names are put in quotation marks, as those of files are.

    >>> did_you_mean("pathlength", ["path_length", "gradient_norm"])
    'did you mean path_length?'
    >>> did_you_mean("zebra", ["path_length", "gradient_norm"])
    'choose from path_length, gradient_norm.'
    >>> did_you_mean("Net.pt", ["net.pt", "data.npz"], quoted=True)
    "did you mean 'net.pt'?"
    """
    from difflib import get_close_matches

    by_lower = {other.lower(): other for other in known}
    near = [by_lower[key] for key in get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)]
    if near:
        return f"did you mean {' or '.join(map(repr, near) if quoted else near)}?"
    return f"choose from {', '.join(known) or 'none'}." if otherwise is None else otherwise
