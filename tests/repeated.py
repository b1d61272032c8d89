"""Runs that differ in their draws alone: the annotations of the first are checked, and no others.

The check of an annotation takes longer than most of what is called a thousand times here.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from jaxtyping import config

T = TypeVar("T")


def repeated(draws: Iterable[T]) -> Iterator[T]:
    """Yield draws, and switch the check of annotations off while those after the first are used.

    A loop that is left early leaves it off until the next test begins: see ``conftest.py``.
    """
    for index, draw in enumerate(draws):
        if index == 1:
            config.update("jaxtyping_disable", True)
        yield draw
    config.update("jaxtyping_disable", False)
