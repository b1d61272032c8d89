"""Grids as a base and its changes: ``grid(BASE, hidden=16, seed=range(2))``."""

from typing import Any

from inscape.lab.experiment import Axes


def grid(base: Axes | None = None, /, **settings: Any) -> dict[str, Any]:
    """Return the layout of a scale: a base in which some settings take other values.

    A list, a range or a tuple holds the values that a setting takes; anything else is the only
    one. A setting of the base keeps its place, so that cells keep their order.

    >>> grid(grid(seed=range(2), lr=0.1), lr=0.2, hidden=[16, 32])
    {'seed': range(0, 2), 'lr': [0.2], 'hidden': [16, 32]}
    """
    axes = {
        name: values if isinstance(values, list | range | tuple) else [values]
        for name, values in settings.items()
    }
    return {**(base or {}), **axes}
