"""The 222 classes of four-input functions, and what is known of each without training."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

INPUTS = 4
#: Names of the four metrics of figure 3.6 as a reader meets them.
METRICS = {
    "swaps": "swaps",
    "degree": "Fourier degree",
    "influence": "influence",
    "entropy": "Fourier entropy",
}
PARITY = 27030


@cache
def classes() -> tuple[int, ...]:
    """Return the smallest number of each class, in rising order."""
    from inscape.boolean import npn

    return tuple(int(number) for number in npn.classes(INPUTS))


@cache
def tables() -> Array:
    """Return the truth tables, one row for each class."""
    from inscape.boolean import table

    return np.stack([table(number, INPUTS).bits for number in classes()])


@cache
def points() -> Array:
    """Return the inputs in the order of the truth tables, of -1 and 1."""
    from inscape import boolean

    return boolean.points(INPUTS)


@cache
def metrics() -> dict[str, Array]:
    """Return each metric for all classes, and how far each is from as many ones as zeros."""
    from inscape import boolean

    return {
        "swaps": swaps(),
        **boolean.metrics(classes(), INPUTS),
        "imbalance": np.abs(tables().sum(1, dtype=int) - 2 ** (INPUTS - 1)),
    }


@cache
def swaps() -> Array:
    """Return the swaps value of each class."""
    from inscape.boolean.swaps import swaps_many

    return np.asarray(swaps_many(classes(), INPUTS, threads=1).swaps)
