"""The layout of a run: the axes of a scale with the changes that a user asks for."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from inscape._core import checks
from inscape.lab.encoding import like
from inscape.lab.experiment import SCALES, Axes, Experiment, ScaleName

#: What a value is called in an error, by its kind.
_CALLED = {
    "flag": "true or false",
    "whole": "an integer",
    "real": "a number",
    "text": "a word",
    "list": "a list",
}


def layout(
    id: str,
    runs: Experiment,
    scale: ScaleName,
    overrides: Mapping[str, Sequence[Any]],
    seeds: int | None = None,
    only: Sequence[str] | None = None,
) -> Axes:
    """Return the axes of a scale with the user's changes applied; refuse impossible ones.

    Args:
        id: The experiment as it was asked for.
        runs: The experiment whose cells are run.
        scale: The scale.
        overrides: New values for an axis, by its name.
        seeds: Number of seeds: the first of the axis, and those that follow its largest.
        only: Names of instruments: the axis ``measures`` becomes this one list.
    """
    axes = dict(runs.axes(scale))
    if not axes and any(runs.axes(other) for other in SCALES):
        others = ", ".join(other for other in SCALES if runs.axes(other))
        raise ValueError(f"{id} has no scale {scale!r}: choose from {others}.")
    changes = dict(overrides)
    if seeds is not None:
        checks.at_least(1, seeds=seeds)
        changes["seed"] = _seeds(list(axes.get("seed", ())), seeds)
    if only is not None:
        changes["measures"] = [list(only)]
    for axis, values in changes.items():
        if axis not in axes:
            raise ValueError(
                f"{id} has no setting {axis!r} that could be changed: "
                f"choose from {', '.join(axes) or 'none'}."
            )
        if not len(values):
            raise ValueError(
                f"the setting {axis!r} of {id} needs at least one value, found none: give one."
            )
        own = [value for other in SCALES for value in runs.axes(other).get(axis, ())]
        for value in values:
            _check(id, axis, value, own)
        axes[axis] = like(values, axes[axis])
    return axes


def _seeds(own: list[int], count: int) -> list[int]:
    """Return the first seeds of an axis, and more where it has fewer.

    >>> _seeds([1, 2, 3], 2), _seeds([2, 3, 6], 5)
    ([1, 2], [2, 3, 6, 7, 8])
    """
    last = max(own, default=-1)
    return [*own[:count], *range(last + 1, last + 1 + count - len(own))]


def _check(id: str, axis: str, value: Any, own: Sequence[Any]) -> None:
    """Refuse a value of another kind than those that the experiment has for an axis itself."""
    kinds = {_kind(item) for item in own}
    kind = _kind(value)
    if kind not in kinds and not ({"", "none"} & kinds or (kind == "whole" and "real" in kinds)):
        wanted = " or ".join(words for name, words in _CALLED.items() if name in kinds)
        raise ValueError(
            f"the setting {axis!r} of {id} must be {wanted}, such as {_short(own[0])}, found "
            f"{_short(value)}: give such a value."
        )
    positive = kinds <= {"whole", "real"} and min(own) > 0
    if positive and axis == "seed" and not value >= 0:
        raise ValueError(f"the setting {axis!r} of {id} must be at least 0, found {value}.")
    if positive and axis != "seed" and not value > 0:
        raise ValueError(f"the setting {axis!r} of {id} must be above 0, found {value}.")


def _kind(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "flag"
        case Integral():
            return "whole"
        case Real():
            return "real"
        case str():
            return "text"
        case list() | tuple():
            return "list"
    return ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
