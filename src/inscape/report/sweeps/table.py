"""The result of a sweep: one table of models and instruments, and what follows from it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape._core.result import Scalar, Summary
from inscape.escaping import visible_line
from inscape.lab.comparison import NetworkQuantity, difference, independence_p, rank_correlation
from inscape.lab.experiment import Estimate
from inscape.report.words import jsonable, listed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Networks without which nothing is correlated.
FEWEST = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurement:
    """What one instrument measured on one model: a number, or a status that says why not.

    ``samples`` are the values whose mean the number is, if it is one; ``sampling`` says which
    samples they belong to: two models with the same one are compared in pairs.
    """

    model: str
    instrument: str
    family: str
    status: str
    summary: Summary | None = None
    samples: npt.NDArray[Any] | None = field(default=None, repr=False)
    sampling: str = ""
    seconds: float | None = None

    @property
    def quantity(self) -> NetworkQuantity | None:
        """Return the number for comparisons; None where there is none."""
        if self.summary is None:
            return None
        return NetworkQuantity(
            value=self.summary.value,
            low=self.summary.low,
            high=self.summary.high,
            samples=self.samples,
            sampling=self.sampling,
            exact=self.summary.kind == "exact",
        )

    def row(self) -> dict[str, Scalar]:
        """Return a row of the tidy table."""
        keys = ("value", "low", "high", "kind", "basis")
        return {
            "model": self.model,
            "instrument": self.instrument,
            "family": self.family,
            **{key: getattr(self.summary, key, None) for key in keys},
            "samples": None if self.samples is None else len(self.samples),
            "seconds": self.seconds,
            "status": self.status,
        }


@dataclass(frozen=True, kw_only=True)
class SweptModel:
    """A model of a sweep: its name, its source, and what it is, where it could be opened."""

    name: str
    source: str
    kind: str = ""
    parameters: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The difference of one number between two models, ``first - second``."""

    instrument: str
    first: str
    second: str
    difference: Estimate

    @property
    def distinct(self) -> bool:
        """Tell whether the interval leaves out 0."""
        return self.difference.low > 0 or self.difference.high < 0

    def row(self) -> dict[str, Scalar]:
        """Return a row of a table."""
        estimate = self.difference
        return {
            "instrument": self.instrument, "first": self.first, "second": self.second,
            "difference": estimate.value, "low": _finite(estimate.low),
            "high": _finite(estimate.high), "method": estimate.method,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """Kendall's tau between an instrument and a column over the models, and the p-value of none."""

    instrument: str
    column: str
    tau: Estimate
    p: float

    def row(self) -> dict[str, Scalar]:
        """Return a row of a table."""
        estimate = self.tau
        return {
            "instrument": self.instrument, "column": self.column, "models": estimate.n,
            "tau": _finite(estimate.value), "low": _finite(estimate.low),
            "high": _finite(estimate.high), "p": _finite(self.p), "method": estimate.method,
        }  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Sweep:
    """Many models, measured with the same instruments.

    Attributes:
        models: The models, in their order.
        measurements: The numbers of every instrument on every model, in the order of models.
        data: Name of the data.
        rows_measured: How many of their rows were measured.
        seed: Seed of every draw.
        columns: The user's numbers for each model, by column.
        left_out: Instruments that the time budget had no room for, with their seconds per model.
        computed: How many cells this run measured; the others were there.
        seconds: How long it took.
        notes: What there is to say about data, columns and records.
        command: What repeats it.
    """

    models: tuple[SweptModel, ...]
    measurements: tuple[Measurement, ...] = field(repr=False)
    data: str
    rows_measured: int
    seed: int
    columns: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    left_out: Mapping[str, float] = field(default_factory=dict)
    computed: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    command: str = ""

    @cached_property
    def instruments(self) -> tuple[str, ...]:
        """Return the names of all instruments that have a number for some model."""
        numbered = [m.instrument for m in self.measurements if m.summary is not None]
        return tuple(dict.fromkeys(numbered))

    @cached_property
    def failed(self) -> tuple[Measurement, ...]:
        """Return what could not be opened or measured."""
        return tuple(m for m in self.measurements if m.status.startswith("failed"))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Measurement]:
        return {(m.model, m.instrument): m for m in self.measurements}

    def measurement(self, model: str, instrument: str) -> Measurement | None:
        """Return what an instrument measured on a model; None where it was not measured."""
        return self._by_name.get((model, instrument))

    def value(self, model: str, instrument: str) -> float | None:
        """Return the number of an instrument on a model, if there is one."""
        summary = getattr(self.measurement(model, instrument), "summary", None)
        return None if summary is None else float(summary.value)

    def rows(self) -> Iterator[dict[str, Scalar]]:
        """Yield one row for each model and instrument, the user's columns beside them."""
        for measurement in self.measurements:
            columns = {
                name: column.get(measurement.model)
                for name, column in self.columns.items()
                if name not in measurement.row()
            }
            yield {**measurement.row(), **columns}

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows()))

    def differences(self, first: str, second: str) -> tuple[Comparison, ...]:
        """Return ``first - second`` in every instrument that both models have, with intervals.

        Args:
            first: Name of a model.
            second: Name of another.
        """
        for name in (first, second):
            self._known(name)
        pairs = [
            (instrument, self.measurement(first, instrument), self.measurement(second, instrument))
            for instrument in self.instruments
        ]
        return tuple(
            Comparison(instrument=name, first=first, second=second, difference=difference(a, b))
            for name, minuend, subtrahend in pairs
            if minuend is not None and subtrahend is not None
            and (a := minuend.quantity) is not None and (b := subtrahend.quantity) is not None
        )  # fmt: skip

    def _known(self, name: str) -> None:
        names = [model.name for model in self.models]
        if name not in names:
            raise ValueError(
                f"a difference is that of two models of the sweep, found {name!r}: they are called "
                f"{listed(names[:8])}{' ...' if len(names) > 8 else ''}."
            )

    @cached_property
    def correlations(self) -> tuple[Correlation, ...]:
        """Return Kendall's tau of every instrument with every column, and with the accuracy."""
        names = list(self.columns)
        if "accuracy" in self.instruments and "accuracy" not in names:
            names.append("accuracy")
        return tuple(
            correlation
            for name in names
            for instrument in self.instruments
            if instrument != name
            and (correlation := self._correlation(instrument, name)) is not None
        )

    def column(self, name: str) -> dict[str, float]:
        """Return a column of the user's, or the numbers of an instrument, by model."""
        if name in self.columns:
            return dict(self.columns[name])
        return self._values(name)

    def _values(self, instrument: str) -> dict[str, float]:
        values = {model.name: self.value(model.name, instrument) for model in self.models}
        return {name: value for name, value in values.items() if value is not None}

    def _correlation(self, instrument: str, name: str) -> Correlation | None:
        values, column = self._values(instrument), self.column(name)
        both = [model for model in values if model in column]
        if len(both) < FEWEST:
            return None
        x, y = np.array([values[m] for m in both]), np.array([column[m] for m in both])
        tau = rank_correlation(x, y, seed=self.seed)
        p = math.nan if math.isnan(tau.value) else independence_p(x, y)
        return Correlation(instrument=instrument, column=name, tau=tau, p=p)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the single samples as plain values, for JSON."""
        parts: dict[str, Any] = {
            "models": [asdict(model) for model in self.models],
            "measurements": list(self.rows()),
            "correlations": [correlation.row() for correlation in self.correlations],
            "differences": [each.row() for each in self.first_and_last],
            "left_out": dict(self.left_out),
            "data": self.data,
            "rows_measured": self.rows_measured,
            "seed": self.seed,
            "computed": self.computed,
            "seconds": self.seconds,
            "notes": list(self.notes),
            "command": self.command,
        }
        return {key: jsonable(value) for key, value in parts.items()}

    @cached_property
    def first_and_last(self) -> tuple[Comparison, ...]:
        """Return how the last model that was measured differs from the first."""
        names = [m.name for m in self.models if any(self.value(m.name, k) is not None
                                                     for k in self.instruments)]  # fmt: skip
        return self.differences(names[-1], names[0]) if len(names) > 1 else ()

    def plot(self) -> "Figure":
        """Draw one small panel for each instrument, over the models, and return the figure.

        In a notebook the picture is shown below the cell.
        """
        from inscape.figures import show
        from inscape.report.sweeps.figures import small_multiples

        figure = small_multiples(self)
        if figure.axes:
            show(figure.axes[0])
        return figure

    def save(self, path: str | Path) -> Path:
        """Write to ``path`` in the form that its suffix names, and return the path.

        Suffixes: html (the page), csv, parquet, tex (a booktabs table), json, svg, pdf, png.
        """
        from inscape.report.sweeps.saving import save

        return save(self, Path(path))

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return visible_line(
            f"Sweep({len(self.models)} models x {len(self.instruments)} instruments on {self.data}"
            f"{failed})"
        )

    def _repr_html_(self) -> str:
        from inscape.report.sweeps.saving import notebook_table

        return notebook_table(self)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
