"""The reference scale: one axis with the network and what it is compared with."""

import math
from dataclasses import dataclass

from inscape.report.look.parts import Measured, Reference
from inscape.report.words import number

#: Values that span more than this factor go on a logarithmic axis.
WIDE = 25.0
#: Where the axis begins and ends, in percent of the track.
LEFT, RIGHT = 3.0, 97.0

SHORT = {
    "initialisation": "at initialisation",
    "linear": "linear model",
    "bound": "lower bound",
}


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One line of the scale; positions are percents of the track, None without a value."""

    name: str
    label: str
    text: str
    note: str
    at: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Scale:
    """An axis with ticks (percent, text) and the marks on it."""

    logarithmic: bool
    ticks: tuple[tuple[float, str], ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    logarithmic: bool

    def place(self, value: float | None) -> float | None:
        """Return the place of a value in percent; ends of intervals may be cut off."""
        if value is None or not math.isfinite(value):
            return None
        low, high = self.low, self.high
        if self.logarithmic:
            value, low, high = (math.log10(max(v, self.low)) for v in (value, low, high))
        fraction = (value - low) / (high - low)
        return round(LEFT + (RIGHT - LEFT) * min(1.0, max(0.0, fraction)), 2)


def scale(measured: Measured) -> Scale | None:
    """Return the axis of a number and its baselines; None without a finite number."""
    summary = measured.summary
    if summary is None or not math.isfinite(summary.value):
        return None
    known = [r for r in measured.references if r.value is not None and math.isfinite(r.value)]
    values = [summary.value, *(r.value for r in known if r.value is not None)]
    ends = [summary.low, summary.high, *(end for r in known for end in (r.low, r.high))]
    axis = _axis(values, [end for end in ends if end is not None and math.isfinite(end)])
    network = Mark(
        name="network",
        label="this network",
        text=number(summary.value),
        note="",
        at=axis.place(summary.value),
        low=axis.place(summary.low),
        high=axis.place(summary.high),
    )
    marks = (network, *(_mark(reference, axis) for reference in measured.references))
    return Scale(logarithmic=axis.logarithmic, ticks=_ticks(axis), marks=marks)


def _mark(reference: Reference, axis: _Axis) -> Mark:
    label = SHORT[reference.name]
    if reference.name == "linear" and reference.label.startswith("logistic"):
        label = "logistic regression"
    if reference.value is None:
        return Mark(name=reference.name, label=label, text="", note=reference.reason)
    return Mark(
        name=reference.name,
        label=label,
        text=reference.text(number),
        note=reference.note,
        at=axis.place(reference.value),
        low=axis.place(reference.low),
        high=axis.place(reference.high),
    )


def _axis(values: list[float], ends: list[float]) -> _Axis:
    low, high = min(values), max(values)
    if low > 0 and high / low > WIDE:
        return _Axis(low / 1.6, max([high, *ends]) * 1.6, logarithmic=True)
    low, high = min([0.0, *values, *ends]), max([0.0, *values, *ends])
    return _Axis(low, low + (high - low or 1.0) * 1.05, logarithmic=False)


def _ticks(axis: _Axis) -> tuple[tuple[float, str], ...]:
    values = _decades(axis) if axis.logarithmic else _steps(axis)
    placed = ((axis.place(value), number(value, 3)) for value in values)
    return tuple((at, text) for at, text in placed if at is not None)


def _steps(axis: _Axis) -> list[float]:
    """Return round numbers, about four of them."""
    rough = (axis.high - axis.low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.99)
    first, last = math.ceil(axis.low / step), math.floor(axis.high / step)
    return [k * step for k in range(first, last + 1)]


def _decades(axis: _Axis) -> list[float]:
    """Return powers of ten, every other one where there are many, and 3s where there are few."""
    first, last = math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high))
    stride = max(1, round((last - first) / 4))
    marks = (1.0, 3.0) if axis.high / axis.low < 200 else (1.0,)
    ticks = [m * 10.0**k for k in range(first, last + 1, stride) for m in marks]
    return [value for value in ticks if axis.low <= value <= axis.high]
