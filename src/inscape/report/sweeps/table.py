"""The result of a sweep: one table of models and measures, and what follows from it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape._core.result import Scalar, Summary
from inscape.lab.comparison import Quantity, difference, independence_p, rank_correlation
from inscape.lab.experiment import Estimate
from inscape.report.words import jsonable, listed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Networks without which nothing is correlated.
FEWEST = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurement:
    """One measure of one model: its number, or the status that says why there is none.

    ``samples`` are the values whose mean the number is, if it is one; ``sampling`` says which
    samples they belong to: two models with the same one are compared in pairs.
    """

    model: str
    measure: str
    family: str
    status: str
    summary: Summary | None = None
    samples: npt.NDArray[Any] | None = field(default=None, repr=False)
    sampling: str = ""
    seconds: float | None = None

    @property
    def quantity(self) -> Quantity | None:
        """Return the number for comparisons; None where there is none."""
        if self.summary is None:
            return None
        return Quantity(
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
            "measure": self.measure,
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
    """The difference of one measure between two models, ``first - second``."""

    measure: str
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
            "measure": self.measure, "first": self.first, "second": self.second,
            "difference": estimate.value, "low": _finite(estimate.low),
            "high": _finite(estimate.high), "method": estimate.method,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """Kendall's tau between a measure and a column over the models, and the p-value of none."""

    measure: str
    column: str
    tau: Estimate
    p: float

    def row(self) -> dict[str, Scalar]:
        """Return a row of a table."""
        estimate = self.tau
        return {
            "measure": self.measure, "column": self.column, "models": estimate.n,
            "tau": _finite(estimate.value), "low": _finite(estimate.low),
            "high": _finite(estimate.high), "p": _finite(self.p), "method": estimate.method,
        }  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Sweep:
    """Many models, measured alike.

    Attributes:
        models: The models, in their order.
        measurements: Every measure of every model, in the order of models.
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
    def measures(self) -> tuple[str, ...]:
        """Return the names of all measures that have a number for some model."""
        numbered = [m.measure for m in self.measurements if m.summary is not None]
        return tuple(dict.fromkeys(numbered))

    @cached_property
    def failed(self) -> tuple[Measurement, ...]:
        """Return what could not be opened or measured."""
        return tuple(m for m in self.measurements if m.status.startswith("failed"))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Measurement]:
        return {(m.model, m.measure): m for m in self.measurements}

    def measurement(self, model: str, measure: str) -> Measurement | None:
        """Return one measure of one model; None where it was not measured."""
        return self._by_name.get((model, measure))

    def value(self, model: str, measure: str) -> float | None:
        """Return the number of a measure of a model, if there is one."""
        summary = getattr(self.measurement(model, measure), "summary", None)
        return None if summary is None else float(summary.value)

    def rows(self) -> Iterator[dict[str, Scalar]]:
        """Yield one row for each model and measure, the user's columns beside them."""
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
        """Return ``first - second`` in every measure that both models have, with intervals.

        Args:
            first: Name of a model.
            second: Name of another.
        """
        for name in (first, second):
            self._known(name)
        pairs = [
            (measure, self.measurement(first, measure), self.measurement(second, measure))
            for measure in self.measures
        ]
        return tuple(
            Comparison(measure=measure, first=first, second=second, difference=difference(a, b))
            for measure, minuend, subtrahend in pairs
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
        """Return Kendall's tau of every measure with every column of the user's, and accuracy."""
        names = list(self.columns)
        if "accuracy" in self.measures and "accuracy" not in names:
            names.append("accuracy")
        return tuple(
            correlation
            for name in names
            for measure in self.measures
            if measure != name and (correlation := self._correlation(measure, name)) is not None
        )

    def column(self, name: str) -> dict[str, float]:
        """Return a column of the user's, or the numbers of a measure, by model."""
        if name in self.columns:
            return dict(self.columns[name])
        return self._values(name)

    def _values(self, measure: str) -> dict[str, float]:
        values = {model.name: self.value(model.name, measure) for model in self.models}
        return {name: value for name, value in values.items() if value is not None}

    def _correlation(self, measure: str, name: str) -> Correlation | None:
        values, column = self._values(measure), self.column(name)
        both = [model for model in values if model in column]
        if len(both) < FEWEST:
            return None
        x, y = np.array([values[m] for m in both]), np.array([column[m] for m in both])
        tau = rank_correlation(x, y, seed=self.seed)
        p = math.nan if math.isnan(tau.value) else independence_p(x, y)
        return Correlation(measure=measure, column=name, tau=tau, p=p)

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
                                                     for k in self.measures)]  # fmt: skip
        return self.differences(names[-1], names[0]) if len(names) > 1 else ()

    def plot(self) -> "Figure":
        """Draw one small panel for each measure, over the models, and return the figure.

        In a notebook the picture is shown below the cell.
        """
        from inscape._core.notebook import show
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
        return (
            f"Sweep({len(self.models)} models x {len(self.measures)} measures on {self.data}"
            f"{failed})"
        )

    def _repr_html_(self) -> str:
        from inscape.report.sweeps.saving import notebook_table

        return notebook_table(self)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
