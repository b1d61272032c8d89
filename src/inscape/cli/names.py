"""The nearest known names to one that is not known."""

from collections.abc import Sequence
from difflib import get_close_matches


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the end of an error sentence that offers names.

    >>> nearest("pathlength", ["path_length", "gradient_norm"])
    'did you mean path_length?'
    >>> nearest("zebra", ["path_length", "gradient_norm"])
    'choose from path_length, gradient_norm.'
    """
    near = get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"choose from {', '.join(known)}."
